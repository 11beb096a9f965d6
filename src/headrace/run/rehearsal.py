"""A topology run without Spark: the same stages, state, sinks and commits, task after task.

For the tests of an application: give it tables, look at what comes out.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.model.topology import Topology
from headrace.run.batches import BatchDone, Batches, Settings
from headrace.run.compiling import CompiledBatch
from headrace.run.placement import PlanInForce
from headrace.run.reports import reports_of
from headrace.run.routing import even_slices
from headrace.run.seats import Packet, Reports, TaskReport
from headrace.run.task import run_seat, run_source

# Spout -> its rows: the partitions of its source, or one table that is cut evenly over its tasks.
Input = Mapping[str, pa.Table | Sequence[pa.Table]]


def rehearse(
    topology: Topology, inputs: Sequence[Input], settings: Settings, plan: PlanInForce | None = None
) -> list[BatchDone]:
    """Run one batch per input, numbered from 0; those that are committed are passed over."""
    batches = Batches(topology, plan or PlanInForce(topology), settings)
    return [
        done
        for batch, rows in enumerate(inputs)
        if (done := rehearse_batch(batches, batch, rows)) is not None
    ]


def rehearse_batch(batches: Batches, batch: int, rows: Input) -> BatchDone | None:
    """Run one batch."""

    def keep(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for spout, given in rows.items():
            whole = given if isinstance(given, pa.Table) else pa.concat_tables(given)
            pq.write_table(whole, folder / f"{spout}.parquet")

    return batches.run(batch, lambda ready, topology: _run_stages(ready, topology, rows), keep)


def _run_stages(ready: CompiledBatch, topology: Topology, rows: Input) -> list[TaskReport]:
    found: dict[tuple[int, str, str, int, int], TaskReport] = {}

    def report(reports: Reports) -> None:
        found.update(reports)

    arriving: dict[int, list[Packet]] = {}
    for number, stage in enumerate(ready.stages):
        leaving: dict[int, list[Packet]] = {}
        for index, seat in enumerate(stage.seats):
            sent: Iterable[tuple[int, Packet]] = ()
            if number == 0 and seat.role == "work":
                for partition, table in partitions_of_task(
                    rows.get(seat.component, ()), seat.number, topology, seat.component
                ):
                    sent = (*sent, *run_source(stage, seat, partition, table, report))
            else:
                sent = run_seat(stage, index, [pickle.dumps(arriving.get(index, []))], report)
            for target, packet in sent:
                leaving.setdefault(target, []).append(packet)
        arriving = leaving
    return reports_of(ready, found)


def partitions_of_task(
    given: pa.Table | Sequence[pa.Table], number: int, topology: Topology, spout: str
) -> list[tuple[int, pa.Table]]:
    """The source partitions that a spout's task (from 0) reads."""
    tasks = topology.components[spout].tasks
    if isinstance(given, pa.Table):
        whole: Any = given
        slices = even_slices(whole.num_rows, tasks, start=0)
        given = [whole.slice(first, end - first) for _, first, end in slices]
    return [(p, table) for p, table in enumerate(given) if p % tasks == number]
