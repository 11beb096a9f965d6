"""What runs inside Spark's tasks: a seat takes its blocks, calls the function, sends output on.

A block is an Arrow table in IPC form, all rows of one stream from one task to another.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.document import Input
from headrace.model.topology import task_name
from headrace.run.calling import DEFAULT, CallFacts, Calls
from headrace.run.keeping import Start, keep_state, keep_timers, start_from
from headrace.run.order import Run, Runs, in_order, pick
from headrace.run.routing import route
from headrace.run.seats import Packet, Reports, Seat, Stage, Target, TaskReport
from headrace.run.state import Carried
from headrace.run.state_files import Kind, StateFile
from headrace.run.storage import StorageFailed, name_fault, read_table, write_table
from headrace.run.timers import micros_in, time_of

NODE = "HEADRACE_NODE"  # the environment variable that holds the node of a fleet's worker
LATE = "late"  # the stream of rows that are older than the watermark
# Groupings that cut a sender's rows into runs: a bolt without state may be called on each alone.
IN_RUNS = ("shuffle", "local-or-shuffle", "none", "custom")

Streams = dict[str, tuple[pa.Table, Runs]]


class Arrived(NamedTuple):
    """The rows of one input, in their order."""

    source: str
    how: Input
    table: pa.Table
    runs: Runs


def run_seat(
    stage: Stage, index: int, arrived: Iterable[bytes], report: Callable[[Reports], None]
) -> Iterator[tuple[int, Packet]]:
    """Run one partition of a stage; yields (partition of the next stage, packet)."""
    seat = stage.seats[index]
    packets: list[Packet] = [packet for chunk in arrived for packet in pickle.loads(chunk)]
    # Spark's shuffle brings them in any order.
    packets.sort(key=lambda packet: (packet.input, packet.sender))
    if seat.role == "wait":
        yield from (
            (stage.next_seat[packet.component, packet.number], packet) for packet in packets
        )
        return
    yield from _run(stage, seat, lambda: inputs_of(stage, seat, packets), -1, report)


def run_source(
    stage: Stage, seat: Seat, partition: int, rows: pa.Table, report: Callable[[Reports], None]
) -> Iterator[tuple[int, Packet]]:
    """Run a spout's task on a partition of its source; yields as `run_seat`."""
    source = Arrived("", Input(), rows, [((partition,), rows.num_rows)])
    inputs = [source] if rows.num_rows else []
    yield from _run(stage, seat, lambda: inputs, partition, report)


def _run(
    stage: Stage,
    seat: Seat,
    inputs: Callable[[], Iterable[Arrived]],
    partition: int,
    report: Callable[[Reports], None],
) -> Iterator[tuple[int, Packet]]:
    start, began = time.process_time(), time.time()
    done = TaskReport(
        seat.role, seat.component, seat.number, where_am_i(), 0.0,
        began=began, process=os.getppid(),
    )  # fmt: skip
    sent: list[Packet] = []
    try:
        if seat.role == "replay":
            sent = replay(stage, seat)
        else:
            done, sent = work(stage, seat, list(inputs()), done)
    except StorageFailed as error:
        done = replace(done, failure=f"{error.message}", storage=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the driver names it and decides
        done = replace(done, failure=describe_error(error))
    yield from ((stage.next_seat[packet.component, packet.number], packet) for packet in sent)
    edges = tuple((p.component, p.number, p.rows, p.size) for p in sent)
    cpu_ms, memory_mb = (time.process_time() - start) * 1000, peak_mb()
    done = replace(done, edges=edges, cpu_ms=cpu_ms, memory_mb=memory_mb, ended=time.time())
    report({(stage.batch, seat.role, seat.component, seat.number, partition): done})


def work(
    stage: Stage, seat: Seat, inputs: list[Arrived], done: TaskReport
) -> tuple[TaskReport, list[Packet]]:
    """Call the component's function on every input and send on what it gives."""
    code = stage.code[seat.component]
    mark = None if stage.watermark is None else time_of(stage.watermark)
    facts = CallFacts(source="", batch=stage.batch, task=seat.number + 1, watermark=mark)
    start = None
    if code.state is not None:
        start = start_from(stage, seat, code, [(a.table, a.how) for a in inputs])
    calls = Calls(code, facts, None if start is None else start.rows)
    emitted = [] if start is None else calls.on_timers(start.due)
    for source, how, table, runs in inputs:
        alone = code.state is None and seat.component in stage.ordered
        emitted += calls.on_rows(
            table, runs, source, piecewise=alone and how.grouping in IN_RUNS, fields=how.fields
        )
    emitted += calls.on_batch()
    streams: Streams = {}
    for name in dict.fromkeys(stream for stream, _, _ in emitted):
        tables = [table for stream, table, _ in emitted if stream == name]
        runs = [run for stream, _, some in emitted if stream == name for run in some]
        streams[name] = (pa.concat_tables(tables, promote_options="permissive"), runs)
    latest = split_late(stage, seat, streams)
    done = replace(
        done,
        tuples_in=sum(a.table.num_rows for a in inputs),
        tuples_out=sum(table.num_rows for table, _ in streams.values()),
        state=seat.state if start is None else keep(stage, seat, start, calls),
        latest=latest,
    )
    back = {target.how.stream for target in stage.targets.get(seat.component, ()) if target.back}
    carried = tuple(
        Carried(seat.component, seat.number, stream, write_for_next(stage, seat, rows))
        for stream, (rows, _) in streams.items()
        if stream in back and rows.num_rows
    )
    forward = [target for target in stage.targets.get(seat.component, ()) if not target.back]
    done = replace(done, carried=carried, parts=tuple(write_parts(stage, seat, streams)))
    return done, list(pack_for_targets(seat, streams, forward))


def keep(stage: Stage, seat: Seat, start: Start, calls: Calls) -> tuple[StateFile, ...]:
    """Write what the calls have changed; gives the files that hold the task's state now."""
    code, found = stage.code[seat.component], list(seat.state)
    assert code.state is not None
    changed = keep_state(start, calls.new_state(), code.state, seat.groups, stage.watermark)
    timers = None if calls.timers is None else keep_timers(stage, seat, start, calls.timers, code)
    written: tuple[tuple[Kind, pa.Table | None], ...] = (("state", changed), ("timers", timers))
    for kind, rows in written:
        if rows is None:
            continue
        file = write_for_next(stage, seat, rows)
        first, end = seat.groups
        if start.whole and kind == "state":
            found = [entry for entry in found if entry.kind != kind]
        found.append(StateFile(seat.component, first, end, file, kind=kind, rows=rows.num_rows))
    return tuple(found)


def split_late(stage: Stage, seat: Seat, streams: Streams) -> int | None:
    """Move rows that are older than the watermark to their stream; gives the latest event time."""
    time_column = stage.times.get(seat.component)
    if time_column is None or DEFAULT not in streams:
        return None
    rows, runs = streams[DEFAULT]
    times = micros_in(rows, time_column.column)
    if stage.watermark is not None:
        late = pc.fill_null(pc.less(times, stage.watermark), False).to_numpy()
        for stream, mask in ((DEFAULT, ~late), (LATE, late)) if late.any() else ():
            index = np.flatnonzero(mask)
            streams[stream] = (rows.take(pa.array(index)), pick(runs, index))
    return pc.max(times).as_py()


def replay(stage: Stage, seat: Seat) -> list[Packet]:
    """Send what was left on back edges by the batch before."""
    back = [target for target in stage.targets[seat.component] if target.back]
    sent: list[Packet] = []
    for entry in seat.carried:
        rows = read_table(Path(stage.folder) / entry.file, "what a back edge carries")
        runs: list[Run] = [((entry.number,), rows.num_rows)]
        sent += pack_for_targets(seat, {entry.stream: (rows, runs)}, back, sender=entry.number)
    return sent


def inputs_of(stage: Stage, seat: Seat, packets: list[Packet]) -> Iterator[Arrived]:
    """The rows that arrived, input by input as they are declared, in the order they were read."""
    for i, (source, how) in enumerate(stage.sources[seat.component]):
        parts = [(unpack(p.block), pickle.loads(p.order)) for p in packets if p.input == i]
        if not parts:
            continue
        table, runs = in_order(parts)
        if how.order:
            for column in how.order:
                if column not in table.column_names:
                    there = ", ".join(table.column_names)
                    raise KeyError(f"there is no column `{column}` to order by; there are {there}")
            keys = [(column, "ascending") for column in how.order]
            table = table.take(pc.sort_indices(table, sort_keys=keys))  # equal ones stay in order
            runs = [(runs[0][0], table.num_rows)]
        yield Arrived(source, how, table, runs)


def pack_for_targets(
    seat: Seat, streams: Streams, targets: Iterable[Target], *, sender: int | None = None
) -> Iterator[Packet]:
    """One block per receiving task."""
    number = seat.number if sender is None else sender
    for target in targets:
        if target.how.stream not in streams:
            continue
        rows, runs = streams[target.how.stream]
        block: bytes | None = None
        beside = seat.beside.get(target.component, ())
        for task, part, some in route(
            rows, target.how, target.tasks,
            sender=number, beside=beside, runs=runs, rowwise=target.rowwise,
        ):  # fmt: skip
            if block is None or part is not rows:  # to all tasks goes the same block
                block = pack(part)
            count, order = part.num_rows, dumps(some)
            yield Packet(target.component, task, target.input, number, count, block, order)


def write_parts(stage: Stage, seat: Seat, streams: Streams) -> Iterator[tuple[int, str]]:
    """Write a task's part of the batch for each sink; gives (output, file)."""
    for part in stage.parts.get(seat.component, ()):
        rows = streams.get(part.stream, (None, ()))[0]
        if rows is not None and rows.num_rows:
            folder = Path(part.folder)
            file = folder / own_name(seat)
            with name_fault(file, "a part of the output"):
                folder.mkdir(parents=True, exist_ok=True)
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


def pack(table: pa.Table) -> bytes:
    """A table as an uncompressed Arrow block."""
    sink = pa.BufferOutputStream()
    table = table.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def dumps(runs: Runs) -> bytes:
    """Runs as they travel beside a block."""
    return pickle.dumps(tuple(runs), protocol=5)


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
