"""What is slow and why, ranked by the seconds that could be saved at most.

Seconds come from the replay: how long the stage took there, less how long it would take without the
fault, on the same slots. Where a log cannot tell, they are None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from headrace.advise import tasks
from headrace.advise.overheads import chains, makespan
from headrace.advise.replay import Outcome, replay
from headrace.advise.work import StageWork, Work
from headrace.figures import data_size, duration, plural
from headrace.observe.spark_log.application import given_back
from headrace.observe.spark_log.trace import FAILED, KILLED, SUCCEEDED, StageRun, Trace

FELT_S = 0.5  # less is not reported, unless it is a larger share of the time
FELT_SHARE = 0.01
TINY_S = 0.1
SKEWED = 2.0  # largest over median task, by what they read
GC = 0.1
SMALL_FILE = 16 * 2**20
LARGE_TASK = 1 << 30  # bytes that one task reads
IDLE = 0.5
WHERE_MOST = 3


@dataclass(frozen=True, slots=True)
class Saving:
    """One finding: `seconds` is what could be saved at most."""

    kind: str
    stage: str | None
    seconds: float | None
    evidence: str
    numbers: dict[str, float] = field(default_factory=dict[str, float])

    def to_json(self) -> dict[str, object]:
        seconds = None if self.seconds is None else round(self.seconds, 3)
        found: dict[str, object] = {"kind": self.kind, "stage": self.stage, "seconds": seconds}
        return found | {"evidence": self.evidence, "numbers": self.numbers}


@dataclass(frozen=True, slots=True)
class Scene:
    """What every finder looks at."""

    trace: Trace
    work: Work
    outcome: Outcome
    slots: int

    def stages(self) -> Iterator[tuple[StageWork, StageRun, float]]:
        """Each stage run with its events and how long it took in the replay."""
        runs = {(run.id, run.attempt): run for run in self.trace.stages}
        for stage, (first, last) in zip(self.work.stages, self.outcome.stages, strict=True):
            yield stage, runs[(stage.id, stage.attempt)], max(last - first, 0.0)

    def saved(self, stage: StageWork, changed: StageWork, span_s: float) -> float:
        """What a changed stage saves, at most its own time."""
        before, after = makespan(chains(stage), self.slots), makespan(chains(changed), self.slots)
        return float(np.clip(before - after, 0.0, span_s))


def find_all(trace: Trace, work: Work, outcome: Outcome, slots: int) -> list[Saving]:
    """Every finding that can be felt, those that cost most first, those without seconds last."""
    scene = Scene(trace, work, outcome, max(slots, 1))
    felt_s = max(FELT_S, FELT_SHARE * trace.wall_s) if trace.wall_s > 10 else 0.05
    found = [
        saving
        for finder in FINDERS
        for saving in finder(scene)
        if saving.seconds is None or saving.seconds >= felt_s or saving.kind in ALWAYS
    ]
    return sorted(found, key=lambda s: (s.seconds is None, -(s.seconds or 0.0), s.kind))


def _driver(scene: Scene) -> Iterator[Saving]:
    """Time in which no job runs."""
    spans = sorted((j.submitted_ms, j.ended_ms or j.submitted_ms) for j in scene.trace.jobs)
    if not spans or scene.trace.streaming:
        return  # between micro-batches, a driver waits for its trigger
    gaps: list[tuple[float, float]] = []
    end = scene.trace.start_ms
    for first, last in spans:
        gaps.append((max(first - end, 0) / 1000, (end - scene.trace.start_ms) / 1000))
        end = max(end, last)
    after_s = max(scene.trace.end_ms - end, 0) / 1000
    before_s, between = gaps[0][0], gaps[1:]
    between_s = sum(gap for gap, _ in between)
    total_s = min(before_s + between_s + after_s, scene.trace.wall_s)
    largest = sorted(between, reverse=True)[:WHERE_MOST]
    where = ", ".join(f"{duration(gap)} after {duration(at)}" for gap, at in largest if gap > 0)
    share = total_s / scene.trace.wall_s if scene.trace.wall_s else 0.0
    evidence = (
        f"no job runs for {duration(total_s)}, {share:.0%} of the time: {before_s:.3g} s before "
        f"the first, {between_s:.3g} s between jobs, {after_s:.3g} s after the last"
        + (f"; the longest pauses: {where}" if where else "")
    )
    yield Saving("driver", None, total_s, evidence, {"share": share, "between_s": between_s})


def _few_tasks(scene: Scene) -> Iterator[Saving]:
    """Stages with fewer tasks than slots."""
    for stage, run, span_s in scene.stages():
        count = len(stage.task_s)
        if count >= scene.slots or span_s == 0:
            continue
        cost = tasks.task_cost(stage, run)
        work_s = float(np.maximum(stage.task_s - cost.fixed_s, 0).sum())
        spread_s = work_s / scene.slots + cost.fixed_s
        seconds = float(np.clip(makespan(chains(stage), scene.slots) - spread_s, 0, span_s))
        evidence = (
            f"{plural(count, 'task')} for {scene.slots} slots: {scene.slots - count} have nothing "
            f"to do for {duration(span_s)}; cut finer it would take {duration(spread_s)}"
        )
        yield Saving("few-tasks", _name(run), seconds, evidence, {"tasks": count})


def _tiny_tasks(scene: Scene) -> Iterator[Saving]:
    for stage, run, span_s in scene.stages():
        count, middle_s = len(stage.task_s), float(np.median(stage.task_s))
        if count < 2 * scene.slots or middle_s > TINY_S:
            continue
        cost = tasks.task_cost(stage, run)
        merged = tasks.repartition(stage, 2 * scene.slots, cost)
        share = min(cost.fixed_s / middle_s, 1.0) if middle_s else 1.0
        evidence = (
            f"{count} tasks of {duration(middle_s)} (median) on {scene.slots} slots; "
            f"{share:.0%} of that is spent around the work"
        )
        yield Saving("tiny-tasks", _name(run), scene.saved(stage, merged, span_s), evidence)


def _skew(scene: Scene) -> Iterator[Saving]:
    """Keys with more records than others: only a shuffle has keys."""
    for stage, run, span_s in scene.stages():
        shuffled = run.attempts.total("shuffle_records") or run.attempts.total("shuffle_bytes")
        sizes = tasks.size_of_tasks(stage)
        if not shuffled or sizes is None or len(sizes) < 2:
            continue
        middle = float(np.median(sizes))
        ratio = float(sizes.max()) / middle if middle else float("inf")
        share = float(sizes.max() / sizes.sum())
        if ratio < SKEWED or share < SKEWED / len(sizes):
            continue
        unit = "records" if stage.records is sizes else "bytes"
        most = int(np.argmax(sizes))
        evidence = (
            f"its largest task reads {share:.0%} of the {unit}, an even share is "
            f"{1 / len(sizes):.1%}; it takes {duration(float(stage.task_s[most]))}, the median "
            f"task {duration(float(np.median(stage.task_s)))}"
        )
        seconds = scene.saved(stage, tasks.evened(stage), span_s)
        yield Saving("skew", _name(run), seconds, evidence, {"share": share})


def _stragglers(scene: Scene) -> Iterator[Saving]:
    """Tasks that are slower than what they read explains."""
    for stage, run, span_s in scene.stages():
        changed = tasks.without_stragglers(stage)
        slow = int((stage.task_s > SKEWED * np.maximum(changed.task_s, 1e-9)).sum())
        if not slow:
            continue
        evidence = (
            f"{slow} of {len(stage.task_s)} tasks: more than twice as long as others that read as "
            f"much: {duration(float(stage.task_s.max()))} against a median of "
            f"{duration(float(np.median(stage.task_s)))}; a machine, or what a row costs"
        )
        yield Saving("stragglers", _name(run), scene.saved(stage, changed, span_s), evidence)


def _spill(scene: Scene) -> Iterator[Saving]:
    for _, run, span_s in scene.stages():
        spilled = run.attempts.total("spilled_disk")
        if not spilled:
            continue
        rows = run.attempts.status == SUCCEEDED
        on_disk = run.attempts.metrics["spilled_disk"][rows]
        took = run.attempts.duration_ms[rows] / 1000
        seconds: float | None = None
        if (on_disk > 0).any() and (on_disk == 0).any():
            usual = float(np.median(took[on_disk == 0]))
            extra = np.maximum(took[on_disk > 0] - usual, 0).sum() / scene.slots
            seconds = float(np.clip(extra, 0, span_s))
        spillers = int((on_disk > 0).sum())
        evidence = (
            f"{spillers} of {len(on_disk)} tasks wrote {data_size(spilled)} to disk "
            "for want of memory: more memory per task, or more and smaller tasks"
        )
        yield Saving("spill", _name(run), seconds, evidence, {"disk_bytes": spilled})


def _garbage(scene: Scene) -> Iterator[Saving]:
    """Garbage collection, per job: it is a job that holds the memory."""
    spans = {(s.id, s.attempt): (run, span) for s, run, span in scene.stages()}
    for job in scene.work.jobs:
        gc = took = span_s = 0.0
        for place in job.stages:
            stage = scene.work.stages[place]
            run, span = spans[(stage.id, stage.attempt)]
            spent, ran = run.attempts.metrics["gc_ms"], run.attempts.metrics["run_ms"]
            both = np.isfinite(spent) & np.isfinite(ran)
            gc += float(np.minimum(spent[both], ran[both]).sum())
            took += float(ran[both].sum())
            span_s += span
        if took and (share := gc / took) >= GC:
            evidence = (
                f"job {job.id}: {share:.0%} of its tasks' time is garbage collection: "
                "its executors are short of memory, or its tasks make many objects"
            )
            yield Saving("gc", None, share * span_s, evidence, {"share": share, "job": job.id})


def _failures(scene: Scene) -> Iterator[Saving]:
    """Work done twice: attempts that failed, and what the application would take without them."""
    failed = killed = 0
    wasted_s = 0.0
    where: list[str] = []
    for _, run, _ in scene.stages():
        status = run.attempts.status
        failed += int((status == FAILED).sum())
        killed += int((status == KILLED).sum())
        wasted_s += float(run.attempts.duration_ms[status != SUCCEEDED].sum()) / 1000
        if (status == FAILED).any():
            where.append(str(run.id))
    if not failed and not killed:
        return
    clean = [replace(s, retries={}, copies=()) for s in scene.work.stages]
    again = replay(replace(scene.work, stages=tuple(clean)))
    seconds = max(scene.outcome.wall_s - again.wall_s, 0.0)
    if failed:
        named = ", ".join(where[:5]) + (" .." if len(where) > 5 else "")
        evidence = (
            f"{plural(failed, 'attempt')} failed in stage {named}; failed and killed attempts held "
            f"slots for {duration(wasted_s)}"
        )
        yield Saving("failed", None, seconds, evidence, {"attempts": failed, "slot_s": wasted_s})
    else:
        evidence = (
            f"{plural(killed, 'attempt')} killed (speculation, or a stage given up), which held "
            f"slots for {duration(wasted_s)}"
        )
        yield Saving("speculated", None, seconds, evidence, {"attempts": killed})


def _idle(scene: Scene) -> Iterator[Saving]:
    """Executors that are there and have nothing to do: they cost money, not time."""
    held_s = scene.outcome.core_s
    cores = sum(s.cores for s in scene.work.fleet)
    slots = sum(s.slots for s in scene.work.fleet)
    busy_s = scene.outcome.busy_slot_s * (cores / slots if slots else 1.0)
    if not held_s or (share := min(busy_s / held_s, 1.0)) >= IDLE:
        return
    evidence = (
        f"cores are in use {share:.0%} of the time that they are held: "
        f"{(held_s - busy_s) / 3600:.3g} of {held_s / 3600:.3g} core-hours do nothing"
    )
    yield Saving("idle", None, 0.0, evidence, {"busy": share})


def _lost(scene: Scene) -> Iterator[Saving]:
    """Executors that went away unasked; those that dynamic allocation gave back are not lost."""
    lost = [
        span
        for span in scene.trace.executors
        if span.removed_ms is not None
        and span.removed_ms < scene.trace.end_ms
        and not given_back(span.removed_reason)
    ]
    if lost:
        reason = (lost[0].removed_reason or "no reason given").splitlines()[0][:120]
        evidence = f"{plural(len(lost), 'executor')} lost before the end, the first: {reason}"
        yield Saving("lost", None, None, evidence, {"executors": len(lost)})


def _locality(scene: Scene) -> Iterator[Saving]:
    """Tasks far from their data, against what chance gives on the hosts that there really were."""
    used = {int(e) for run in scene.trace.stages for e in set(run.attempts.executor.tolist())}
    hosts = {scene.trace.executor_hosts[e] for e in used}
    if len(hosts) < 2:
        return
    for _, run, span_s in scene.stages():
        a = run.attempts
        ok = a.status == SUCCEEDED
        near, far = ok & ((a.locality == 0) | (a.locality == 1)), ok & (a.locality >= 3)
        if near.sum() < 3 or far.sum() < 3:
            continue
        held = a.duration_ms / 1000
        extra = float(np.median(held[far]) - np.median(held[near]))
        seconds = float(np.clip(extra * far.sum() / scene.slots, 0, span_s))
        evidence = (
            f"{int(far.sum())} of {int(ok.sum())} tasks ran away from their data, on "
            f"{len(hosts)} hosts; they take {duration(max(extra, 0))} longer (median)"
        )
        if extra > 0:
            yield Saving("locality", _name(run), seconds, evidence)


def _input(scene: Scene) -> Iterator[Saving]:
    """Files that are too small, and tasks that read too much."""
    trace = scene.trace
    if trace.files_read and trace.file_bytes and trace.files_read >= 10:
        mean = trace.file_bytes / trace.files_read
        if mean < SMALL_FILE and trace.files_read > 2 * scene.slots:
            count, each = f"{trace.files_read:,.0f}", data_size(mean)
            evidence = f"{count} files of {each} (mean) are read; write fewer"
            yield Saving("small-files", None, None, evidence, {"files": trace.files_read})
    for stage, run, _ in scene.stages():
        read = run.attempts.metrics["input_bytes"]
        known = read[np.isfinite(read)]
        if len(known) and known.max() > LARGE_TASK:
            evidence = (
                f"a task reads {data_size(float(known.max()))}; "
                f"the stage {data_size(float(known.sum()))} in "
                f"{plural(len(stage.task_s), 'task')}: smaller splits would share it out"
            )
            yield Saving("input", _name(run), None, evidence, {"bytes": float(known.max())})


def _name(run: StageRun) -> str:
    again = f".{run.attempt}" if run.attempt else ""
    return f"{run.id}{again} ({run.name})"


ALWAYS = ("idle",)
FINDERS: tuple[Callable[[Scene], Iterator[Saving]], ...] = (
    _driver,
    _few_tasks,
    _tiny_tasks,
    _skew,
    _stragglers,
    _spill,
    _garbage,
    _failures,
    _idle,
    _lost,
    _locality,
    _input,
)
