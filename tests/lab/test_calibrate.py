"""The measured table behind I-Scheduler's theta, and the command that makes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.lab.calibrate import CLUSTERS, layouts, problem_of
from headrace.model.build import build
from headrace.model.examples import example
from headrace.model.read import read
from headrace.place.building_blocks.exact_model import (
    ALIKE,
    BY_OPERATOR,
    DIFFERENT,
    KINDS,
    find_threshold,
    kind_of,
    largest_solved,
    read_seconds,
)
from headrace.planner import place


def test_the_threshold_is_the_last_size_before_the_first_that_takes_longer() -> None:
    seconds = {4: 0.1, 6: 0.5, 8: 3.0, 10: 2.0}
    assert [largest_solved(seconds, theta) for theta in (0.0, 0.1, 1.0, 2.5, 3.0)] == [
        0, 4, 6, 6, 10
    ]  # fmt: skip


def test_the_packaged_table_is_one_of_the_command_and_knows_short_times() -> None:
    seconds = read_seconds()
    assert largest_solved(seconds[ALIKE], 5.0) >= 24
    for kind in KINDS:
        assert 0 < largest_solved(seconds[kind], 1.0) <= largest_solved(seconds[kind], 5.0)


def test_the_layouts_are_those_of_the_thesis() -> None:
    linear, diamond, star = layouts(12)
    assert [tasks for tasks, _ in linear] == [2] * 6
    assert [tasks for tasks, _ in diamond] == [4, 2, 2, 4]
    assert sorted(tasks for tasks, _ in star) == [2, 2, 2, 2, 4]
    # 5 streams of 4 pairs; 4 inner tasks with 8 ends; 8 outer tasks with 4 in the middle.
    counts = [len(problem_of(o, CLUSTERS[0], ALIKE).task_pairs()) for o in (linear, diamond, star)]
    assert counts == [20, 32, 32]


def test_tasks_of_an_operator_are_alike_unless_measured_otherwise() -> None:
    micro = build(
        read([example("eskandari", "micro", f"{n}.yaml") for n in ("star-18", "homogeneous")])
    )
    assert kind_of(micro) == ALIKE
    assert kind_of(problem_of(next(layouts(8)), CLUSTERS[0], DIFFERENT)) == DIFFERENT
    homes = [example("eskandari", f"{n}.yaml") for n in ("smart-home", "storm-8-high")]
    assert kind_of(build(read(homes))) == BY_OPERATOR  # each stream has its own rate


def test_the_command_writes_a_table_that_the_scheduler_reads(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    done = CliRunner().invoke(main, ["lab", "calibrate", "--most", "6", "--out", str(table)])
    assert done.exit_code == 0, done.output
    written = json.loads(table.read_text(encoding="utf-8"))
    assert list(written["seconds"]) == list(KINDS)
    assert list(written["seconds"][ALIKE]) == ["2", "4", "6"]
    micro = build(
        read([example("eskandari", "micro", f"{n}.yaml") for n in ("star-18", "homogeneous")])
    )
    assert find_threshold(micro, 1e9, str(table)) == 6


def test_another_table_changes_the_plan(tmp_path: Path) -> None:
    micro = build(
        read([example("eskandari", "micro", f"{n}.yaml") for n in ("star-18", "homogeneous")])
    )
    slow = tmp_path / "slow.json"
    nothing = {"seconds": {kind: {"10": 99.0} for kind in KINDS}}
    slow.write_text(json.dumps(nothing), encoding="utf-8")

    def cost(**options: object) -> float:
        plan = place(micro, "i-scheduler", options=options, bounded=False)
        return plan.report.inter_node_traffic

    assert cost() == 44  # 18 vertices are solved exactly within theta
    assert cost(table=str(slow)) == cost(theta=0) == 46  # METIS' parts, as P-Scheduler's


@pytest.mark.parametrize("text", ["{}", "no json", '{"seconds": {"alike": 3}}'])
def test_a_file_that_is_no_table_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match="not a table of `headrace lab calibrate`"):
        read_seconds(str(file))
    with pytest.raises(InvalidInput, match="No such file"):
        read_seconds(str(tmp_path / "none.json"))
