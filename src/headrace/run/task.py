"""What runs inside Spark's tasks: a seat takes its blocks, calls the function, sends output on.

A block is an Arrow table in IPC form, all rows of one stream from one task to another.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import gc
import os
import pickle
import resource
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.document import Input
from headrace.model.topology import Code, PartWriter, task_name
from headrace.run.calling import CallFacts, call
from headrace.run.routing import route, split_evenly
from headrace.run.state import Carried, StateFile, check_state, read_state, read_table, write_table

Role = Literal["work", "wait", "replay"]
NODE = "HEADRACE_NODE"  # the environment variable that holds the node of a fleet's worker


class Packet(NamedTuple):
    """A block on its way."""

    component: str  # the receiver
    number: int  # of the receiving task, from 0
    input: int  # which of the receiver's inputs
    sender: int  # number of the sending task
    rows: int
    block: bytes


@dataclass(frozen=True, slots=True)
class Target:
    """A subscription, seen from the sender."""

    component: str
    input: int
    how: Input
    tasks: int
    back: bool  # delivers in the next batch


@dataclass(frozen=True, slots=True)
class Seat:
    """One partition of a stage, in one of three roles.

    work: a task of this stage; wait: a task of a later stage, whose input is on the way; replay: a
    task whose last output is delivered now.
    """

    role: Role
    component: str
    number: int  # from 0
    # Receivers in the same worker, by component.
    beside: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    groups: tuple[int, int] = (0, 0)  # key groups [first, end) whose state the task holds
    state: tuple[StateFile, ...] = ()
    carried: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A sink that a task writes to."""

    output: int  # which of the topology's outputs
    stream: str
    folder: str
    writer: PartWriter


@dataclass(frozen=True, slots=True)
class Stage:
    """What all seats of a level share."""

    batch: int
    folder: str  # of the run
    seats: tuple[Seat, ...]
    code: Mapping[str, Code]
    sources: Mapping[str, tuple[tuple[str, Input], ...]]  # component -> its inputs
    targets: Mapping[str, tuple[Target, ...]]
    parts: Mapping[str, tuple[Part, ...]]
    next_seat: Mapping[tuple[str, int], int]  # task -> partition of the next stage

    def first_seat(self, component: str) -> int:
        """The partition of a component's first task."""
        return next(
            i
            for i, seat in enumerate(self.seats)
            if seat.component == component and seat.role == "work"
        )


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task did in a batch."""

    role: str
    component: str
    number: int
    where: tuple[str, ...]  # names of the machine it ran on
    ended: float
    tuples_in: int = 0
    tuples_out: int = 0
    cpu_ms: float = 0.0
    memory_mb: float = 0.0
    edges: tuple[tuple[str, int, int, int], ...] = ()  # (component, number, tuples, bytes)
    state: tuple[StateFile, ...] = ()
    carried: tuple[Carried, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()  # (output, file)
    failure: str | None = None

    @property
    def task(self) -> str:
        return task_name(self.component, self.number + 1)


# By batch, role, component and number: one that comes twice counts once.
Reports = Mapping[tuple[int, str, str, int], TaskReport]


def run_seat(
    stage: Stage, index: int, arrived: Iterable[bytes], report: Callable[[Reports], None]
) -> Iterator[tuple[int, Packet]]:
    """Run one partition of a stage; yields (partition of the next stage, packet)."""
    seat, start = stage.seats[index], time.process_time()
    packets: list[Packet] = [packet for chunk in arrived for packet in pickle.loads(chunk)]
    # Spark's shuffle brings them in any order.
    packets.sort(key=lambda packet: (packet.input, packet.sender))
    if seat.role == "wait":
        yield from (
            (stage.next_seat[packet.component, packet.number], packet) for packet in packets
        )
        return
    done = TaskReport(seat.role, seat.component, seat.number, where_am_i(), 0.0)
    sent: list[Packet] = []
    try:
        done, sent = (
            replay(stage, seat, done) if seat.role == "replay" else work(stage, seat, packets, done)
        )
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the driver names it and decides
        done = replace(done, failure=describe_error(error))
    yield from ((stage.next_seat[packet.component, packet.number], packet) for packet in sent)
    edges = tuple((p.component, p.number, p.rows, len(p.block)) for p in sent)
    cpu_ms, memory_mb = (time.process_time() - start) * 1000, peak_mb()
    done = replace(done, edges=edges, cpu_ms=cpu_ms, memory_mb=memory_mb, ended=time.time())
    report({(stage.batch, seat.role, seat.component, seat.number): done})


def work(
    stage: Stage, seat: Seat, packets: list[Packet], done: TaskReport
) -> tuple[TaskReport, list[Packet]]:
    """Call the component's function on every input and send on what it gives."""
    code, folder = stage.code[seat.component], Path(stage.folder)
    keyed, state = code.state, None
    outputs: dict[str, list[pa.Table]] = {}
    for source, table in inputs_of(stage, seat, packets):
        if keyed is not None and state is None:
            state = read_state(seat.state, folder, keyed)
        given = CallFacts(source=source, batch=stage.batch, task=seat.number + 1)
        emitted, state = call(code, table, state, given)
        for stream, rows in emitted.items():
            outputs.setdefault(stream, []).append(rows)
    streams = {
        stream: pa.concat_tables(tables, promote_options="permissive")
        for stream, tables in outputs.items()
    }
    done = replace(
        done,
        tuples_in=sum(p.rows for p in packets),
        tuples_out=sum(t.num_rows for t in streams.values()),
        state=seat.state,
    )
    if keyed is not None and state is not None:
        first, end = seat.groups
        file = write_for_next(stage, seat, check_state(state, keyed, first, end))
        done = replace(done, state=(StateFile(seat.component, first, end, file),))
    back = {target.how.stream for target in stage.targets.get(seat.component, ()) if target.back}
    carried = tuple(
        Carried(seat.component, seat.number, stream, write_for_next(stage, seat, rows))
        for stream, rows in streams.items()
        if stream in back and rows.num_rows
    )
    forward = [target for target in stage.targets.get(seat.component, ()) if not target.back]
    done = replace(done, carried=carried, parts=tuple(write_parts(stage, seat, streams)))
    return done, list(pack_for_targets(seat, streams, forward))


def replay(stage: Stage, seat: Seat, done: TaskReport) -> tuple[TaskReport, list[Packet]]:
    """Send what was left on back edges by the batch before."""
    back = [target for target in stage.targets[seat.component] if target.back]
    sent: list[Packet] = []
    for entry in seat.carried:
        rows = read_table(Path(stage.folder) / entry.file)
        sent += pack_for_targets(seat, {entry.stream: rows}, back, sender=entry.number)
    return done, sent


def inputs_of(stage: Stage, seat: Seat, packets: list[Packet]) -> Iterator[tuple[str, pa.Table]]:
    """The tables that arrived, one per input, in the order in which inputs are declared."""
    sources = stage.sources[seat.component] or (("", Input()),)
    for i, (source, _) in enumerate(sources):
        tables = [unpack(packet.block) for packet in packets if packet.input == i]
        if tables:
            yield source, pa.concat_tables(tables, promote_options="permissive")


def pack_for_targets(
    seat: Seat,
    streams: Mapping[str, pa.Table],
    targets: Iterable[Target],
    *,
    sender: int | None = None,
) -> Iterator[Packet]:
    """One block per receiving task."""
    number = seat.number if sender is None else sender
    for target in targets:
        rows = streams.get(target.how.stream)
        if rows is None:
            continue
        block: bytes | None = None
        beside = seat.beside.get(target.component, ())
        for task, part in route(rows, target.how, target.tasks, sender=number, beside=beside):
            if block is None or part is not rows:  # to all tasks goes the same block
                block = pack(part)
            yield Packet(target.component, task, target.input, number, part.num_rows, block)


def write_parts(
    stage: Stage, seat: Seat, streams: Mapping[str, pa.Table]
) -> Iterator[tuple[int, str]]:
    """Write a task's part of the batch for each sink; gives (output, file)."""
    for part in stage.parts.get(seat.component, ()):
        rows = streams.get(part.stream)
        if rows is not None and rows.num_rows:
            folder = Path(part.folder)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / own_name(seat)
            part.writer(file, rows)
            yield part.output, str(file)


def write_for_next(stage: Stage, seat: Seat, table: pa.Table) -> str:
    """Write a table that the next batch starts from; gives its name under the run's folder."""
    file = f"batches/{stage.batch}/{own_name(seat)}"
    write_table(Path(stage.folder) / file, table)
    return file


def own_name(seat: Seat) -> str:
    """A file name that no other attempt of the same task uses."""
    return f"{task_name(seat.component, seat.number + 1)}-{uuid.uuid4().hex[:8]}.arrow"


def divide(
    batches: Iterable[bytes], part: int, schema: pa.Schema, spouts: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[int, Packet]]:
    """Hand a partition of the sources out to the spouts' tasks, evenly.

    `spouts`: name -> (first partition, tasks).
    """
    read = [pa.ipc.read_record_batch(pa.py_buffer(batch), schema) for batch in batches]
    table = pa.Table.from_batches(read, schema)
    for spout, (first, tasks) in spouts.items():
        rows = table.filter(pc.field("spout") == spout) if len(spouts) > 1 else table
        columns = rows[spout].combine_chunks()
        struct = columns.chunk(0) if isinstance(columns, pa.ChunkedArray) else columns
        mine = pa.Table.from_arrays(struct.flatten(), names=[f.name for f in struct.type])
        for task, slice_ in split_evenly(mine, tasks, start=part):
            yield first + task, Packet(spout, task, 0, part, slice_.num_rows, pack(slice_))


def pack(table: pa.Table) -> bytes:
    """A table as an uncompressed Arrow block."""
    sink = pa.BufferOutputStream()
    table = table.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack(block: bytes) -> pa.Table:
    return pa.ipc.open_stream(block).read_all()


@lru_cache(maxsize=1)
def where_am_i() -> tuple[str, ...]:
    """The names of this machine: the node of a fleet's worker, else host names and addresses."""
    node = os.environ.get(NODE)
    if node:
        return (node,)
    host = socket.gethostname()
    names = [
        os.environ.get("SPARK_LOCAL_HOSTNAME"),
        os.environ.get("SPARK_LOCAL_IP"),
        host,
        socket.getfqdn(),
        host.partition(".")[0],
    ]
    with suppress(OSError):  # a machine may not know its own address
        names += socket.gethostbyname_ex(host)[2]
    return tuple(dict.fromkeys(name for name in names if name))


@lru_cache(maxsize=1)
def settle() -> None:
    """Once per worker process: one thread for Arrow, and less work for the garbage collector."""
    # With more threads the rows of a group-by or a join come in another order at every call. A task
    # that runs again would then shuffle other rows to each task than it did before, and some would
    # be lost and some doubled. A plan counts on one core per task, too.
    pa.set_cpu_count(1)
    gc.freeze()  # Spark collects after every task; what is imported need not be looked at


def peak_mb() -> float:
    """The most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


def describe_error(error: BaseException) -> str:
    """An error in one line: kind, words, and the line of the component's own file it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    file = next(
        (f.filename for f in frames if Path(f.filename).parent != Path(__file__).parent),
        frames[-1].filename,
    )
    line = [f.lineno for f in frames if f.filename == file][-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({Path(file).name}:{line})"
