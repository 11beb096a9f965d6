"""Costs by a fitted line: worked out by hand, and of an application whose work is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from headrace.cli import main
from headrace.control.profiling import (
    Interval,
    cost_of,
    find_rows,
    fit_line,
    profile_app,
    profile_document,
    profile_report,
)
from headrace.errors import InvalidInput
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone
from headrace.run.seats import TaskReport

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
    # 0.1 ms, and what the engine adds. A busy machine widens the interval, and the test with it.
    assert work.cpu_ms.low <= 0.1 * 1.3
    assert work.cpu_ms.high >= 0.1 * 0.95
    assert work.selectivity == {"end": 2.0}
    assert number.selectivity == {"work": 1.0}
    assert end.selectivity == {}
    assert work.wall_ms.high >= 0.95 * work.cpu_ms.low, "a busy machine makes it more"
    document = profile_document({"i7": [work]})
    assert document["profile"]["work"]["i7"]["windows"] == 16
    assert document["streams"][0]["selectivity"] == 2.0
    with pytest.raises(InvalidInput, match="has no component `wrk`"):
        profile_app(topology, tmp_path / "again", components=("wrk",))


def batches_of(counts: list[int], cpu_ms: float, wall_ms: float) -> list[BatchDone]:
    """Batches of a component `work` with known times per tuple, and 5 ms besides."""
    found: list[BatchDone] = []
    for batch, count in enumerate(counts):
        report = TaskReport("work", "work", 0, ("here",), 100.0, began=100.0, tuples_in=count)
        report = replace(
            report,
            cpu_ms=5 + count * cpu_ms,
            ended=100 + (5 + count * wall_ms) / 1000,
            edges=(("end", 0, 2 * count, 20 * count),),
        )
        found.append(BatchDone(batch, 1.0, None, count, 0, 0, (), (report,)))
    return found


def test_cost_is_of_cpu_and_the_rate_of_a_thread_is_of_the_clock() -> None:
    cost = cost_of("work", batches_of([100, 200, 300, 400], cpu_ms=0.2, wall_ms=0.5))
    assert cost.cpu_ms.value == pytest.approx(0.2)
    assert cost.batch_ms.value == pytest.approx(5)
    assert cost.most_per_s.value == pytest.approx(2000, rel=1e-3)
    assert (cost.selectivity, cost.bytes, cost.flag) == ({"end": 2.0}, {"end": 10.0}, None)


def test_an_interval_of_times_is_one_of_rates_the_other_way_round() -> None:
    assert Interval(2.0, 1.0, 4.0).to_rate() == Interval(500.0, 250.0, 1000.0)
    assert Interval(2.0, 0.0, 4.0).to_rate().high == math.inf


def test_a_cost_that_may_be_nothing_is_flagged() -> None:
    cost = cost_of("work", batches_of([100, 200, 300, 400], cpu_ms=0.0, wall_ms=0.5))
    assert cost.flag == "the interval of its cost reaches 0"
    assert profile_document({"*": [cost]})["profile"]["work"]["*"]["flag"] == cost.flag


@pytest.mark.parametrize(
    ("row_ms", "rows"), [(0.01, 40_000), (0.0001, 1_000_000), (1.0, 400), (500.0, 8)]
)
def test_batches_grow_until_a_line_can_be_seen(row_ms: float, rows: int) -> None:
    runs: list[int] = []

    def run(count: int) -> BatchDone:
        runs.append(count)
        return batches_of([count], row_ms, row_ms)[0]

    assert find_rows(run) == pytest.approx(rows, rel=0.1)
    assert max(runs) <= max(16, rows)


def test_every_type_has_its_entry_and_a_stream_stands_once() -> None:
    counts = [100, 200, 300, 400]
    costs = {"big": [cost_of("work", batches_of(counts, 0.2, 0.2))],
             "small": [cost_of("work", batches_of(counts, 0.3, 0.6))]}  # fmt: skip
    document = profile_document(costs)
    assert {t: c["cpu_ms"] for t, c in document["profile"]["work"].items()} == pytest.approx(
        {"big": 0.2, "small": 0.3}
    )
    assert document["streams"] == [{"from": "work", "to": "end", "selectivity": 2.0, "bytes": 10.0}]
    big, small = profile_report(costs)["costs"]
    assert (big["type"], small["type"]) == ("big", "small")
    assert small["most_per_s"]["value"] == pytest.approx(1000 / 0.6, rel=1e-3)
    assert small["batch_ms"]["low"] <= 5 <= small["batch_ms"]["high"] + 1e-9


def test_the_command_writes_sections_that_can_be_planned_with(tmp_path: Path) -> None:
    app, out = tmp_path / "busy.py", tmp_path / "profile.yaml"
    app.write_text(BUSY)
    command = ["profile", str(app), "--rows", "80", "--repeats", "1", "--on", "i5"]
    done = CliRunner().invoke(main, [*command, "--component", "work", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "work: " in done.stderr
    assert list(yaml.safe_load(out.read_text())["profile"]) == ["work"]
