"""Streaming queries: do they keep up, what limits them, and the largest rate they sustain."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np

from headrace.advise.curve import Point, sizes
from headrace.advise.findings import Saving
from headrace.advise.replay import replay
from headrace.advise.settings import Setting
from headrace.advise.what_if import fleet_for, shape_of
from headrace.advise.work import JobWork, Slots, StageWork, Work
from headrace.figures import duration, number
from headrace.observe.spark_log.stream_events import number as finite
from headrace.observe.spark_log.trace import QueryProgress, Trace

WARM_UP = 2  # first batches: Java compiles, and the backlog of before is read
BEHIND = 1.02  # input over processed rows, from which on a backlog grows
FULL = 0.9  # of the trigger interval
COMMIT = 0.3  # of a batch's time, from which on committing state is worth a word
HEADROOM = 0.8  # of the largest rate: what to plan for
MOST_RATE = 1e4  # times what was measured: beyond, nothing in the log speaks of it
OVERHEADS = ("walCommit", "commitOffsets", "queryPlanning", "latestOffset", "getBatch", "getOffset")


@dataclass(frozen=True, slots=True)
class Stream:
    """A streaming query, in figures of its batches after the first few."""

    query: str
    name: str
    batches: int
    rows_per_s: float | None  # that arrived
    processed_per_s: float | None  # while a batch ran
    batch_s: float  # median
    interval_s: float | None  # between triggers, median
    rows_per_batch: float
    state_rows: float | None
    state_mb: float | None
    commit_share: float | None  # of a batch's time
    backlog_rows: float | None  # behind the newest of the source, at the end
    backlog_growth_per_s: float | None
    sustained_rows_per_s: float | None
    sustained_on: tuple[tuple[int, int, float | None], ...]  # executors, cores each, rows/s
    parts_ms: dict[str, float]

    def to_json(self) -> dict[str, object]:
        found = {k: getattr(self, k) for k in self.__slots__ if k != "sustained_on"}
        found["sustained_on"] = [
            {"executors": executors, "cores": cores, "rows_per_s": rate}
            for executors, cores, rate in self.sustained_on
        ]
        return found


def streams_of(trace: Trace, work: Work) -> list[Stream]:
    """Every query of the log that had rows to work on."""
    found: list[Stream] = []
    for query in dict.fromkeys(p.query for p in trace.progress):
        reports = [p for p in trace.progress if p.query == query]
        if warm := warm_batches(reports):
            found.append(_stream(trace, work, warm, reports))
    return found


def warm_batches(reports: Sequence[QueryProgress]) -> list[QueryProgress]:
    """Batches with rows, without the first few."""
    busy = [p for p in reports if p.input_rows > 0]
    return busy[WARM_UP:] if len(busy) > 2 * WARM_UP else busy


def _stream(
    trace: Trace,
    work: Work,
    warm: Sequence[QueryProgress],
    reports: Sequence[QueryProgress],
) -> Stream:
    first = warm[0]
    batch_s = median(_batch_s(p) for p in warm)
    gaps = [(b.at_ms - a.at_ms) / 1000 for a, b in pairwise(warm)]
    span_s = (warm[-1].at_ms - first.at_ms) / 1000
    rows = sum(p.input_rows for p in warm[1:])
    state = [p for p in warm if p.state]
    commits = [_commit_ms(p) / 1000 / max(_batch_s(p), 1e-3) for p in state]
    behind = [(p.at_ms / 1000, b) for p in warm if (b := backlog(p)) is not None]
    spent = sum(_batch_s(p) for p in warm)
    names = {k for p in warm for k in p.duration_ms}
    return Stream(
        query=first.query,
        name=first.name or first.query[:8],
        batches=len(reports),
        rows_per_s=rows / span_s if span_s > 0 else first.input_per_s,
        processed_per_s=sum(p.input_rows for p in warm) / spent if spent > 0 else None,
        batch_s=batch_s,
        interval_s=median(gaps) if gaps else None,
        rows_per_batch=median(p.input_rows for p in warm),
        state_rows=_state(state[-1], "numRowsTotal") if state else None,
        state_mb=_megabytes(_state(state[-1], "memoryUsedBytes")) if state else None,
        commit_share=min(median(commits), 1.0) if commits else None,
        backlog_rows=behind[-1][1] if behind else None,
        backlog_growth_per_s=_growth_per_s(behind),
        sustained_rows_per_s=sustained_rate(trace, work, warm),
        sustained_on=tuple(
            (executors, cores, sustained_rate(trace, work, warm, executors, cores))
            for executors, cores in sizes(shape_of(trace, work))
        ),
        parts_ms={k: median(p.duration_ms.get(k, 0.0) for p in warm) for k in sorted(names)},
    )


def _growth_per_s(behind: Sequence[tuple[float, float]]) -> float | None:
    """How fast a backlog grows, from its rows at several seconds."""
    if len(behind) < 2 or behind[-1][0] <= behind[0][0]:
        return None
    (start_s, first), (end_s, last) = behind[0], behind[-1]
    return (last - first) / (end_s - start_s)


def _batch_s(p: QueryProgress) -> float:
    return p.duration_ms.get("triggerExecution", sum(p.duration_ms.values())) / 1000


def _commit_ms(p: QueryProgress) -> float:
    """Operators commit in parallel tasks; the report sums over tasks, so divide by partitions."""
    total = 0.0
    for operator in p.state:
        parts = finite(operator.get("numShufflePartitions")) or 1.0
        total += (finite(operator.get("commitTimeMs")) or 0.0) / max(parts, 1.0)
    return total


def _state(p: QueryProgress, name: str) -> float | None:
    known = [value for o in p.state if (value := finite(o.get(name))) is not None]
    return sum(known) if known else None


def _megabytes(count: float | None) -> float | None:
    return None if count is None else count / 2**20


def backlog(p: QueryProgress) -> float | None:
    """Rows behind the newest offset, of sources that say it (Kafka); None: no source does."""
    found: list[float] = []
    for source in p.sources:
        metrics = source.get("metrics") or {}
        behind = finite(metrics.get("avgOffsetsBehindLatest"))
        if behind is not None:
            parts = len(re.findall(r"\d+\"?\s*:", str(source.get("endOffset") or ""))) or 1
            found.append(behind * parts)
    return sum(found) if found else None


def sustained_rate(
    trace: Trace,
    work: Work,
    warm: Sequence[QueryProgress],
    executors: int | None = None,
    cores: int | None = None,
) -> float | None:
    """The largest rate whose batches end before the next is full, by replay.

    A batch of x times the rows has tasks x times as long, beside their fixed cost and the driver's
    time. With a trigger interval T, x grows until the batch takes T; without one, until a batch of
    x times the rows takes as long as they take to arrive, which is the limit of long batches.
    """
    batch = typical_batch(trace, work, warm)
    if batch is None:
        return None
    one, rows, interval_s, overhead_s = batch
    shape = shape_of(trace, work)
    count = shape.executors if executors is None else executors
    each = shape.cores if cores is None else cores
    slots = max(1, shape.slots * each // shape.cores)
    fleet = _ready(fleet_for(work, shape, count, slots, each))

    def takes(factor: float) -> float:
        return overhead_s + replay(_scaled(one, factor), fleet).wall_s

    if interval_s is None:  # as fast as possible: rows of a long batch over its time
        return rows * 100 / takes(100)
    low, high = 0.0, 1.0
    while takes(high) <= interval_s and high < MOST_RATE:
        low, high = high, high * 2
    if high >= MOST_RATE:
        return None
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if takes(middle) <= interval_s else (low, middle)
    return low * rows / interval_s if low > 0 else 0.0


def _ready(fleet: Sequence[Slots]) -> tuple[Slots, ...]:
    """Executors that are there already: a batch does not wait for them."""
    return tuple(replace(s, added_s=0.0, removed_s=None, ready_s=None) for s in fleet)


def typical_batch(
    trace: Trace, work: Work, warm: Sequence[QueryProgress]
) -> tuple[Work, float, float | None, float] | None:
    """The jobs of the batch of median length: its work, rows, trigger interval and driver time."""
    of_batch: dict[int, list[int]] = {}
    ids = {job.id: place for place, job in enumerate(work.jobs)}
    for job in trace.jobs:
        if job.query == warm[0].query and job.batch is not None and job.id in ids:
            of_batch.setdefault(job.batch, []).append(ids[job.id])
    known = sorted((_batch_s(p), p.batch, p) for p in warm if p.batch in of_batch)
    if not known:
        return None
    batch_s, _, report = known[len(known) // 2]
    one = _jobs_alone(work, of_batch[report.batch])
    shape = shape_of(trace, work)
    fleet = fleet_for(work, shape, shape.executors, shape.slots, shape.cores)
    alone_s = replay(one, _ready(fleet)).wall_s
    gaps = [(b.at_ms - a.at_ms) / 1000 for a, b in pairwise(warm)]
    waits = bool(gaps) and median(gaps) > 1.15 * median(_batch_s(p) for p in warm)
    interval_s = median(gaps) if waits else None
    return one, report.input_rows, interval_s, max(batch_s - alone_s, 0.0)


def _jobs_alone(work: Work, places: Sequence[int]) -> Work:
    """Some jobs of an application, from a clock that starts with the first."""
    new_job = {place: i for i, place in enumerate(places)}
    stages: list[StageWork] = []
    jobs: list[JobWork] = []
    for place in places:
        job, first = work.jobs[place], len(stages)
        moved = {old: first + i for i, old in enumerate(job.stages)}
        for old in job.stages:
            waits = tuple(moved[w] for w in work.stages[old].waits)
            stages.append(replace(work.stages[old], waits=waits, cold_s=()))
        before = tuple(new_job[w] for w in job.waits if w in new_job)
        delay_s = job.delay_s if before else 0.0
        inside = tuple(moved.values())
        jobs.append(replace(job, waits=before, delay_s=delay_s, stages=inside))
    return replace(work, jobs=tuple(jobs), stages=tuple(stages), tail_s=0.0)


def _scaled(one: Work, factor: float) -> Work:
    """Tasks with so many times the rows: their work grows, what they cost fixed does not."""
    stages: list[StageWork] = []
    for stage in one.stages:
        fixed = np.minimum(stage.task_s.min(), 0.05) if len(stage.task_s) else 0.0
        reads = (stage.records is not None and stage.records.sum() > 0) or not stage.waits
        grown = fixed + (stage.task_s - fixed) * factor if reads else stage.task_s
        stages.append(replace(stage, task_s=np.asarray(grown)))
    return replace(one, stages=tuple(stages))


def enough_for(streams: Sequence[Stream], curve: Sequence[Point]) -> Point | None:
    """The smallest point on which every query sustains what arrives, with room to spare."""
    for place, point in enumerate(curve):
        rates = [(s.rows_per_s or 0.0, s.sustained_on[place][2]) for s in streams]
        if all(rate is None or HEADROOM * rate >= arrives for arrives, rate in rates):
            return point
    return None


def is_full(s: Stream) -> bool:
    """Whether batches take all the time there is, and more than what arrives explains.

    A query without a trigger interval starts a batch when the last has ended: that alone is fine.
    """
    if s.interval_s is None or s.batch_s <= FULL * s.interval_s:
        return False
    most = s.sustained_rows_per_s
    return most is None or (s.rows_per_s or 0.0) > HEADROOM * most


def stream_findings(streams: Sequence[Stream]) -> list[Saving]:
    """What is wrong with queries; seconds are those a batch could save."""
    found: list[Saving] = []
    for s in streams:
        arrived, processed = s.rows_per_s, s.processed_per_s
        if arrived and processed and arrived > BEHIND * processed:
            evidence = (
                f"{s.name}: {number(arrived)} rows/s arrive, {number(processed)} are processed "
                "while a batch runs: it falls behind"
            )
            found.append(Saving("falling-behind", s.name, s.batch_s, evidence))
        if s.backlog_growth_per_s and arrived and s.backlog_growth_per_s > 0.01 * arrived:
            evidence = (
                f"{s.name}: its backlog grows by {number(s.backlog_growth_per_s)} rows/s, "
                f"to {number(s.backlog_rows or 0.0)}"
            )
            found.append(Saving("backlog", s.name, s.batch_s, evidence))
        if s.interval_s and is_full(s):
            evidence = (
                f"{s.name}: a batch takes {duration(s.batch_s)}, a new one is due every "
                f"{duration(s.interval_s)}"
            )
            found.append(Saving("trigger", s.name, s.batch_s - FULL * s.interval_s, evidence))
        if s.commit_share is not None and s.commit_share > COMMIT:
            evidence = (
                f"{s.name}: {s.commit_share:.0%} of a batch's time is spent on committing state "
                f"({number(s.state_rows or 0.0)} rows)"
            )
            found.append(Saving("state-commit", s.name, s.commit_share * s.batch_s, evidence))
        around_s = sum(s.parts_ms.get(part, 0.0) for part in OVERHEADS) / 1000
        if s.batch_s and around_s > 0.5 * s.batch_s:
            evidence = (
                f"{s.name}: {min(around_s / s.batch_s, 1):.0%} of a batch is offsets, plans and "
                "logs of the driver, not rows: fewer, larger batches"
            )
            found.append(Saving("batch-overhead", s.name, min(around_s, s.batch_s), evidence))
    return found


def stream_settings(trace: Trace, work: Work, streams: Sequence[Stream]) -> list[Setting]:
    """Trigger interval, rows per trigger, partitions and state store."""
    found: list[Setting] = []
    shape = shape_of(trace, work)
    for s in streams:
        if is_full(s):
            wanted = math.ceil(s.batch_s / HEADROOM)
            reason = f"{s.name}: batches of {duration(s.batch_s)} then end before the next is due"
            found.append(Setting("trigger interval", f"{wanted} seconds", reason))
        if s.sustained_rows_per_s and s.sustained_rows_per_s > 0:
            interval_s = s.interval_s or max(s.batch_s, 1.0)
            most = int(HEADROOM * s.sustained_rows_per_s * interval_s)
            if most > 0 and (s.rows_per_batch > most or (s.backlog_rows or 0) > 0):
                reason = (
                    f"{s.name}: {HEADROOM:.0%} of the {number(s.sustained_rows_per_s)} rows/s it "
                    f"sustains, for {duration(interval_s)}: a backlog cannot make batches endless"
                )
                found.append(Setting("maxOffsetsPerTrigger", str(most), reason))
        small = s.batch_s < 30 and s.parts_ms.get("addBatch", 0.0) > 0
        stated = trace.setting("spark.sql.shuffle.partitions", "200")
        slots = shape.executors * shape.slots
        if s.state_rows is not None and small and stated.isdecimal() and int(stated) > 4 * slots:
            reason = (
                f"{s.name}: {stated} partitions on {slots} slots are {int(stated) // slots} waves "
                "of small tasks per batch; needs a new checkpoint, since state is kept by partition"
            )
            found.append(Setting("spark.sql.shuffle.partitions", str(2 * slots), reason))
        provider = trace.setting("spark.sql.streaming.stateStore.providerClass")
        if s.state_mb is not None and s.state_mb > 1024 and "RocksDB" not in provider:
            reason = f"{s.name}: {s.state_mb:.0f} MB of state on the heap; RocksDB keeps it outside"
            name = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            found.append(Setting("spark.sql.streaming.stateStore.providerClass", name, reason))
    return found
