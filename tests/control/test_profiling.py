"""Costs by a fitted line: worked out by hand, and of an application whose work is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from headrace.cli import main
from headrace.control.profiling import fit_line, profile_app, profile_document
from headrace.errors import InvalidInput
from headrace.run.apps import load, topology_of

BUSY = """
import time
import pyarrow as pa
from headrace.run import Console, Topology
from headrace.run.sources import numbers

def work(table):
    end = time.thread_time() + 0.0001 * table.num_rows
    while time.thread_time() < end:
        pass
    return pa.concat_tables([table, table])

def topology():
    found = Topology("busy").spout("number", numbers(100), tasks=3)
    found = found.bolt("work", work, inputs={"number": "shuffle"}, tasks=4)
    return found.bolt("end", lambda table: table, inputs={"work": "shuffle"})
"""


def test_a_line_through_points_that_are_on_one_is_exact() -> None:
    slope, start, r2 = fit_line(np.array([1.0, 2, 3, 4]), np.array([5.0, 7, 9, 11]))
    assert (slope.value, slope.low, slope.high) == pytest.approx((2, 2, 2))
    assert (start.value, r2) == pytest.approx((3, 1))


def test_intervals_are_those_of_the_textbook() -> None:
    # Slope 1.5; residuals -0.5, 0.5, 0.5, -0.5: s^2 = 1 / 2, over 5 = 0.1; t = 4.303.
    slope, _, _ = fit_line(np.array([1.0, 2, 3, 4]), np.array([1.0, 3.5, 5, 5.5]))
    assert slope.value == pytest.approx(1.5)
    assert slope.high - slope.value == pytest.approx(4.303 * 0.1**0.5, rel=1e-3)
    assert slope.low == pytest.approx(1.5 - 4.303 * 0.1**0.5, abs=1e-3)
    with pytest.raises(InvalidInput, match="too few for a line"):
        fit_line(np.array([1.0, 1, 2]), np.array([1.0, 1, 2]))


def test_work_that_is_known_is_found(tmp_path: Path) -> None:
    app = tmp_path / "busy.py"
    app.write_text(BUSY)
    topology = topology_of(load(str(app)), {})
    number, work, end = profile_app(topology, tmp_path / "run", rows=800, repeats=2)
    assert work.cpu_ms.low <= 0.1 * 1.3
    assert 0.1 * 0.95 <= work.cpu_ms.value <= 0.1 * 1.5, "0.1 ms, and what the engine adds"
    assert work.selectivity == {"end": 2.0}
    assert number.selectivity == {"work": 1.0}
    assert end.selectivity == {}
    assert work.most_per_s == pytest.approx(1000 / work.cpu_ms.value)
    document = profile_document([work], "i7")
    assert document["profile"]["work"]["i7"]["windows"] == 16
    assert document["streams"][0]["selectivity"] == 2.0
    with pytest.raises(InvalidInput, match="has no component `wrk`"):
        profile_app(topology, tmp_path / "again", components=("wrk",))


def test_the_command_writes_sections_that_can_be_planned_with(tmp_path: Path) -> None:
    app, out = tmp_path / "busy.py", tmp_path / "profile.yaml"
    app.write_text(BUSY)
    command = ["profile", str(app), "--rows", "80", "--repeats", "1", "--on", "i5"]
    done = CliRunner().invoke(main, [*command, "--component", "work", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "work: " in done.stderr
    assert list(yaml.safe_load(out.read_text())["profile"]) == ["work"]
