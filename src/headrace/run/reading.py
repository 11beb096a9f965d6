"""A batch's source partitions, dealt to the spouts' tasks and read where the plan puts them.

A partition goes to one task of its spout, in turn, and Spark reads it on the task's node: nothing
is shuffled between source and spout. Where it cannot be seen which partitions belong to which spout
(a source that is itself a union, beside others), the rows go through a shuffle that deals them
evenly; its bytes are counted like all others.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.document import Input
from headrace.model.topology import Topology
from headrace.run.compiling import CompiledBatch
from headrace.run.internals import (
    arrow_messages,
    branch_sizes,
    read_at_hosts,
    seats_at_hosts,
    send_to_hosts,
)
from headrace.run.routing import route
from headrace.run.seats import Packet, Reports, Seat, Stage, TaskReport
from headrace.run.task import dumps, pack, run_seat, run_source, settle, where_am_i

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame

Partition = tuple[Seat, int]  # who reads it, and its number in the spout's source
Report = Callable[[Reports], None]


class Reading:
    """How the first stage of a batch reads its sources."""

    def __init__(
        self,
        spouts: DataFrame,
        ready: CompiledBatch,
        topology: Topology,
        where: Callable[[str | None], str | None],
    ) -> None:
        self._context = spouts.sparkSession.sparkContext
        self._messages, self._schema = arrow_messages(spouts)
        self._stage, self._nodes = ready.stages[0], ready.nodes[0]
        self._where = where
        self._spouts = [name for name, component in topology.components.items() if component.spout]
        sizes = branch_sizes(self._messages) if len(self._spouts) > 1 else None
        whole = [self._messages.getNumPartitions()]
        dealt = deal_partitions(self._stage, self._spouts, sizes or whole)
        self.shuffled = dealt is None
        self._replays = [(seat, -1) for seat in self._stage.seats if seat.role == "replay"]
        # Who runs each of the stage's Spark tasks.
        self.partitions: list[Partition] = (
            [(seat, -1) for seat in self._stage.seats]
            if dealt is None
            else [*dealt, *self._replays]
        )
        self._dealt = dealt

    def packets(self, report: Report) -> RDD[Any]:
        """What the first stage sends to the second."""
        if self._dealt is None:
            return self._through_shuffle(report)
        node = {
            (seat.role, seat.component, seat.number): place
            for seat, place in zip(self._stage.seats, self._nodes, strict=True)
        }
        hosts = [self._where(node[s.role, s.component, s.number]) for s, _ in self.partitions]
        count = len(self._dealt)
        lists = read_at_hosts(self._context, self._messages, hosts[:count])
        reader = reader_of_partitions(self._stage, self._dealt, self._schema, report)
        read = lists.mapPartitionsWithIndex(reader)
        if not self._replays:
            return read
        numbers = [i for i, seat in enumerate(self._stage.seats) if seat.role == "replay"]
        seats = seats_at_hosts(self._context, hosts[count:])
        again = seats.mapPartitionsWithIndex(runner_of_replays(self._stage, numbers, report))
        return self._context.union([read, again])

    def _through_shuffle(self, report: Report) -> RDD[Any]:
        lists = read_at_hosts(self._context, self._messages, [])
        spouts = {
            name: (
                self._stage.first_seat(name),
                sum(s.component == name for s in self._stage.seats),
            )
            for name in self._spouts
        }
        batch, schema, stage = self._stage.batch, self._schema, self._stage

        def divide(part: int, found: Iterable[Sequence[bytes]]) -> Iterator[Any]:
            settle()
            return divide_partition(batch, part, rows_of(found, schema), spouts, report)

        def run_one(index: int, arrived: Iterable[bytes]) -> Iterator[Any]:
            settle()
            return run_seat(stage, index, arrived, report)

        hosts = [self._where(node) for node in self._nodes]
        return send_to_hosts(lists.mapPartitionsWithIndex(divide), hosts).mapPartitionsWithIndex(
            run_one
        )


def deal_partitions(
    stage: Stage, spouts: Sequence[str], sizes: Sequence[int]
) -> list[Partition] | None:
    """The task that reads each partition: those of a spout go to its tasks in turn.

    None: there are not as many branches as spouts.
    """
    if len(sizes) != len(spouts):
        return None
    found: list[Partition] = []
    for spout, partitions in zip(spouts, sizes, strict=True):
        seats = [s for s in stage.seats if s.component == spout and s.role == "work"]
        found += [(seats[p % len(seats)], p) for p in range(partitions)]
    return found


def reader_of_partitions(
    stage: Stage, dealt: Sequence[Partition], schema: pa.Schema, report: Report
) -> Callable[[int, Iterable[Sequence[bytes]]], Iterator[Any]]:
    """What Spark calls on each source partition."""

    def read_one(index: int, found: Iterable[Sequence[bytes]]) -> Iterator[Any]:
        settle()
        seat, partition = dealt[index]
        rows = columns_of(rows_of(found, schema), seat.component)
        return run_source(stage, seat, partition, rows, report)

    return read_one


def runner_of_replays(
    stage: Stage, numbers: Sequence[int], report: Report
) -> Callable[[int, Iterable[Any]], Iterator[Any]]:
    """What Spark calls on each seat that replays."""

    def run_one(index: int, _: Iterable[Any]) -> Iterator[Any]:
        settle()
        return run_seat(stage, numbers[index], (), report)

    return run_one


def rows_of(found: Iterable[Sequence[bytes]], schema: pa.Schema) -> pa.Table:
    """A partition's messages as a table."""
    messages = [message for some in found for message in some]
    read = [pa.ipc.read_record_batch(pa.py_buffer(message), schema) for message in messages]
    return pa.Table.from_batches(read, schema)


def columns_of(rows: pa.Table, spout: str) -> pa.Table:
    """The rows of a spout, which stand in the column of its name."""
    columns = rows[spout].combine_chunks()
    struct = columns.chunk(0) if isinstance(columns, pa.ChunkedArray) else columns
    return pa.Table.from_arrays(struct.flatten(), names=[f.name for f in struct.type])


def divide_partition(
    batch: int, part: int, table: pa.Table, spouts: dict[str, tuple[int, int]], report: Report
) -> Iterator[tuple[int, Packet]]:
    """Deal a partition's rows evenly to the spouts' tasks: name -> (first seat, tasks)."""
    edges: list[tuple[str, int, int, int]] = []
    for spout, (first, tasks) in spouts.items():
        mine = columns_of(table.filter(pc.field("spout") == spout), spout)
        runs = [((part,), mine.num_rows)]
        for task, rows, some in route(mine, Input(), tasks, sender=part, runs=runs):
            packet = Packet(spout, task, 0, part, rows.num_rows, pack(rows), dumps(some))
            edges.append((spout, task, rows.num_rows, packet.size))
            yield first + task, packet
    done = TaskReport("read", "", part, where_am_i(), time.time(), edges=tuple(edges))
    report({(batch, "read", "", part, -1): done})
