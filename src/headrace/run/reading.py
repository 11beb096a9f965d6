"""A batch's source partitions, dealt to the spouts' tasks and read where the plan puts them.

A partition goes to one task of its spout, in turn, and Spark reads it on the task's node: nothing
is shuffled between source and spout.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.errors import Unsupported
from headrace.run.compiling import CompiledBatch
from headrace.run.internals import (
    arrow_messages,
    partition_tags,
    read_at_hosts,
    seats_at_hosts,
)
from headrace.run.placement import Place
from headrace.run.seats import Reports, Seat, Stage
from headrace.run.task import run_seat, run_source, settle

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SPOUT = "_spout"  # the column that names a row's spout
Partition = tuple[Seat, int]  # who reads it, and its number in the spout's source
Report = Callable[[Reports], None]


class Reading:
    """How the first stage of a batch reads its sources."""

    def __init__(
        self,
        spouts: DataFrame,
        query: StreamingQuery,
        ready: CompiledBatch,
        where: Callable[[Place | None], str | None],
    ) -> None:
        self._context = spouts.sparkSession.sparkContext
        self._messages, self._schema = arrow_messages(spouts)
        self._stage, self._places, self._where = ready.stages[0], ready.places[0], where
        names, count = self._stage.components, self._messages.getNumPartitions()
        owners = names * count if len(names) == 1 else partition_tags(query, SPOUT)
        if len(owners) != count:
            raise Unsupported(f"Spark reads {count} partitions where its plan has {len(owners)}")
        self._dealt = deal_partitions(self._stage, owners)
        self._replays = [(seat, -1) for seat in self._stage.seats if seat.role == "replay"]
        # Who runs each of the stage's Spark tasks.
        self.partitions: list[Partition] = [*self._dealt, *self._replays]

    def packets(self, report: Report) -> RDD[Any]:
        """What the first stage sends to the second."""
        place = {
            (seat.role, seat.component, seat.number): where
            for seat, where in zip(self._stage.seats, self._places, strict=True)
        }
        hosts = [self._where(place[s.role, s.component, s.number]) for s, _ in self.partitions]
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


def deal_partitions(stage: Stage, owners: Sequence[str]) -> list[Partition]:
    """The task that reads each partition: those of a spout go to its tasks in turn."""
    seats = {
        name: [s for s in stage.seats if s.component == name and s.role == "work"]
        for name in stage.components
    }
    counted = dict.fromkeys(seats, 0)
    found: list[Partition] = []
    for name in owners:
        found.append((seats[name][counted[name] % len(seats[name])], counted[name]))
        counted[name] += 1
    return found


def reader_of_partitions(
    stage: Stage, dealt: Sequence[Partition], schema: pa.Schema, report: Report
) -> Callable[[int, Iterable[Sequence[bytes]]], Iterator[Any]]:
    """What Spark calls on each source partition."""

    def read_one(index: int, found: Iterable[Sequence[bytes]]) -> Iterator[Any]:
        settle()
        seat, partition = dealt[index]
        rows = rows_of(found, schema)
        return run_source(stage, seat, partition, columns_of(rows, seat.component), report)

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
