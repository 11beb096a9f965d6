"""A search under way: the plan it looks at, the best one so far, steps made, and the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.model.arrays import Ints
from headrace.model.progress import NOW
from headrace.solve.least_traffic.anneal import Cooling, anneal
from headrace.solve.least_traffic.construct import Bench, new_bench
from headrace.solve.least_traffic.ledger import (
    BEST_COST,
    COST,
    LOGGED,
    NOT_LOGGED,
    Ledger,
    new_ledger,
)
from headrace.solve.least_traffic.state import (
    State,
    empty_state,
    list_state,
    load_state,
    reload_state,
)
from headrace.solve.least_traffic.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.solve.instance import Instance

MANY_CELLS = 100_000  # classes x nodes: from here on, loading a plan takes long


class TaskList(NamedTuple):
    """What is where: tasks[i] of class_[i] on node[i]."""

    node: Ints
    class_: Ints
    tasks: Ints


class OutOfTime(Exception):
    """The deadline passed between two slices."""


@dataclass(slots=True, eq=False)
class Search:
    """A search under way: scratch arrays, the best plan so far, and the clock."""

    instance: Instance
    terms: Terms
    state: State
    ledger: Ledger
    bench: Bench
    rng: np.random.Generator
    slice_steps: int  # between two looks at the clock
    deadline: Callable[[], bool] | None
    made: int = 0

    @property
    def found(self) -> bool:
        """Whether any feasible plan is known."""
        return bool(np.isfinite(self.ledger.tally[BEST_COST]))

    @property
    def overloaded(self) -> bool:
        """Whether the loaded plan overloads any node."""
        return bool(self.state.over.any())

    def load(self, rows: Ints) -> None:
        """Continue from the counts rows[N, C]."""
        self.ledger.tally[COST] = load_state(self.terms, self.state, rows)
        self.ledger.tally[LOGGED] = NOT_LOGGED

    def load_list(self, tasks: TaskList) -> None:
        """The same where most classes are on few of many nodes."""
        self.ledger.tally[COST] = reload_state(self.terms, self.state, *tasks)
        self.ledger.tally[LOGGED] = NOT_LOGGED

    def list_tasks(self) -> TaskList:
        """The loaded plan."""
        tasks = TaskList(*np.zeros((3, int(self.state.contents.sum())), np.int64))
        list_state(self.state, *tasks)
        return tasks

    def resume(self) -> None:
        """Continue from the best plan, or from the loaded one if that is as good."""
        tally, many = self.ledger.tally, self.terms.allowed.size >= MANY_CELLS
        as_good = (
            not self.terms.node_rank
            and tally[COST] <= tally[BEST_COST] + self.terms.tie
            and not self.overloaded
        )
        if not (many and as_good):
            self.load(self.ledger.best)
            tally[LOGGED] = 0

    def anneal(
        self,
        steps: int,
        hot: float = 0.0,
        cold: float = 0.0,
        over_price: float = 0.0,
        until_fits: bool = False,
    ) -> None:
        """Anneal the loaded plan; see `Cooling`."""
        done = 0
        while done < steps:
            part = min(self.slice_steps, steps - done)
            cooling = Cooling(hot, cold, done / steps, part / steps, over_price, until_fits)
            made = anneal(self.terms, self.state, self.ledger, part, cooling)
            done += max(made, 1)
            self.made += made
            if self.found:
                NOW.best = float(self.ledger.tally[BEST_COST])
            if self.deadline is not None and self.deadline():
                raise OutOfTime
            if until_fits and not self.overloaded:
                return


def new_search(
    instance: Instance, terms: Terms, seed: int, deadline: Callable[[], bool] | None
) -> Search:
    """A search that has not seen any plan."""
    cells = terms.allowed.size
    # The best plan is copied after each slice.
    slice_steps = 50_000 if cells < MANY_CELLS else 200_000 if cells < 20 * MANY_CELLS else 500_000
    return Search(
        instance,
        terms,
        empty_state(terms),
        new_ledger(terms, seed, slice_steps),
        new_bench(terms),
        np.random.default_rng(seed),
        slice_steps,
        deadline,
    )
