"""How many trees a fluid has completed: when the tuples of each moment leave every queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import Problem
from headrace.solve.simulation.fluid import Fluid

MOST_GROUPS = 64  # of the cells of a component; cells of like load are one
MOST_IN_ALL = 4000  # where there are many components, each has fewer groups
ON_TIME = 0.25  # spans that the tuples of a group wait at most where its queue does not matter
ROUNDS = 8  # in which streams that lead back are followed


@dataclass(frozen=True, eq=False)
class Queue:
    """What a group of cells has got and served until each moment, K spans."""

    got: Floats  # [K + 1]
    passed: Floats  # [K + 1]
    share: float  # of its component's tuples
    tasks: float

    def left_by_then(self) -> Floats:
        """The share of what came in a span that has left at the end of another, [end, arrival]."""
        came = np.diff(self.got)
        over = self.passed[1:, None] - self.got[:-1]
        return np.where(came > 0, np.clip(over / np.where(came > 0, came, 1.0), 0, 1), over >= 0)

    @cached_property
    def exits(self) -> Floats:
        """Where on the axis of spans that leaves which arrives in the middle of each one, [K]."""
        spans = np.arange(len(self.got))
        middle = (self.got[:-1] + self.got[1:]) / 2
        return np.maximum(np.interp(middle, self.passed, spans), spans[:-1] + 0.5)

    @property
    def most_behind(self) -> float:
        """Spans that a tuple waits at most."""
        return float((self.exits - np.arange(len(self.exits)) - 0.5).max(initial=0.0))


class Trees:
    """What every group of cells got and served, span by span, and the trees that follow from it.

    Queues are first come, first served, so a tuple leaves once its group has served all that came
    before it. Its tree is complete if it left, and if the trees of all that follow from it are:
    each of them goes to a group by chance, when its sender leaves.
    """

    def __init__(self, problem: Problem, fluid: Fluid, tasks: Ints, copies: Floats) -> None:
        self._problem, self._fluid, self._copies = problem, fluid, copies
        group = _group_cells(fluid)
        groups = int(group.max(initial=0)) + 1
        self._group, self._groups = group, groups
        self._component = np.zeros(groups, np.int64)
        self._component[group] = fluid.component
        self._share = totals(group, fluid.share, groups)
        self._tasks = totals(group, tasks.astype(np.float64), groups)
        self._broadcast = set(fluid.target[copies > 1].tolist())  # components
        self._got: list[Floats] = [np.zeros(groups)]
        self._passed: list[Floats] = [np.zeros(groups)]

    def note(self) -> None:
        """Write down what has passed until now."""
        passed = totals(self._group, self._fluid.passed, self._groups)
        waiting = totals(self._group, self._fluid.waiting, self._groups)
        self._passed.append(passed)
        self._got.append(passed + waiting)

    def completed(self) -> Floats:
        """Trees that are complete at the end of each span, [K]."""
        queues = self._queues()
        spans, stage = len(self._got) - 1, self._problem.stage
        # The chance that all that follows from a tuple is done at the end of a span, by the span
        # in which it arrives: [span of the end, span of the arrival]. For a tuple that one task of
        # a component gets, and for one that every task gets.
        one: dict[int, Floats] = {}
        every: dict[int, Floats] = {}
        back = stage[self._fluid.source] >= stage[self._fluid.target]
        owner = self._problem.topology
        cyclic = np.isin(owner, owner[self._fluid.source[back]])
        last_first = np.argsort(-stage, kind="stable")
        for c in [*last_first, *np.tile(last_first[cyclic[last_first]], ROUNDS)]:
            any_task, all_tasks = np.zeros((spans, spans)), np.ones((spans, spans))
            for queue in queues[c]:
                done = queue.left_by_then() * self._following_done(c, queue.exits, one, every)
                any_task += queue.share * done
                if c in self._broadcast:
                    all_tasks *= done**queue.tasks
            one[c] = any_task
            if c in self._broadcast:
                every[c] = all_tasks
        total = np.zeros(spans)
        for c in np.flatnonzero(self._problem.spout).tolist():
            total += one[c] @ np.diff(np.sum([queue.got for queue in queues[c]], axis=0))
        return np.maximum.accumulate(total)

    def _queues(self) -> list[list[Queue]]:
        """The queues of each component; groups that are never behind are one."""
        got, passed = np.stack(self._got, axis=1), np.stack(self._passed, axis=1)
        found: list[list[Queue]] = []
        for c in range(len(self._problem.tasks)):
            on_time: list[int] = []
            queues: list[Queue] = []
            for g in np.flatnonzero(self._component == c).tolist():
                queue = self._queue(got, passed, [g])
                if queue.most_behind <= ON_TIME:
                    on_time.append(g)
                else:
                    queues.append(queue)
            found.append([*queues, self._queue(got, passed, on_time)] if on_time else queues)
        return found

    def _queue(self, got: Floats, passed: Floats, groups: list[int]) -> Queue:
        return Queue(
            got[groups].sum(axis=0),
            passed[groups].sum(axis=0),
            float(self._share[groups].sum()),
            float(self._tasks[groups].sum()),
        )

    def _following_done(
        self, component: int, exits: Floats, one: Mapping[int, Floats], every: Mapping[int, Floats]
    ) -> Floats:
        """The chance that all is done that a tuple sends when it leaves.

        What leads back and was not looked at yet counts as done.
        """
        fluid = self._fluid
        chance = np.ones((len(exits), len(exits)))
        for s in np.flatnonzero(fluid.source == component).tolist():
            copies, gain = float(self._copies[s]), float(fluid.gain[s])
            known = (every if copies > 1 else one).get(int(fluid.target[s]))
            if known is not None:
                done = _at_places(known, exits)
                whole, part = divmod(gain / copies, 1.0)
                chance *= 1 - part + part * done
                if whole:
                    chance *= done if whole == 1 else done**whole
        return chance


def _group_cells(fluid: Fluid) -> Ints:
    """The group of each cell: of its component, and where there are many, of its load."""
    load = fluid.share * fluid.visits[fluid.component] * fluid.work_s
    node = totals(fluid.node, load, len(fluid.cores)) / np.maximum(fluid.cores, 1e-12)
    own = load / np.maximum(fluid.threads, 1e-12)
    order = np.lexsort((own, np.maximum(node[fluid.node], own), fluid.component))
    count = np.bincount(fluid.component)
    place = np.empty(len(order), np.int64)
    first = np.concatenate([[0], np.cumsum(count)])[:-1]
    place[order] = np.arange(len(order)) - first[fluid.component[order]]
    most = min(MOST_GROUPS, max(1, MOST_IN_ALL // len(count)))
    groups = np.minimum(count, most)
    before = np.concatenate([[0], np.cumsum(groups)])[:-1]
    c = fluid.component
    return before[c] + place * groups[c] // count[c]


def _at_places(done: Floats, places: Floats) -> Floats:
    """The columns of a table at places between the middles of its spans."""
    at = np.clip(places - 0.5, 0, done.shape[1] - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, done.shape[1] - 1)
    return done[:, low] * (1 - (at - low)) + done[:, high] * (at - low)
