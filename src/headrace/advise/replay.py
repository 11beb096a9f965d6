"""The slots of an application, simulated: which task runs when, event by event.

Spark's scheduler is a list scheduler: a free slot takes the next task of the first stage that has
one, jobs in the order of their submission (or, under FAIR, the pool that runs fewest). Nothing here
reads a clock of the log: times come out of durations, dependencies, slots and driver time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headrace.advise.work import Slots, StageWork, Work

SUBMIT, OPEN, START, FINISH, COMPLETE, ADD, REMOVE, GROW, SHRINK = range(9)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Dynamic allocation: executors asked for while tasks wait, given back when idle."""

    least: int
    most: int
    initial: int
    slots: int  # per executor
    cores: int
    starts_s: float  # from the request until an executor takes tasks
    first_s: float  # when the initial ones are there
    backlog_s: float = 1.0
    idle_s: float = 60.0
    profile: int = 0


NO_ALLOCATION = Allocation(0, 0, 0, slots=1, cores=0, starts_s=0.0, first_s=0.0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the replay gives; spans are seconds from the start of the application."""

    wall_s: float
    core_s: float  # cores held, over time
    busy_slot_s: float  # slots in use, over time
    stages: tuple[tuple[float, float], ...]  # [stages] submitted and completed
    jobs: tuple[tuple[float, float], ...]
    most_executors: int
    starved: bool  # tasks waited for executors that the log had removed by then


@dataclass(slots=True)
class Running:
    """A stage whose tasks are given out."""

    stage: int
    rank: tuple[int, int]  # the job's id, then the stage's
    pool: str
    pending: deque[tuple[float, int]]  # what a task takes, and which it is (-1: nobody waits)
    left: int  # tasks that the stage still waits for
    cold_s: tuple[float, ...] = ()
    busy: int = 0
    given: int = 0  # tasks given out
    retries: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


class Replay:
    """One simulation; `run` gives its outcome."""

    def __init__(
        self, work: Work, fleet: Sequence[Slots] = (), allocation: Allocation = NO_ALLOCATION
    ) -> None:
        self.work = work
        self.allocation = allocation
        self.events: list[tuple[float, int, int, int, int]] = []  # time, order, kind, what, which
        self.order = 0
        self.fleet = list(fleet)
        self.free: dict[int, int] = {}
        self.slots: dict[int, int] = {}  # free or not
        self.open: dict[int, list[Running]] = {}
        self.running: dict[int, Running] = {}
        self.pool_busy: dict[str, int] = {}
        self.stage_span: list[list[float]] = [[0.0, 0.0] for _ in work.stages]
        self.job_span: list[list[float]] = [[0.0, 0.0] for _ in work.jobs]
        self.job_waits = [len(job.waits) for job in work.jobs]
        self.stage_waits = [len(stage.waits) for stage in work.stages]
        self.stages_left = [len(job.stages) for job in work.jobs]
        self.job_of = {stage: j for j, job in enumerate(work.jobs) for stage in job.stages}
        self.after_job = _followers(job.waits for job in work.jobs)
        self.after_stage = _followers(stage.waits for stage in work.stages)
        self.busy_slot_s = self.core_s = 0.0
        self.unfinished = len(work.jobs)
        self.end_s = 0.0
        self.starved = False
        self.executors = self.asked = self.most = 0
        self.held_since = 0.0
        self.step = 1
        self.growing = False
        self.idle: deque[tuple[float, int]] = deque()  # since when so many slots were free
        self.free_before = 0  # what was free before the first of them: nobody was there

    def run(self) -> Outcome:
        for j, waits in enumerate(self.job_waits):
            if waits == 0:
                self.push(self.work.jobs[j].delay_s, SUBMIT, j)
        for i, slots in enumerate(self.fleet):
            self.push(slots.takes_tasks_s, ADD, i)
            if slots.removed_s is not None:
                self.push(slots.removed_s, REMOVE, i)
        if self.allocation.most:
            self.start_allocation(self.allocation)
        handlers = (
            self.submit,
            self.open_stage,
            self.start_tasks,
            self.finish,
            self.complete,
            self.add,
            self.remove,
            self.grow,
            self.shrink,
        )
        while self.unfinished:
            if not self.events:
                self.feed_the_starved()
                continue
            now, _, kind, what, which = heapq.heappop(self.events)
            handlers[kind](now, what, which)
        wall_s = self.end_s + self.work.tail_s
        self.give_back_until(wall_s)
        return Outcome(
            wall_s=wall_s,
            core_s=self.cores_held(wall_s),
            busy_slot_s=self.busy_slot_s,
            stages=tuple((a, b) for a, b in self.stage_span),
            jobs=tuple((a, b) for a, b in self.job_span),
            most_executors=self.most + len(self.fleet),
            starved=self.starved,
        )

    def push(self, at: float, kind: int, what: int, which: int = 0) -> None:
        self.order += 1
        heapq.heappush(self.events, (at, self.order, kind, what, which))

    # Jobs and stages

    def submit(self, now: float, job: int, _: int) -> None:
        self.job_span[job][0] = now
        if not self.stages_left[job]:
            self.push(now + self.work.jobs[job].tail_s, COMPLETE, -1, job)
        for stage in self.work.jobs[job].stages:
            if self.stage_waits[stage] == 0:
                self.push(now + self.work.stages[stage].delay_s, OPEN, stage)

    def open_stage(self, now: float, stage: int, _: int) -> None:
        self.stage_span[stage][0] = now
        self.push(now + self.work.stage_start_s, START, stage)

    def start_tasks(self, now: float, stage: int, _: int) -> None:
        todo: StageWork = self.work.stages[stage]
        job = self.job_of[stage]
        pending = deque(zip(todo.task_s.tolist(), range(len(todo.task_s)), strict=True))
        pending.extend((copy, -1) for copy in todo.copies)
        opened = Running(
            stage,
            (self.work.jobs[job].id, todo.id),
            self.work.jobs[job].pool,
            pending,
            len(todo.task_s),
            todo.cold_s,
            retries={task: list(more) for task, more in todo.retries.items()},
        )
        self.running[stage] = opened
        queue = self.open.setdefault(todo.profile, [])
        queue.append(opened)
        queue.sort(key=lambda r: r.rank)
        self.give_out(now, todo.profile)

    def give_out(self, now: float, profile: int) -> None:
        """Free slots take tasks."""
        queue, free = self.open.get(profile), self.free.get(profile, 0)
        while queue and free > 0:
            chosen = min(queue, key=self.fair_rank) if self.work.fair else queue[0]
            if not chosen.pending:
                queue.remove(chosen)
                continue
            takes, task = chosen.pending.popleft()
            if chosen.cold_s:
                wave = chosen.given // max(self.slots.get(profile, 1), 1)
                takes += chosen.cold_s[wave] if wave < len(chosen.cold_s) else 0.0
            chosen.given += 1
            chosen.busy += 1
            free -= 1
            self.busy_slot_s += takes
            if self.work.fair:
                self.pool_busy[chosen.pool] = self.pool_busy.get(chosen.pool, 0) + 1
            self.order += 1
            heapq.heappush(self.events, (now + takes, self.order, FINISH, chosen.stage, task))
        self.free[profile] = free
        if self.allocation.most and profile == self.allocation.profile:
            self.watch(now, self.allocation)

    def fair_rank(self, running: Running) -> tuple[bool, int, tuple[int, int]]:
        return (not running.pending, self.pool_busy.get(running.pool, 0), running.rank)

    def finish(self, now: float, stage: int, task: int) -> None:
        running, profile = self.running[stage], self.work.stages[stage].profile
        running.busy -= 1
        self.free[profile] += 1
        if self.work.fair:
            self.pool_busy[running.pool] -= 1
        if task >= 0:
            if more := running.retries.get(task):
                if not running.pending and running not in self.open[profile]:
                    self.open[profile].append(running)
                    self.open[profile].sort(key=lambda r: r.rank)
                running.pending.append((more.pop(0), task))
            else:
                running.left -= 1
                if running.left == 0:
                    self.push(now + self.work.stages[stage].tail_s, COMPLETE, stage)
        self.give_out(now, profile)

    def complete(self, now: float, stage: int, job: int) -> None:
        if stage >= 0:
            self.stage_span[stage][1] = now
            job = self.job_of[stage]
            self.stages_left[job] -= 1
            for follower in self.after_stage.get(stage, ()):
                self.stage_waits[follower] -= 1
                if self.stage_waits[follower] == 0:
                    self.push(now + self.work.stages[follower].delay_s, OPEN, follower)
            if self.stages_left[job] == 0:
                self.push(now + self.work.jobs[job].tail_s, COMPLETE, -1, job)
            return
        self.job_span[job][1] = now
        self.unfinished -= 1
        self.end_s = max(self.end_s, now)
        for follower in self.after_job.get(job, ()):
            self.job_waits[follower] -= 1
            if self.job_waits[follower] == 0:
                self.push(now + self.work.jobs[follower].delay_s, SUBMIT, follower)

    # Executors

    def add(self, now: float, what: int, count: int) -> None:
        """Executors arrive: one of the fleet, or -1 with how many dynamic allocation asked for."""
        if what >= 0:
            profile, slots = self.fleet[what].profile, self.fleet[what].slots
        else:
            self.hold(now, count)
            profile, slots = self.allocation.profile, self.allocation.slots * count
        self.change_slots(profile, slots)
        self.give_out(now, profile)

    def change_slots(self, profile: int, change: int) -> None:
        self.free[profile] = self.free.get(profile, 0) + change
        self.slots[profile] = self.slots.get(profile, 0) + change

    def remove(self, now: float, what: int, _: int) -> None:
        gone = self.fleet[what]
        # Below zero: slots still at work, which go when their tasks are done.
        self.change_slots(gone.profile, -gone.slots)

    def hold(self, now: float, change: int) -> None:
        self.core_s += self.executors * self.allocation.cores * (now - self.held_since)
        self.held_since = now
        self.executors += change
        self.most = max(self.most, self.executors)

    def cores_held(self, wall_s: float) -> float:
        self.hold(max(wall_s, self.held_since), 0)
        held = self.core_s
        for slots in self.fleet:
            until = wall_s if slots.removed_s is None else min(slots.removed_s, wall_s)
            held += slots.cores * max(until - slots.added_s, 0)
        return held

    def feed_the_starved(self) -> None:
        """Tasks wait and no executor is to come: the log's own came at times that are not ours.

        The missing ones stay until the work is done.
        """
        self.starved = True
        for profile, queue in self.open.items():
            if any(running.pending for running in queue):
                alike = [s.slots for s in self.fleet if s.profile == profile]
                alike = alike or [s.slots for s in self.fleet] or [1]
                self.change_slots(profile, max(alike) - min(self.free.get(profile, 0), 0))
                self.give_out(max(self.end_s, self.last_open()), profile)

    def last_open(self) -> float:
        return max((start for start, _ in self.stage_span), default=0.0)

    # Dynamic allocation

    def start_allocation(self, allocation: Allocation) -> None:
        initial = max(allocation.initial, allocation.least)
        self.asked = initial
        if initial:
            self.push(allocation.first_s, ADD, -1, initial)
        self.push(allocation.idle_s / 4, SHRINK, 0)

    def needed(self, allocation: Allocation) -> int:
        queue = self.open.get(allocation.profile, ())
        tasks = sum(len(r.pending) for r in queue)
        tasks += sum(r.busy for r in self.running.values() if r.busy)
        return -(-tasks // allocation.slots)

    def watch(self, now: float, allocation: Allocation) -> None:
        """Ask for executors when tasks have waited, one after the other twice as many."""
        self.idle.append((now, self.free.get(allocation.profile, 0)))
        waiting = any(r.pending for r in self.open.get(allocation.profile, ()))
        if waiting and not self.growing and self.asked < allocation.most:
            self.growing = True
            self.step = 1
            self.push(now + allocation.backlog_s, GROW, 0)

    def grow(self, now: float, _: int, __: int) -> None:
        allocation = self.allocation
        wanted = min(self.needed(allocation), allocation.most)
        more = min(self.step, wanted - self.asked)
        if more > 0 and any(r.pending for r in self.open.get(allocation.profile, ())):
            self.asked += more
            self.step *= 2
            self.push(now + allocation.starts_s, ADD, -1, more)
            self.push(now + allocation.backlog_s, GROW, 0)
        else:
            self.growing = False

    def shrink(self, now: float, _: int, __: int) -> None:
        """Give back executors that had nothing to do for the idle timeout."""
        allocation = self.allocation
        free = self.free.get(allocation.profile, 0)
        while self.idle and self.idle[0][0] < now - allocation.idle_s:
            self.free_before = self.idle.popleft()[1]
        least = min([self.free_before, free, *(count for _, count in self.idle)])
        spare = min(least // allocation.slots, self.executors - allocation.least)
        if spare > 0:
            self.hold(now, -spare)
            self.asked -= spare
            self.change_slots(allocation.profile, -spare * allocation.slots)
            gone = spare * allocation.slots  # they are not free again when others are looked at
            self.free_before -= gone
            self.idle = deque((at, count - gone) for at, count in self.idle)
        if self.events:  # else nothing is left to come, and nobody to be idle for
            self.push(now + allocation.idle_s / 4, SHRINK, 0)

    def give_back_until(self, wall_s: float) -> None:
        """After the last job the driver is alone, and executors go one idle timeout later."""
        self.events.clear()
        step_s = self.allocation.idle_s / 4
        now = self.end_s + step_s
        while now < wall_s and self.executors > self.allocation.least:
            self.shrink(now, 0, 0)
            now += step_s


def replay(
    work: Work, fleet: Sequence[Slots] | None = None, allocation: Allocation = NO_ALLOCATION
) -> Outcome:
    """Run the work on a fleet (absent: its own), to which dynamic allocation may add."""
    return Replay(work, work.fleet if fleet is None else fleet, allocation).run()


def _followers(waits: Iterable[tuple[int, ...]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for i, before in enumerate(waits):
        for other in before:
            found.setdefault(other, []).append(i)
    return found
