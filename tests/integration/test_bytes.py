"""Bytes between nodes and between workers: our count against Spark's shuffles, on a fleet."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.control.live import Site, on_fleet
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_of
from headrace.run.placement import Placement
from tests.run.topologies import places

CLUSTER = (
    "format: headrace/1\ncluster:\n  nodes:\n    n{1..2}: {cpu: 300, memory_mb: 1024, slots: 2}\n"
)
SENTENCES, BATCHES = 10_000, 2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs loopback addresses")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "cluster.yaml").write_text(CLUSTER)
    machines = machines_of([folder / "cluster.yaml"])
    with (
        local_fleet(machines, folder / "fleet") as fleet,
        on_fleet(fleet, "bytes", {"spark.shuffle.compress": "false"}) as found,
    ):
        yield found


def text_files(app: Any, folder: Path) -> Path:
    """The sentences of all batches, as files of unequal size."""
    make = topology_of(app, {}).code["sentence"].function
    assert make is not None
    folder.mkdir()
    bounds = [0, 1500, 9000, SENTENCES * BATCHES]
    for i, (first, end) in enumerate(pairwise(bounds)):
        lines = make(pa.table({"value": np.arange(first, end)}))["sentence"].to_pylist()
        (folder / f"{i}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("source", ["generated", "files"])
def test_our_count_is_within_two_percent_of_spark_s(
    source: str, site: Site, tmp_path: Path
) -> None:
    app = load("word-count")
    options: dict[str, Any] = {"sentences": SENTENCES}
    if source == "files":
        options = {"text": str(text_files(app, tmp_path / "texts"))}
    topology = topology_of(app, {**options, "out": str(tmp_path / "out")})
    tasks = {name: component.tasks for name, component in topology.components.items()}
    assert site.hosts is not None
    start = Placement("dealt", tasks, places(tasks, tuple(site.hosts)))
    seen: list[BatchDone] = []
    settings = Settings(
        tmp_path / "run",
        batches=BATCHES if source == "generated" else None,
        once=source == "files",
        listen=seen.append,
    )
    done = site.run(topology, site.put_in_force(topology, start), settings)
    remote, total = (
        sum(getattr(d, name) for d in seen) for name in ("remote_bytes", "total_bytes")
    )
    assert remote > 500_000
    assert remote == pytest.approx(done.spark_remote_bytes, rel=0.02)
    assert total == pytest.approx(done.spark_total_bytes, rel=0.02)
    assert not any(d.misplaced for d in seen)
    assert app.counted(str(tmp_path / "out")) == app.expected(BATCHES, sentences=SENTENCES)


def test_workers_of_a_node_are_processes_that_send_to_each_other(
    site: Site, tmp_path: Path
) -> None:
    app = load("word-count")
    topology = topology_of(app, {"sentences": SENTENCES, "out": str(tmp_path / "out")})
    tasks = {name: component.tasks for name, component in topology.components.items()}
    # Spouts in the first worker of a node, the others over both: half of all stays in a node.
    where = {
        (name, number): (f"n{1 + number % 2}", number // 2 % 2)
        for name, n in tasks.items()
        for number in range(n)
    }
    seen: list[BatchDone] = []
    telemetry = tmp_path / "telemetry"
    settings = Settings(tmp_path / "run", batches=BATCHES, listen=seen.append, telemetry=telemetry)
    plan = site.put_in_force(topology, Placement("two workers", tasks, where))
    done = site.run(topology, plan, settings)
    assert not any(d.misplaced or d.shared for d in seen)
    for d in seen:
        processes = {(r.where, r.process) for r in d.reports}
        assert len(processes) == 4
        assert d.crossed.node_bytes < d.crossed.worker_bytes < d.crossed.bytes
    # Spark counts as remote what comes from another executor, on whatever node.
    between_workers = sum(d.crossed.worker_bytes for d in seen)
    assert between_workers == pytest.approx(done.spark_remote_bytes, rel=0.02)
    rows = [
        row for f in sorted((telemetry / "tasks").iterdir()) for row in pq.read_table(f).to_pylist()
    ]
    assert {(row["task"], row["node"], row["worker"]) for row in rows} == {
        (f"{name}.{number + 1}", *place) for (name, number), place in where.items()
    }
    assert app.counted(str(tmp_path / "out")) == app.expected(BATCHES, sentences=SENTENCES)
