"""A topology run without Spark: the same stages, state, sinks and commits, task after task.

For the tests of an application: give it tables, look at what comes out.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.model.topology import Topology
from headrace.run.batches import BatchDone, Batches, Settings
from headrace.run.compiling import CompiledBatch
from headrace.run.placement import PlanInForce
from headrace.run.routing import split_evenly
from headrace.run.task import Packet, Reports, TaskReport, pack, run_seat

Input = Mapping[str, pa.Table]  # spout -> its rows


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
        for spout, table in rows.items():
            pq.write_table(table, folder / f"{spout}.parquet")

    return batches.run(batch, lambda ready, topology: _run_stages(ready, topology, rows), keep)


def _run_stages(ready: CompiledBatch, topology: Topology, rows: Input) -> list[TaskReport]:
    found: dict[tuple[int, str, str, int], TaskReport] = {}

    def report(reports: Reports) -> None:
        found.update(reports)

    arriving: dict[int, list[Packet]] = {}
    for spout, table in rows.items():
        first = ready.stages[0].first_seat(spout)
        for task, part in split_evenly(table, topology.components[spout].tasks, start=0):
            packet = Packet(spout, task, 0, 0, part.num_rows, pack(part))
            arriving.setdefault(first + task, []).append(packet)
    for stage in ready.stages:
        leaving: dict[int, list[Packet]] = {}
        for index in range(len(stage.seats)):
            for target, packet in run_seat(
                stage, index, [pickle.dumps(arriving.get(index, []))], report
            ):
                leaving.setdefault(target, []).append(packet)
        arriving = leaving
    return list(found.values())
