"""Every scheduler of the theses drives the loop to a plan in force, on a fleet with real limits."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.control.history import entries
from headrace.control.live import Site, on_fleet
from headrace.model.cluster import nodes_of
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_for

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import driving  # pyright: ignore[reportMissingImports] - the path is known at run time only

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="limits need Linux and root"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    machines = machines_for(nodes_of(driving.cluster()))
    folder = tmp_path_factory.mktemp("fleet")
    with (
        local_fleet(machines, folder, limits=("bandwidth", "cpu")) as fleet,
        on_fleet(fleet, "driving") as found,
    ):
        yield found


# Every scheduler once, on one application or the other; the benchmark has them all on both.
PAIRS = list(zip(driving.RULES, itertools.cycle(driving.APPS), strict=False))


@pytest.mark.parametrize(("by", "app"), PAIRS)
def test_it_drives_the_loop_to_a_plan_in_force(
    by: str, app: str, site: Site, tmp_path: Path
) -> None:
    in_force, *more = driving.run_one(site, app, by, tmp_path)
    assert in_force.holds, in_force
    [shares] = more
    moved = next(e for e in entries(tmp_path / "store") if e.applied)
    assert (moved.by, moved.rule) == (by, driving.RULES[by])
    assert moved.reason
    # What crosses between nodes and between workers is what the judge says of the plan.
    assert shares.holds, shares
