"""How many trees a fluid has completed: when the tuples of each moment leave every queue."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import Problem
from headrace.solve.simulation.fluid import Fluid

MOST_GROUPS = 64  # of the cells of a component; cells of like load are one
ROUNDS = 8  # in which streams that lead back are followed


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
        got, passed = np.stack(self._got, axis=1), np.stack(self._passed, axis=1)
        left = [_left_by_then(got[g], passed[g]) for g in range(self._groups)]
        exits = [_exit_places(got[g], passed[g]) for g in range(self._groups)]
        spans, components = got.shape[1] - 1, len(self._problem.tasks)
        # The chance that all that follows from a tuple is done at the end of a span, by the span
        # in which it arrives: [span of the end, span of the arrival].
        one, every = ([np.ones((spans, spans)) for _ in range(components)] for _ in range(2))
        stage = self._problem.stage
        leads_back = any(stage[a] >= stage[b] for a, b in self._edges)
        for _ in range(ROUNDS if leads_back else 1):
            for c in np.argsort(-stage, kind="stable").tolist():
                any_task, all_tasks = np.zeros((spans, spans)), np.ones((spans, spans))
                for g in np.flatnonzero(self._component == c).tolist():
                    done = left[g] * self._following_done(c, exits[g], one, every)
                    any_task += float(self._share[g]) * done
                    all_tasks *= done ** float(self._tasks[g])
                one[c], every[c] = any_task, all_tasks
        total = np.zeros(spans)
        for c in np.flatnonzero(self._problem.spout).tolist():
            arrived = np.diff(got[self._component == c].sum(axis=0))
            total += one[c] @ arrived
        return np.maximum.accumulate(total)

    @property
    def _edges(self) -> list[tuple[int, int]]:
        return list(zip(self._fluid.source.tolist(), self._fluid.target.tolist(), strict=True))

    def _following_done(
        self, component: int, exits: Floats, one: list[Floats], every: list[Floats]
    ) -> Floats:
        """The chance that all is done that a tuple sends when it leaves."""
        fluid = self._fluid
        chance = np.ones_like(one[component])
        for s in np.flatnonzero(fluid.source == component).tolist():
            copies, gain = float(self._copies[s]), float(fluid.gain[s])
            target = int(fluid.target[s])
            done = _at_places((every if copies > 1 else one)[target], exits)
            whole, part = divmod(gain / copies, 1.0)
            chance *= done**whole * (1 - part + part * done)
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
    groups = np.minimum(count, MOST_GROUPS)
    before = np.concatenate([[0], np.cumsum(groups)])[:-1]
    c = fluid.component
    return before[c] + place * groups[c] // count[c]


def _left_by_then(got: Floats, passed: Floats) -> Floats:
    """The share of what arrived in a span that has left at the end of another, [end, arrival]."""
    came, ahead = np.diff(got), got[:-1]
    over = passed[1:, None] - ahead
    return np.where(came > 0, np.clip(over / np.where(came > 0, came, 1.0), 0, 1), over >= 0)


def _exit_places(got: Floats, passed: Floats) -> Floats:
    """Where on the axis of spans that leaves which arrives in the middle of each one, [K]."""
    middle = (got[:-1] + got[1:]) / 2
    return np.maximum(
        np.interp(middle, passed, np.arange(len(passed))), np.arange(len(middle)) + 0.5
    )


def _at_places(done: Floats, places: Floats) -> Floats:
    """The columns of a table at places between the middles of its spans."""
    at = np.clip(places - 0.5, 0, done.shape[1] - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, done.shape[1] - 1)
    return done[:, low] * (1 - (at - low)) + done[:, high] * (at - low)
