"""Anytime search for a plan with little crossing traffic, on counts of tasks per class and node.

The work grows with classes x nodes, not with tasks. A few constructions (`construct`) are repaired
where they overload a node; the best is annealed (`anneal`) for a number of steps that follows from
the problem's size. Of problems too large for many rounds of that, clusters of classes are placed
first, in the same way; their plan is the first one of the classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from headrace.model.arrays import TOLERANCE
from headrace.solve.least_traffic.anneal import Schedule, anneal
from headrace.solve.least_traffic.clusters import NOWHERE, clusters, merged
from headrace.solve.least_traffic.construct import (
    BY_TRAFFIC,
    ROOMIEST,
    TIGHTEST,
    Bench,
    Recipe,
    build,
    new_bench,
    nodes_descending,
    sizes_descending,
)
from headrace.solve.least_traffic.fit import (
    State,
    Terms,
    empty_state,
    feasible,
    list_state,
    load_state,
    reload_state,
    terms_of,
)
from headrace.solve.least_traffic.run import (
    BEST_COST,
    BEST_NODES,
    COST,
    LOGGED,
    NOT_LOGGED,
    REFUSED,
    REFUSED_COST,
    Run,
    new_run,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.model.arrays import Floats, Ints
    from headrace.solve.instance import Instance


class Heat(NamedTuple):
    """Temperatures and prices of a round of annealing, as multiples of what an average refused change would cost."""

    first: float
    last: float
    overload: float = 0.0  # price of overloading a node by one average task; 0: never
    node: float = 0.0  # price of one more node where nodes come first; 0: more than all traffic


# One cooling where steps are scarce: of classes from nothing, of clusters from nothing and from a
# plan, of classes where those have one.
COOLING, CLUSTER_COOLING, CLUSTER_AGAIN, CLASS_COOLING = (
    Heat(0.3, 0.001),
    Heat(0.3, 0.03),
    Heat(0.2, 0.03),
    Heat(0.2, 0.001),
)
# In turn: mild heat, strong heat, and rounds that pass through what is otherwise forbidden, since
# hard limits can cut the plans into islands.
MILD, STRONG, THROUGH = Heat(0.25, 0.08), Heat(0.5, 0.02), Heat(0.25, 0.08, overload=1.5, node=0.5)
ROUNDS = (MILD, MILD, THROUGH, MILD, MILD, STRONG, MILD, MILD, MILD, MILD, STRONG, MILD)

RECIPES = (
    Recipe(cut_weight=0.5, noise=0.0, tries=24, partial=False, manner=BY_TRAFFIC, grown=True),
    Recipe(cut_weight=0.0, noise=0.0, tries=24, partial=True, manner=BY_TRAFFIC, grown=True),
    Recipe(cut_weight=0.2, noise=0.2, tries=12, partial=False, manner=BY_TRAFFIC, grown=True),
    Recipe(cut_weight=1.0, noise=0.2, tries=12, partial=True, manner=TIGHTEST, grown=True),
    Recipe(cut_weight=0.0, noise=0.0, tries=1, partial=False, manner=TIGHTEST, grown=False),
    Recipe(cut_weight=0.0, noise=0.0, tries=1, partial=False, manner=ROOMIEST, grown=False),
)
PACKING = RECIPES[4]
CYCLES = 3  # of searching on clusters and then on classes, where steps are scarce
CLUSTER_SIZE = (0.5, 0.3)  # of an average node: in the first cycle, and in later ones
CLUSTER_STEPS = 0.4  # part of the steps spent on clusters
FEWER_CLUSTERS = 0.7  # per class, at most: else they are not worth it
SCARCE_CELLS, MANY_CELLS = (
    20_000,
    100_000,
)  # classes x nodes: where clusters pay, where loading a plan takes long
PATIENCE = 9  # rounds without a better plan before a search ends early
RESCUES = 24  # blurred constructions tried before a problem is given up


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best plan of a search."""

    x: Ints  # [C, N] tasks of a class on a node
    crossing: float  # inter-node tuples/s
    moving: float  # cost of the moves away from the current plan, in tuples/s; 0 without one
    nodes_used: int
    steps: int  # proposals made
    stopped: Literal["done", "deadline"]


class Placed(NamedTuple):
    """What stands where: tasks[i] of class_[i] on node[i]."""

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
    run: Run
    bench: Bench
    rng: np.random.Generator
    slice_steps: int  # between two looks at the clock
    deadline: Callable[[], bool] | None
    made: int = 0

    @property
    def found(self) -> bool:
        """Whether any feasible plan is known."""
        return bool(np.isfinite(self.run.tally[BEST_COST]))

    def load(self, rows: Ints) -> None:
        """Continue from the counts rows[N, C]."""
        self.run.tally[COST] = load_state(self.terms, self.state, rows)
        self.run.tally[LOGGED] = NOT_LOGGED

    def load_placed(self, placed: Placed) -> None:
        """The same where most classes are on few of many nodes."""
        self.run.tally[COST] = reload_state(self.terms, self.state, *placed)
        self.run.tally[LOGGED] = NOT_LOGGED

    def placed(self) -> Placed:
        """The loaded plan."""
        placed = Placed(*np.zeros((3, int(self.state.contents.sum())), np.int64))
        list_state(self.state, *placed)
        return placed

    def resume(self) -> None:
        """Continue from the best plan, or from the loaded one if that is as good."""
        tally, many = self.run.tally, self.terms.allowed.size >= MANY_CELLS
        as_good = (
            not self.terms.node_rank
            and tally[COST] <= tally[BEST_COST] + self.terms.tie
            and not self.state.over.any()
        )
        if not (many and as_good):  # loading takes long only where there are many nodes and classes
            self.load(self.run.best)
            tally[LOGGED] = 0

    def steps(
        self,
        steps: int,
        hot: float = 0.0,
        cold: float = 0.0,
        over_price: float = 0.0,
        until_fits: bool = False,
    ) -> None:
        """Anneal the loaded plan."""
        done = 0
        while done < steps:
            part = min(self.slice_steps, steps - done)
            schedule = Schedule(hot, cold, done / steps, part / steps, over_price, until_fits)
            made = anneal(self.terms, self.state, self.run, part, schedule)
            done += max(made, 1)
            self.made += made
            if self.deadline is not None and self.deadline():
                raise OutOfTime
            if until_fits and not self.state.over.any():
                return


def least_crossing_search(
    instance: Instance,
    *,
    starts: Sequence[Ints] = (),
    current: Ints | None = None,
    move_cost: Floats | None = None,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    seed: int = 0,
    prefer: str = "traffic",
) -> Found | None:
    """Counts x[C, N] with little crossing traffic (plus moving cost, if there is a `current` plan), or None if none was found.

    `prefer` "traffic": least traffic, then fewest nodes; "nodes": fewest nodes, then least traffic.
    Never worse than the best feasible one of `starts`. The same arguments give the same counts
    unless `deadline()` turns true, which `Found.stopped` then says.
    """
    if prefer not in ("traffic", "nodes"):
        raise ValueError(f"prefer {prefer!r} is neither traffic nor nodes")
    if hopeless(instance):
        return None
    search = new_search(instance, terms_of(instance, current, move_cost, prefer), seed, deadline)
    budget = default_steps(instance) if steps is None else steps
    stopped: Literal["done", "deadline"] = "done"
    try:
        for x in [*starts, *([current] if current is not None else [])]:
            take_start(search, x)
        if current is None and clusters_pay(search.terms, budget):
            plan_in_cycles(search, budget)
        else:
            first_plans(search, budget)
            if search.found:
                if prefer == "nodes":
                    drop_nodes(search, budget)
                improve(search, budget, COOLING)
    except OutOfTime:
        stopped = "deadline"
    return outcome(search, stopped, current, move_cost) if search.found else None


def polish(instance: Instance, x: Ints, *, steps: int = 200_000, seed: int = 0) -> Found | None:
    """The counts x[C, N], repaired where they overload nodes, after a descent without heat; None if repair fails."""
    search = new_search(instance, terms_of(instance), seed, None)
    take_start(search, x)
    if not search.found:
        return None
    search.load(search.run.best)
    search.steps(steps)
    return outcome(search, "done", None, None)


def hopeless(instance: Instance) -> bool:
    """Whether no plan can exist for a plain reason: a task fits nowhere, or all nodes together are too small."""
    limit = np.maximum(instance.capacity, 0.0) * (1 + TOLERANCE)
    fits = instance.allowed & (instance.slots > 0)[None, :]
    least = np.full(instance.demand.shape[1:], np.inf)  # [C, K] over the nodes where a task fits
    for y in range(len(instance.demand)):
        nodes = np.nonzero(instance.node_type == y)[0]
        for r in range(limit.shape[1]):
            fits[:, nodes] &= instance.demand[y, :, r][:, None] <= limit[nodes, r][None, :]
        reachable = np.any(fits[:, nodes], axis=1, keepdims=True)
        least = np.where(reachable, np.minimum(least, instance.demand[y]), least)
    wanted = np.nonzero(instance.count)[0]
    places = np.where(
        instance.apart, fits.sum(axis=1), np.where(fits.any(axis=1), instance.count, 0)
    )
    if (
        np.less(places, instance.count)[wanted].any()
        or (instance.memory > instance.heap[instance.group] * (1 + TOLERANCE))[wanted].any()
    ):
        return True
    needed = instance.count[wanted].astype(np.float64) @ least[wanted]
    return bool((needed > limit.sum(axis=0) * (1 + TOLERANCE)).any())


def default_steps(instance: Instance) -> int:
    """Proposals for a problem of this size: below a second for small ones, a second or two for a thousand nodes.

    Many classes need no more steps than few: clusters make up for it.
    """
    classes, nodes = instance.allowed.shape
    if nodes > 200:
        return int(np.clip(5_000 * min(classes, 600) + 2_000 * nodes, 2_000_000, 10_000_000))
    return int(
        np.clip(
            15_000 * classes * nodes,
            200_000,
            6_000_000 if classes * nodes < MANY_CELLS else 1_200_000,
        )
    )


def new_search(
    instance: Instance, terms: Terms, seed: int, deadline: Callable[[], bool] | None
) -> Search:
    """A search that has not seen any plan."""
    cells = terms.allowed.size
    slice_steps = (
        50_000 if cells < MANY_CELLS else 200_000 if cells < 20 * MANY_CELLS else 500_000
    )  # the best plan is copied after each
    return Search(
        instance,
        terms,
        empty_state(terms),
        new_run(terms, seed, slice_steps),
        new_bench(terms),
        np.random.default_rng(seed),
        slice_steps,
        deadline,
    )


def outcome(
    search: Search,
    stopped: Literal["done", "deadline"],
    current: Ints | None,
    move_cost: Floats | None,
) -> Found:
    """What a search found."""
    x = np.ascontiguousarray(search.run.best.T)
    moving = 0.0
    if current is not None and move_cost is not None:
        moving = float((move_cost * np.maximum(x - current, 0).sum(axis=1)).sum())
    return Found(
        x, search.instance.crossing(x), moving, int((x.sum(axis=0) > 0).sum()), search.made, stopped
    )


def take_start(search: Search, x: Ints) -> None:
    """Remember a given plan if it is feasible; otherwise repair it."""
    rows = np.ascontiguousarray(x.T, dtype=np.int64)
    if feasible(search.instance, x):
        search.load(rows)
        search.steps(1)
        return
    rows = np.where(search.terms.allowed, np.maximum(rows, 0), 0)
    rows = np.where(search.terms.apart[None, :], np.minimum(rows, 1), rows)
    before = np.cumsum(rows, axis=0) - rows
    rows = np.clip(search.terms.wanted[None, :] - before, 0, rows)  # no more tasks than there are
    search.load(rows)
    search.bench.left[:] = search.terms.wanted - rows.sum(axis=0)
    finish(search, PACKING._replace(manner=BY_TRAFFIC), 200_000)


def clusters_pay(terms: Terms, budget: int) -> bool:
    """Whether steps are scarce and cheap: where slots bind, a step takes longer the more a cluster holds, and little is gained."""
    return (
        terms.allowed.size >= SCARCE_CELLS and rounds_of(terms, budget) == 1 and not terms.slotted
    )


def plan_in_cycles(search: Search, budget: int) -> None:
    """Place clusters of classes, then the classes one by one; again with clusters of what stands together, and so on."""
    left = budget
    for cycle in range(CYCLES):
        clustered = place_clusters(search, int(CLUSTER_STEPS * budget / CYCLES), again=cycle > 0)
        if cycle == 0 and not clustered:
            first_plans(search, budget)
        if not search.found:
            return
        if cycle == 0 and search.terms.node_rank:
            drop_nodes(search, budget)
        if not clustered:
            improve(search, left, CLASS_COOLING if cycle else COOLING)
            return
        improve(search, budget // CYCLES - int(CLUSTER_STEPS * budget / CYCLES), CLASS_COOLING)
        left -= budget // CYCLES


def place_clusters(search: Search, steps: int, *, again: bool) -> bool:
    """Remember a plan found by searching on clusters of classes; whether there is one.

    `again`: clusters are of classes that the best plan has on one node as a whole, and the search
    starts from that plan.
    """
    instance = search.instance
    home = None
    if again:
        search.resume()
        home = np.where(search.state.holders == 1, search.state.holder[:, 0], NOWHERE)
    cluster = clusters(instance, CLUSTER_SIZE[again], home)
    if cluster.max(initial=0) + 1 > FEWER_CLUSTERS * len(cluster):
        return False
    smaller, each = merged(instance, cluster)
    prefer = "nodes" if search.terms.node_rank else "traffic"
    part = new_search(
        smaller, terms_of(smaller, prefer=prefer), int(search.rng.integers(2**31)), search.deadline
    )
    try:
        if again:
            part.load_placed(on_clusters(search.placed(), cluster, each))
            part.steps(1)
        else:
            first_plans(part, steps, rescues=2)
        if part.found:
            improve(part, steps, CLUSTER_AGAIN if again else CLUSTER_COOLING)
    finally:
        search.made += part.made
        if part.found:
            part.resume()
            search.load_placed(on_classes(part.placed(), cluster, each))
            repair(search, steps)
            search.steps(1)
    return part.found and not search.state.over.any()


def on_clusters(placed: Placed, cluster: Ints, each: Ints) -> Placed:
    """A plan of classes as one of clusters; every class of a cluster stands where the others do, so the first one is asked."""
    first = np.unique(cluster, return_index=True)[1]
    asked = first[cluster[placed.class_]] == placed.class_
    node, class_, tasks = (values[asked] for values in placed)
    return Placed(node, cluster[class_], tasks // each[class_])


def on_classes(placed: Placed, cluster: Ints, each: Ints) -> Placed:
    """A plan of clusters as one of classes."""
    members = np.argsort(cluster, kind="stable")
    first = np.searchsorted(cluster[members], np.arange(len(cluster) + 1))
    many = np.diff(first)[placed.class_]
    nth = np.arange(many.sum()) - np.repeat(
        np.cumsum(many) - many, many
    )  # of the members of its cluster
    class_ = members[np.repeat(first[placed.class_], many) + nth]
    return Placed(
        np.repeat(placed.node, many), class_, np.repeat(placed.tasks, many) * each[class_]
    )


def rounds_of(terms: Terms, budget: int) -> int:
    """How many rounds of annealing the steps are enough for."""
    return int(np.clip(budget // (300 * terms.allowed.size), 1, len(ROUNDS)))


def first_plans(search: Search, budget: int, rescues: int = RESCUES) -> None:
    """Build plans from nothing; go on with other recipes as long as none is feasible."""
    cells = search.terms.allowed.size
    plans = int(np.clip(40_000 // cells, 1, len(RECIPES)))
    most_tries = max(1, 5_000_000 // cells)  # annealing forgets most of a large first plan
    repair_steps = max(budget // 4, 50_000)
    for number in range(plans + rescues):
        if number >= plans and search.found:
            return
        search.load(np.zeros_like(search.state.x))
        search.bench.left[:] = search.terms.wanted
        rescue = number >= len(RECIPES)
        recipe = RECIPES[2 + number % 4 if rescue else number]
        finish(
            search,
            recipe._replace(tries=min(recipe.tries, most_tries)),
            repair_steps,
            0.3 if rescue else 0.0,
        )


def finish(search: Search, recipe: Recipe, repair_steps: int, noise: float = 0.0) -> None:
    """Place what is missing in the loaded plan, repair overloads, and remember the plan if it is feasible then."""
    nodes_in_order = nodes_descending(search.terms, search.rng, noise)
    classes_in_order = sizes_descending(search.terms, search.rng, noise)
    build(
        search.terms,
        search.state,
        search.bench,
        recipe,
        nodes_in_order,
        classes_in_order,
        search.run.rng,
    )
    if search.bench.left.any():
        return
    search.load(search.state.x.copy())
    repair(search, repair_steps)
    if not search.state.over.any():
        search.load(search.state.x.copy())
        search.steps(1)


def repair(search: Search, steps: int) -> None:
    """Anneal overloads away; traffic only breaks ties."""
    if not search.state.over.any():
        return
    terms = search.terms
    task = average_task(terms)
    price = (1.0 + 10 * search.instance.total_weight) / task
    search.terms = terms._replace(node_price=0.0)
    try:
        search.steps(
            steps,
            hot=price * task * 0.3,
            cold=price * task * 0.003,
            over_price=price,
            until_fits=True,
        )
    finally:
        search.terms = terms


def average_task(terms: Terms) -> float:
    """The overload that an average task makes on a full node."""
    return float((terms.demand.mean(axis=0) @ terms.unit).mean()) + 1e-9


def drop_nodes(search: Search, budget: int) -> None:
    """Empty one node after the other as long as the rest can take its tasks."""
    terms = search.terms
    while True:
        rows = search.run.best.copy()
        busy = np.nonzero(rows.sum(axis=1))[0]
        filled = (rows[busy] * terms.size[terms.node_type[busy]]).sum(axis=1)
        before = search.run.tally[BEST_NODES]
        for n in busy[np.argsort(filled, kind="stable")][:6]:
            open_nodes = terms.allowed & (rows.sum(axis=1) > 0)[:, None]
            open_nodes[n] = False
            kept = rows.copy()
            kept[n] = 0
            search.terms = terms._replace(allowed=open_nodes)
            try:
                search.load(kept)
                search.bench.left[:] = terms.wanted - kept.sum(axis=0)
                finish(search, PACKING, max(budget // 20, 20_000))
            finally:
                search.terms = terms
            if search.run.tally[BEST_NODES] < before:
                break
        else:
            return


def improve(search: Search, budget: int, cooling: Heat) -> None:
    """Anneal from the best plan so far: one long cooling if steps are scarce, else many short rounds.

    Sparse task graphs want mild heat that never quite ends, all-to-all streams want more of both:
    measured on the unsymmetric instances of the benchmarks.
    """
    tally, terms = search.run.tally, search.terms
    search.resume()
    tally[REFUSED_COST] = tally[REFUSED] = 0.0
    search.steps(min(20_000, budget // 10 + 1))
    scale = (
        tally[REFUSED_COST] / tally[REFUSED]
        if tally[REFUSED]
        else float(terms.weight.mean())
        if len(terms.weight)
        else 1.0
    )
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
            search.steps(
                each - each // 8,
                heat.first * scale,
                heat.last * scale,
                heat.overload * scale / average_task(terms),
            )
        finally:
            search.terms = terms
        repair(search, each // 16)
        search.steps(each // 8)
        idle = 0 if tally[BEST_COST] < before - terms.tie else idle + 1
