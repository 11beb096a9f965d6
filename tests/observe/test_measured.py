"""What comes out: costs, streams, traffic, history, inventory of a topology with known figures."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.read import validated
from headrace.observe.fit import fits, load_points
from headrace.observe.inventory import inventory
from headrace.observe.sections import (
    SPARK,
    MeasuredSections,
    Question,
    measure,
    naming,
    pair_rates,
    steady_figure,
    streams,
)
from headrace.observe.source import columns_of
from headrace.observe.spans import Span, clocks_ahead, keep_whole
from headrace.observe.windows import edge_windows, task_windows
from tests.observe.samples import APP, NOON, edge, node, noisy_load, task, word_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, kind: str, rows: list[dict[str, Any]]) -> DataFrame:
    columns = columns_of(kind)
    return spark.createDataFrame([tuple(map(row.get, columns.names)) for row in rows], columns)


def measured(
    spark: SparkSession, rows: dict[str, list[dict[str, Any]]], traffic: str = "last"
) -> MeasuredSections:
    tasks, edges = (
        task_windows(frame(spark, "tasks", rows["tasks"])),
        edge_windows(frame(spark, "edges", rows["edges"])),
    )
    return measure(SPARK, tasks.cache(), edges.cache(), Question(60, traffic))


def test_a_topology_is_measured_as_it_ran_and_the_planners_read_it(spark: SparkSession) -> None:
    found = measured(spark, word_count(12))
    s = found.sections
    noon = int(NOON.timestamp())
    # Minutes 0 and 11 are left out, since samples could begin and end inside them: the last whole
    # one is minute 10.
    assert s["history"]["say"][0] == [noon + 60, 110]
    assert s["history"]["say"][-1] == [noon + 600, 200]
    say, count = sorted(s["streams"], key=lambda e: e["to"], reverse=True)
    assert say == {
        "from": "say",
        "to": "split",
        "tuples_per_s": 200,
        "selectivity": 1,
        "bytes": 48,
        "shares": [0.5, 0.5],
    }
    assert count["tuples_per_s"] == 1400
    assert count["selectivity"] == pytest.approx(7, rel=1e-3)
    assert count["shares"] == pytest.approx([0.5, 0.25, 0.25], rel=1e-3)
    assert ["split.1", "count.1", 350, 350 * 48] in s["traffic"]
    assert len(s["traffic"]) == 8
    assert s["profile"]["split"]["i7"]["cpu_ms"] == pytest.approx(0.5)
    assert s["profile"]["split"]["i7"]["cpu_fixed"] == pytest.approx(2)
    assert s["profile"]["count"]["i7"]["cpu_ms"] == pytest.approx(0.1, rel=1e-3)
    assert [(p.source, p.target) for p in found.heaviest[:2]] == [
        ("split.1", "count.1"),
        ("split.2", "count.1"),
    ]
    problem = build(validated({**APP, **s}, {}))
    assert problem.pairs.tuples_per_s.sum() == pytest.approx(1600)
    assert any("history: say.rate absent -> 200" in note for note in problem.notes)


def test_the_average_leans_to_the_last_windows_and_a_percentile_to_the_busy_ones(
    spark: SparkSession,
) -> None:
    # Five windows: 60, none, none, 120 and at last 60 tuples.
    columns = (
        "topology string, from_task string, to_task string, tuples bigint, bytes bigint, age int, "
        "windows int"
    )
    pulses = [
        ("words", "a.1", "b.1", tuples, None, age, 5)
        for age, tuples in ((4, 60), (1, 120), (0, 60))
    ]
    windows = spark.createDataFrame(pulses, columns)
    weight = [0.5 ** (age / 5) for age in range(5)]
    average = (weight[0] * 1 + weight[1] * 2 + weight[4] * 1) / sum(weight)
    for traffic, expected in {
        "last": [1],
        "average": [average],
        "p60": [1],
        "p80": [1],
        "p95": [2],
        "p40": [],
    }.items():
        rates = [
            row["tuples_per_s"] for row in pair_rates(windows, steady_figure(traffic), 60).collect()
        ]
        assert rates == pytest.approx(expected), traffic
    with pytest.raises(InvalidInput, match="`last`, `average` and percentiles"):
        steady_figure("mean")


def test_a_question_is_understood_before_spark_starts() -> None:
    words = "for word in ('last', 'average', 'p95'): steady_figure(word)"
    script = f"from headrace.observe.sections import steady_figure\n{words}"
    subprocess.run([sys.executable, "-c", script], check=True)  # here other tests have started it


def test_the_fit_recovers_known_costs_through_noise_and_outliers(spark: SparkSession) -> None:
    truth = {
        ("split", "i7"): (0.5, 4.0),
        ("split", "i5"): (0.9, 10.0),
        ("count", "i7"): (0.05, 1.0),
    }
    rows: list[dict[str, Any]] = []
    for seed, ((component, machine), (cpu_ms, cpu_fixed)) in enumerate(truth.items()):
        load = noisy_load(4000, cpu_ms=cpu_ms, cpu_fixed=cpu_fixed, window_s=60, seed=seed)
        rows += [
            {**r, "component": component, "task": f"{component}.1", "machine_type": machine}
            for r in load
        ]
    found = fits(load_points(task_windows(frame(spark, "tasks", rows), unique=True), 60))
    assert {(f.component, f.machine_type) for f in found} == set(truth)
    for f in found:
        cpu_ms, cpu_fixed = truth[f.component, f.machine_type or ""]
        assert f.cpu_ms == pytest.approx(cpu_ms, rel=0.03)
        assert f.cpu_fixed == pytest.approx(cpu_fixed, rel=0.03)
        assert f.flag is None
        assert 3900 <= f.windows < 4000  # the outliers are gone
        for rate in (1, 10, 100, 1000):
            assert rate * f.cpu_ms / 10 + f.cpu_fixed == pytest.approx(
                rate * cpu_ms / 10 + cpu_fixed, rel=0.08
            )


def test_a_doubtful_fit_says_why(spark: SparkSession) -> None:
    def load(
        component: str, rates: list[int], cpu: list[float], machine_type: str | None = "i7"
    ) -> list[dict[str, Any]]:
        return [
            task(event_time=NOON + timedelta(minutes=i), task=f"{component}.1", component=component,
                tuples_in=60 * rate,
                 cpu_ms=600.0 * points, machine_type=machine_type)
            for i, (rate, points) in enumerate(zip(rates, cpu, strict=True))
        ]  # fmt: skip

    rows = [
        *load("steady", [100] * 20, [50.0] * 20),
        *load("erratic", [*range(10, 210, 10)], [10.0, 40.0, 5.0, 30.0] * 5),
        *load("brief", [10, 20, 30, 40], [1.0, 2.0, 3.0, 4.0], None),
    ]
    brief, erratic, steady = fits(load_points(task_windows(frame(spark, "tasks", rows)), 60))
    assert (steady.cpu_ms, steady.cpu_fixed, steady.flag) == (
        5.0,
        0.0,
        "narrow range: 100 to 100 tuples/s",
    )
    assert erratic.flag is not None
    assert erratic.flag.startswith("poor fit: r2 0.")
    assert (brief.machine_type, brief.flag) == (None, "few windows: 4")
    assert brief.cpu_ms == pytest.approx(1.0)


def test_a_clock_an_hour_ahead_is_named_and_put_right(spark: SparkSession) -> None:
    found = measured(spark, word_count(12, ahead={"n2": timedelta(hours=1)}))
    assert found.notes == (
        (
            "clock: `n2` is about 3600 s ahead of the other nodes; its samples count as that much "
            "earlier"
        ),
    )
    assert {s["to"]: s["tuples_per_s"] for s in found.sections["streams"]} == {
        "split": 200,
        "count": 1400,
    }
    assert ["split.2", "count.1", 350, 350 * 48] in found.sections["traffic"]
    assert found.sections["profile"]["split"]["i7"]["windows"] == 20


def test_a_node_that_started_later_is_not_ahead() -> None:
    spans = [
        Span("words", "n1", 0, 7200),
        Span("words", "n2", 3600, 7200),
        Span("words", "n3", 0, 3600),
    ]
    assert clocks_ahead(spans, 60, []) == {}
    assert clocks_ahead([*spans, Span("words", "n4", 3600, 10800)], 60, []) == {"n4": 3600}


def test_a_stream_to_all_tasks_counts_once(spark: SparkSession) -> None:
    minutes = [NOON + timedelta(minutes=m) for m in range(4)]
    tasks = task_windows(
        frame(
            spark, "tasks", [task(event_time=at, tuples_in=100, tuples_out=600) for at in minutes]
        )
    )
    edges = [
        edge(event_time=at, to_task=f"hear.{n}", tuples=600) for at in minutes for n in (1, 2, 3)
    ]
    whole = {"words": (int(minutes[1].timestamp()), int(minutes[2].timestamp()))}
    sent = keep_whole(edge_windows(frame(spark, "edges", edges)), whole, 60)
    (stream,) = streams(
        keep_whole(tasks, whole, 60), sent, steady_figure("last"), 60, naming(False)
    )
    assert (stream["tuples_per_s"], stream["selectivity"], len(stream["shares"])) == (10, 6, 3)


def test_names_are_prefixed_with_their_topology() -> None:
    assert naming(False)("a", "split.1") == "split.1"
    assert naming(True)("a", "split.1") == "a/split.1"


def test_the_inventory_is_what_nodes_last_said_with_their_power(spark: SparkSession) -> None:
    rows = [
        node(cores=4),
        node(event_time=NOON + timedelta(hours=1)),
        node(node="n2", ghz=0.0, bandwidth_mbps=None),
    ]
    found = inventory(frame(spark, "nodes", rows))
    flops, ram = 1 * 8 * 3.4 * 16, 16
    assert found["n1"] == {
        "type": "i7", "sockets": 1, "cores": 8, "ghz": 3.4, "flops_per_cycle": 16,
        "memory_mb": 16384, "bandwidth_mbps": 1000, "slots": 4,
        "cpu": 800, "power": {"gflops": pytest.approx(flops),
            "computation": pytest.approx(0.8 * flops + 0.2 * ram),
                              "node": pytest.approx(0.5 * flops + 0.25 * ram + 0.25 * 1000)},
    }  # fmt: skip
    assert "ghz" not in found["n2"]
    assert "bandwidth_mbps" not in found["n2"]
