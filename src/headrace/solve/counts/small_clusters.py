"""The exhaustive search on the load of a workload: its arrays, where it is, what it found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU, THREAD
from headrace.model.sizable import Load
from headrace.solve.counts.count_flow import count_flow
from headrace.solve.counts.exhaustive import Machines, Scratch, scratch_for, search_counts

PAUSE_STEPS = 1_000_000  # between two looks at the deadline


@dataclass(frozen=True, slots=True, eq=False)
class Exhaustive:
    """A search that can pause. B components that cost something, N nodes, in the search's order."""

    machines: Machines
    scratch: Scratch
    busy: Ints  # [B] components
    order: Ints  # [N] nodes, those alike side by side
    count: Ints  # [B] the counts to look at next
    best: Ints  # [B, N]
    best_factor: Floats  # [1]
    steps: Ints  # [1] taken so far

    @staticmethod
    def of(load: Load, busy: Ints, most_per_machine: int, *, limits: bool = False) -> Exhaustive:
        """A search from the fewest instances on; with `limits`, memory and separations are kept."""
        problem = load.problem
        key = np.column_stack([problem.node_type, problem.free, load.fits.T])
        order = np.lexsort(np.nan_to_num(key, posinf=1e300).T[::-1])
        like = np.append(False, (key[order][1:] == key[order][:-1]).all(axis=1))
        kept = np.arange(1, len(problem.resources) if limits else 1)
        machines = Machines(
            by_rate=np.ascontiguousarray(load.by_rate[np.ix_(busy, order)]),
            fixed=np.ascontiguousarray(load.fixed[np.ix_(busy, order)]),
            cpu=problem.free[order, CPU],
            may=np.ascontiguousarray(load.fits[np.ix_(busy, order)]),
            like_previous=like,
            most=most_per_machine,
            thread=THREAD,
            most_tasks=np.minimum(load.most[busy], most_per_machine * len(order)),
            apart=problem.apart[busy] & limits,
            other=np.ascontiguousarray(problem.demand[np.ix_(busy, kept)]),
            room=np.ascontiguousarray(problem.free[np.ix_(order, kept)]),
            component=busy,
            flow=count_flow(load.workload.flow, problem.rate),
        )
        return Exhaustive(
            machines,
            scratch_for(machines),
            busy,
            order,
            count=np.ones(len(busy), dtype=np.int64),
            best=np.zeros((len(busy), len(order)), dtype=np.int64),
            best_factor=np.zeros(1),
            steps=np.zeros(1, dtype=np.int64),
        )

    @property
    def spent(self) -> int:
        """Steps taken so far."""
        return int(self.steps[0])

    def look_on(self, most_steps: int) -> bool:
        """Look at some more counts; whether the search is over. Ends after so many steps in all."""
        left = np.array([most_steps - self.spent], dtype=np.int64)
        before = int(left[0])
        total = self.machines.most * len(self.order)
        over = search_counts(
            self.machines,
            self.scratch,
            self.count,
            total,
            self.best,
            self.best_factor,
            left,
            PAUSE_STEPS,
        )
        self.steps[0] += before - int(left[0])
        return over

    def instances(self, load: Load) -> Ints:
        """The best instances of every component on every node [C, N]; free ones where they may."""
        found = np.zeros(load.fits.shape, dtype=np.int64)
        found[np.ix_(self.busy, self.order)] = self.best
        for c in np.flatnonzero(~found.any(axis=1)).tolist():
            found[c, int(load.fits[c].argmax())] = 1
        return found


def list_busy(load: Load) -> Ints:
    """The components that cost something."""
    return np.flatnonzero(load.by_rate.any(axis=1) | load.fixed.any(axis=1))
