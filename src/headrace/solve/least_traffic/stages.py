"""The stages of a search: first plans, repair of overloads, fewer nodes, and improvement."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.solve.least_traffic.construct import (
    BY_TRAFFIC,
    ROOMIEST,
    TIGHTEST,
    Recipe,
    build_plan,
    classes_by_size,
    nodes_by_size,
)
from headrace.solve.least_traffic.feasible import feasible
from headrace.solve.least_traffic.ledger import BEST_COST, BEST_NODES, REFUSED, REFUSED_COST

if TYPE_CHECKING:
    from headrace.model.arrays import Ints
    from headrace.solve.least_traffic.progress import Search
    from headrace.solve.least_traffic.terms import Terms


class Heat(NamedTuple):
    """Temperatures and prices of a round of annealing, in costs of an average refused change."""

    first: float
    last: float
    overload: float = 0.0  # price of overloading a node by one average task; 0: never
    node: float = 0.0  # price of one more node where nodes come first; 0: more than all traffic


ONE_COOLING = Heat(0.3, 0.001)  # where steps are scarce
# Else many rounds. In turn: mild heat, strong heat, and rounds that pass through what is otherwise
# forbidden, since hard limits can cut the plans into islands.
MILD, STRONG, THROUGH = Heat(0.25, 0.08), Heat(0.5, 0.02), Heat(0.25, 0.08, overload=1.5, node=0.5)
ROUNDS = (MILD, MILD, THROUGH, MILD, MILD, STRONG, MILD, MILD, MILD, MILD, STRONG, MILD)
STEPS_PER_CELL = 300  # of a round, at least; a cell is a class on a node
PATIENCE = 9  # rounds without a better plan before a search ends early

RECIPES = (
    Recipe(cut_weight=0.5, noise=0.0, tries=24, partial=False, manner=BY_TRAFFIC, by_pieces=True),
    Recipe(cut_weight=0.0, noise=0.0, tries=24, partial=True, manner=BY_TRAFFIC, by_pieces=True),
    Recipe(cut_weight=0.2, noise=0.2, tries=12, partial=False, manner=BY_TRAFFIC, by_pieces=True),
    Recipe(cut_weight=1.0, noise=0.2, tries=12, partial=True, manner=TIGHTEST, by_pieces=True),
    Recipe(cut_weight=0.0, noise=0.0, tries=1, partial=False, manner=TIGHTEST, by_pieces=False),
    Recipe(cut_weight=0.0, noise=0.0, tries=1, partial=False, manner=ROOMIEST, by_pieces=False),
)
PACKING = RECIPES[4]
RESCUES = 24  # blurred constructions tried before a problem is given up
RESCUE_CELLS = 4_000_000  # classes x nodes of all of them together; one is always tried
RESCUE_NOISE = 0.3  # how much those blur sizes
NODES_TRIED = 6  # of the emptiest, to do without one


def take_start(search: Search, x: Ints) -> None:
    """Remember a given plan if it is feasible; otherwise repair it."""
    rows = np.ascontiguousarray(x.T, dtype=np.int64)
    if feasible(search.instance, x):
        search.load(rows)
        search.anneal(1)
        return
    rows = np.where(search.terms.allowed, np.maximum(rows, 0), 0)
    rows = np.where(search.terms.apart[None, :], np.minimum(rows, 1), rows)
    before = np.cumsum(rows, axis=0) - rows
    rows = np.clip(search.terms.wanted[None, :] - before, 0, rows)  # no more tasks than there are
    search.load(rows)
    search.bench.left[:] = search.terms.wanted - rows.sum(axis=0)
    complete_plan(search, PACKING._replace(manner=BY_TRAFFIC), 200_000)


def build_first_plans(search: Search, budget: int, rescues: int = RESCUES) -> None:
    """Build plans from nothing; go on with other recipes as long as none is feasible."""
    cells = search.terms.allowed.size
    plans = int(np.clip(40_000 // cells, 1, len(RECIPES)))
    most_tries = max(1, 1_000_000 // cells)  # annealing forgets most of a large first plan
    repair_steps = max(budget // 4, 50_000)
    rescues = min(rescues, max(1, RESCUE_CELLS // cells))
    for number in range(plans + rescues):
        if number >= plans and search.found:
            return
        search.load(np.zeros_like(search.state.x))
        search.bench.left[:] = search.terms.wanted
        rescue = number >= len(RECIPES)
        recipe = RECIPES[2 + number % 4 if rescue else number]
        recipe = recipe._replace(tries=min(recipe.tries, most_tries))
        complete_plan(search, recipe, repair_steps, RESCUE_NOISE if rescue else 0.0)


def complete_plan(search: Search, recipe: Recipe, repair_steps: int, noise: float = 0.0) -> None:
    """Place what is missing in the loaded plan and repair it; remember it if it is feasible."""
    nodes_in_order = nodes_by_size(search.terms, search.rng, noise)
    classes_in_order = classes_by_size(search.terms, search.rng, noise)
    build_plan(
        search.terms,
        search.state,
        search.bench,
        recipe,
        nodes_in_order,
        classes_in_order,
        search.ledger.rng,
    )
    if search.bench.left.any():
        return
    search.load(search.state.x.copy())
    repair(search, repair_steps)
    if not search.overloaded:
        search.load(search.state.x.copy())
        search.anneal(1)


def repair(search: Search, steps: int) -> None:
    """Anneal overloads away; traffic only breaks ties."""
    if not search.overloaded:
        return
    terms = search.terms
    task = average_task(terms)
    price = (1.0 + 10 * search.instance.total_weight) / task
    search.terms = terms._replace(node_price=0.0)
    try:
        hot, cold = price * task * 0.3, price * task * 0.003
        search.anneal(steps, hot, cold, over_price=price, until_fits=True)
    finally:
        search.terms = terms


def average_task(terms: Terms) -> float:
    """The overload that an average task makes on a full node."""
    return float((terms.demand.mean(axis=0) @ terms.unit).mean()) + 1e-9


def drop_nodes(search: Search, budget: int) -> None:
    """Empty one node after the other as long as the rest can take its tasks."""
    terms = search.terms
    while True:
        rows = search.ledger.best.copy()
        busy = np.nonzero(rows.sum(axis=1))[0]
        load = (rows[busy] * terms.size[terms.node_type[busy]]).sum(axis=1)
        before = search.ledger.tally[BEST_NODES]
        for n in busy[np.argsort(load, kind="stable")][:NODES_TRIED]:
            open_nodes = terms.allowed & (rows.sum(axis=1) > 0)[:, None]
            open_nodes[n] = False
            others = rows.copy()
            others[n] = 0
            search.terms = terms._replace(allowed=open_nodes)
            try:
                search.load(others)
                search.bench.left[:] = terms.wanted - others.sum(axis=0)
                complete_plan(search, PACKING, max(budget // 20, 20_000))
            finally:
                search.terms = terms
            if search.ledger.tally[BEST_NODES] < before:
                break
        else:
            return


def rounds_of(terms: Terms, budget: int) -> int:
    """How many rounds of annealing the steps are enough for."""
    return int(np.clip(budget // (STEPS_PER_CELL * terms.allowed.size), 1, len(ROUNDS)))


def improve(search: Search, budget: int, cooling: Heat) -> None:
    """Anneal from the best plan so far: one long cooling if steps are scarce, else many rounds.

    Sparse task graphs want mild heat that never quite ends, all-to-all streams want more of both:
    measured on the unsymmetric instances of the benchmarks.
    """
    tally, terms = search.ledger.tally, search.terms
    search.resume()
    scale = average_refusal(search, min(20_000, budget // 10 + 1))
    rounds = rounds_of(terms, budget)
    each = budget // rounds
    idle = 0
    for number in range(rounds):
        if idle == PATIENCE:
            return
        before = tally[BEST_COST]
        heat = ROUNDS[number % len(ROUNDS)] if rounds > 1 else cooling
        search.resume()
        if heat.node and terms.node_rank:
            search.terms = terms._replace(node_price=heat.node * scale)
        try:
            search.anneal(
                each - each // 8,
                heat.first * scale,
                heat.last * scale,
                heat.overload * scale / average_task(terms),
            )
        finally:
            search.terms = terms
        repair(search, each // 16)
        search.anneal(each // 8)
        idle = 0 if tally[BEST_COST] < before - terms.tie else idle + 1


def average_refusal(search: Search, steps: int) -> float:
    """Cost of an average worsening change: what a descent of so many steps refuses."""
    tally, weight = search.ledger.tally, search.terms.weight
    tally[REFUSED_COST] = tally[REFUSED] = 0.0
    search.anneal(steps)
    if tally[REFUSED]:
        return float(tally[REFUSED_COST] / tally[REFUSED])
    return float(weight.mean()) if len(weight) else 1.0
