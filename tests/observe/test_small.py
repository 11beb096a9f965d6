"""Small telemetry is read without Spark, and says the same."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.model.telemetry import Writer
from headrace.observe.pipeline import Observed, Question, observe_folder
from headrace.observe.small import SMALL_BYTES, is_small, observe_small
from headrace.observe.source import check_folder
from tests.observe.samples import NOON, edge, node, noisy_load, task, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(folder: Path, **rows: list[dict[str, Any]]) -> Path:
    for kind, some in rows.items():
        with Writer(folder, rows_per_file=150, name=kind) as writer:
            writer.write(kind, some)
    return folder


def busy(folder: Path) -> Path:
    """Two topologies, one clock ahead, and rows of all faults."""
    rows = word_count(7, ahead={"n3": timedelta(minutes=10)})
    other = [{**row, "topology": "other", "machine_type": None} for row in word_count(5)["tasks"]]
    noise = [{**row, "topology": "noise", "task": "b.1", "component": "b"}
             for row in noisy_load(300, cpu_ms=2, cpu_fixed=5, window_s=60, seed=3)]  # fmt: skip
    faulty = [
        task(arrival=NOON + timedelta(hours=1)), {**task(), "event_time": None}, task(topology=""),
        task(task="split"), task(task="split.0"), task(task="count.1"), task(tuples_in=None),
        task(tuples_out=-1), task(cpu_ms=float("nan")), task(queue_length=None, tuples_out=1),
        task(arrival=NOON - timedelta(hours=1)), task(node=None), task(memory_mb=float("inf")),
    ]  # fmt: skip
    tasks = [*rows["tasks"], *other, *noise, *faulty]
    edges = [*rows["edges"], edge(bytes=None, to_task="count.2"), edge(to_task="count.x")]
    edges += [{**row, "topology": "other", "bytes": None} for row in word_count(5)["edges"]]
    tasks, edges = tasks + tasks[:40], edges + edges[30:90]  # sent twice
    random.Random(5).shuffle(tasks)
    nodes = [node(), node(node="n2", ghz=0.0), node(event_time=NOON + timedelta(hours=1), cores=4)]
    nodes = [{**row, "arrival": row["event_time"]} for row in nodes] + [node(node="")]
    return write(folder, tasks=tasks, edges=edges, nodes=nodes)


def figures(observed: Observed) -> dict[str, Any]:
    return {**observed.to_json(), "fits": observed.fits}


@pytest.mark.parametrize(
    "question",
    [
        Question(traffic="average"),
        Question(traffic="p90", window_s=30, topologies=("words",)),
    ],
    ids=lambda q: f"{q.traffic} {q.window_s}",
)
def test_both_ways_say_the_same(question: Question, spark: SparkSession, tmp_path: Path) -> None:
    folder = busy(tmp_path)
    with_spark, without = observe_folder(spark, folder, question), observe_small(folder, question)
    one, other = figures(with_spark), figures(without)
    assert one.keys() == other.keys()
    assert one["report"]["rows"] == other["report"]["rows"]
    assert one["report"]["rows"]["tasks"]["duplicates"] > 30
    for name in ("profile", "streams", "traffic", "history", "inventory"):
        assert nearly(other[name]) == nearly(one[name]), name
    assert one["report"]["notes"] == other["report"]["notes"]
    assert nearly(one["report"]["heaviest_pairs"]) == nearly(other["report"]["heaviest_pairs"])
    assert [f.flag for f in one["fits"]] == [f.flag for f in other["fits"]]


def nearly(value: Any) -> Any:
    """Figures without the digits that depend on the order of additions."""
    if isinstance(value, dict):
        return {key: nearly(v) for key, v in value.items()}
    if isinstance(value, list):
        return [nearly(v) for v in value]
    return float(f"{round(value, 9):.5g}") if isinstance(value, int | float) else value


def test_only_little_telemetry_in_parquet_is_small(tmp_path: Path) -> None:
    write(tmp_path / "a", tasks=[task()])
    files = check_folder(tmp_path / "a")
    assert is_small(files)
    with files["tasks"][0].open("ab") as file:
        file.truncate(SMALL_BYTES + 1)
    assert not is_small(files)
    with Writer(tmp_path / "b", format="jsonl") as writer:
        writer.write("tasks", [task()])
    assert not is_small(check_folder(tmp_path / "b"))
