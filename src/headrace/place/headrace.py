"""Headrace's own scheduler: anytime search on counts of tasks per node, every resource, pin and separation kept.

Source    ours; annealed local search over (class, node) counts from several constructions, for
          traffic or for speed.
Maturity  ours
Guards    CPU, memory and further resources, slots, worker heap, pins and separations are never
          broken; bandwidth where a plan was found that keeps it.
Differs   nothing to differ from. Local-or-shuffle counts as shuffle while searching; the judge
          counts what stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from headrace.errors import HeadraceError
from headrace.judge.traffic import traffic
from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem
from headrace.place.building_blocks.refusal import refusal
from headrace.place.building_blocks.topologies import used
from headrace.place.building_blocks.workers import workers_inside
from headrace.solve.classes import Classes, classes_of
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.feasible import slots_taken
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.rate.costs import RateCosts, rate_costs
from headrace.solve.rate.full_nodes import fill_to_capacity
from headrace.solve.rate.speed import batch_time, improve_speed, sustained_rate
from headrace.solve.rate.spread import spread_tasks

Objective = Literal["traffic", "rate", "batch", "nodes", "balance"]
MOST_CHOICES = 2_000_000  # busy nodes x nodes in the matching of groups to nodes
PACKINGS, PACKING_STEPS = 8, 20_000  # rates tried by packing, and steps of search for each
FIRST_STEP, LEAST_STEP = (
    0.001,
    1e-4,
)  # how much higher the first rate is, and what is not worth a try
JUST_ABOVE = 1e-6  # relative


def headrace(
    problem: Problem,
    *,
    objective: Objective = "traffic",
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    move_cost: float = 0.0,
) -> Assignment:
    """Place all topologies together; with a current plan, moving a megabyte of state costs `move_cost` tuples/s."""
    classes = classes_of(problem)
    refused: dict[str, HeadraceError] = {}
    x = searched(problem, classes, objective, seed, steps, deadline, move_cost)
    if x is None:
        classes, refused = without_the_impossible(problem, classes)
        x = searched(problem, classes, objective, seed, steps, deadline, move_cost)
        assert x is not None, "what was found with less effort is found with more"
    return assigned(problem, classes, x, refused)


def searched(
    problem: Problem,
    classes: Classes,
    objective: Objective,
    seed: int,
    steps: int | None,
    deadline: Callable[[], bool] | None,
    move_cost: float,
) -> Ints | None:
    """Counts [classes, N] that are good for the objective; None if no plan was found."""
    current = None if problem.current is None else classes.counts(problem.current.node)
    cost = None if current is None else move_cost * problem.state_mb[classes.component]
    prefer = "nodes" if objective == "nodes" else "traffic"
    first_steps = (
        PACKING_STEPS if objective == "rate" and steps is None else steps
    )  # for a rate, traffic comes last
    found = least_crossing_search(
        classes.instance,
        current=current,
        move_cost=cost,
        steps=first_steps,
        deadline=deadline,
        seed=seed,
        prefer=prefer,
    )
    if found is None:
        return None
    if objective in ("traffic", "nodes"):
        x = found.x if current is not None else on_the_roomiest_nodes(problem, classes, found.x)
        if bandwidth_suffices(problem, classes, x):
            return x
        return improve_speed(
            problem, classes, x, "rate", seed=seed, steps=steps, deadline=deadline, enough=1.0
        )
    x = improve_speed(
        problem, classes, found.x, objective, seed=seed, steps=steps, deadline=deadline
    )
    if objective == "batch":
        # Between tasks packed together and tasks spread out lie plans that are worse than both: a
        # search finds only its own side.
        costs = rate_costs(problem, classes)
        cores = np.where(np.isfinite(costs.cores), costs.cores, 1.0)
        starts = [*spread_tasks(classes.instance, costs.stage, cores)]
        if starts:
            start = min(starts, key=lambda counts: batch_time(problem, classes, counts))
            other = improve_speed(
                problem, classes, start, objective, seed=seed, steps=steps, deadline=deadline
            )
            x = min(x, other, key=lambda counts: batch_time(problem, classes, counts))
    if objective != "rate":
        return x
    x = packed_for_more(problem, classes, x, seed, deadline)
    return less_traffic_at_the_same_rate(problem, classes, x, seed, steps, deadline)


def on_the_roomiest_nodes(problem: Problem, classes: Classes, x: Ints) -> Ints:
    """The same groups of tasks on other nodes, so that the fullest node is as little full as may be: traffic stays as it is."""
    full = fullness(problem, classes, x)
    busy = np.flatnonzero(x.any(axis=0))
    if len(busy) * len(problem.nodes) > MOST_CHOICES or not np.isfinite(full).any(axis=1).all():
        return x
    # Steep: one node near its limit weighs more than many that are half full.
    rows, columns = linear_sum_assignment(
        np.where(np.isfinite(full), np.minimum(full, 10.0) ** 8, 1e12)
    )
    if not np.isfinite(full[rows, columns]).all():
        return x
    moved = np.zeros_like(x)
    moved[:, columns] = x[:, busy[rows]]
    return moved


def fullness(problem: Problem, classes: Classes, x: Ints) -> Floats:
    """CPU that the tasks of each busy node would take of each node's, inf where they may not go, [busy, N]."""
    instance = classes.instance
    busy = np.flatnonzero(x.any(axis=0))
    on_type = np.einsum("cb,yck->byk", x[:, busy].astype(np.float64), instance.demand)
    need = on_type[:, problem.node_type, :]
    fits = (need <= instance.capacity * (1 + 1e-9)).all(axis=2)
    fits &= ((x[:, busy].T > 0).astype(np.int64) @ (~instance.allowed).astype(np.int64)) == 0
    fits &= slots_taken(instance, x)[busy][:, None] <= instance.slots
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(need[:, :, CPU] > 0, need[:, :, CPU] / instance.capacity[:, CPU], 0.0)
    return np.where(fits, part, np.inf)


def bandwidth_suffices(problem: Problem, classes: Classes, x: Ints) -> bool:
    """Whether no node sends or receives more than it can."""
    if not np.isfinite(problem.bandwidth_mbps).any():
        return True
    node = classes.nodes(x)
    sent = traffic(problem, Assignment(node, np.where(node == UNPLACED, UNPLACED, 0)))
    return bool(
        (
            np.maximum(sent.out_bytes, sent.in_bytes) * 8 / 1e6
            <= problem.bandwidth_mbps * (1 + 1e-9)
        ).all()
    )


def packed_for_more(
    problem: Problem, classes: Classes, x: Ints, seed: int, deadline: Callable[[], bool] | None
) -> Ints:
    """A plan for a higher rate, if packing finds one: rates above what x sustains, further up after each that is reached, closer after a miss."""
    low = sustained_rate(problem, classes, x)
    room, count = classes.instance.capacity[:, CPU], classes.instance.count
    costs = rate_costs(problem, classes)
    grows, fixed = float(count @ costs.grows.min(axis=0)), float(count @ costs.fixed.min(axis=0))
    if not 0 < low < np.inf or not np.isfinite(room).all() or grows <= 0:
        return x
    high = (float(np.maximum(room, 0.0).sum()) - fixed) / grows
    x = filled_to_the_brim(problem, classes, costs, x, deadline)
    low, step = sustained_rate(problem, classes, x), FIRST_STEP
    for attempt in range(PACKINGS):
        rate = min(low * (1 + step), (low + high) / 2)
        if rate <= low * (1 + LEAST_STEP) or (deadline is not None and deadline()):
            break
        instance = at_rate(classes, costs, rate)
        found = least_crossing_search(
            instance, starts=[x], steps=PACKING_STEPS, deadline=deadline, seed=seed + attempt
        )
        reached = 0.0 if found is None else sustained_rate(problem, classes, found.x)
        if found is not None and reached > low:
            x, low, step = found.x, reached, 2 * step
        else:
            high, step = rate, step / 2
    return x


def filled_to_the_brim(
    problem: Problem,
    classes: Classes,
    costs: RateCosts,
    x: Ints,
    deadline: Callable[[], bool] | None,
) -> Ints:
    """A plan for a higher rate, and from there for a still higher one, as long as the ways to waste so little are few enough to look through."""
    low = sustained_rate(problem, classes, x)
    while deadline is None or not deadline():
        found = fill_to_capacity(at_rate(classes, costs, low * (1 + JUST_ABOVE)))
        reached = 0.0 if found is None else sustained_rate(problem, classes, found)
        if found is None or reached <= low:
            break
        x, low = found, reached
    return x


def at_rate(classes: Classes, costs: RateCosts, rate: float) -> Instance:
    """The instance with tasks as large as they are at a rate."""
    demand = classes.instance.demand.copy()
    demand[:, :, CPU] = rate * costs.grows + costs.fixed
    return replace(classes.instance, demand=demand)


def less_traffic_at_the_same_rate(
    problem: Problem,
    classes: Classes,
    x: Ints,
    seed: int,
    steps: int | None,
    deadline: Callable[[], bool] | None,
) -> Ints:
    """Of plans that sustain what x sustains, one with less traffic: tasks are as large as they are at that rate."""
    rate = sustained_rate(problem, classes, x)
    if not 0 < rate < np.inf:
        return x
    instance = at_rate(classes, rate_costs(problem, classes), rate)
    found = least_crossing_search(instance, starts=[x], steps=steps, deadline=deadline, seed=seed)
    return (
        found.x
        if found is not None and sustained_rate(problem, classes, found.x) >= rate * (1 - 1e-9)
        else x
    )


def assigned(
    problem: Problem, classes: Classes, x: Ints, refused: dict[str, HeadraceError] | None = None
) -> Assignment:
    """Nodes and workers for single tasks; as many as possible stay where they are."""
    current = None if problem.current is None else problem.current.node
    node = classes.nodes(x, current)
    return Assignment(node, workers_inside(problem, classes, node), refused or {})


def without_the_impossible(
    problem: Problem, classes: Classes
) -> tuple[Classes, dict[str, HeadraceError]]:
    """Take topologies in by priority as long as a plan for them together is found; the others are refused, each with its reason."""
    refused: dict[str, HeadraceError] = {}
    if len(problem.topologies) == 1:
        raise refusal(problem, classes.instance)
    taken_in = np.zeros(len(problem.topologies), dtype=bool)
    nowhere = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    plan = Assignment(nowhere, nowhere)
    for g in np.argsort(problem.priority, kind="stable").tolist():
        taken_in[g] = True
        some = only_some(classes, taken_in)
        found = least_crossing_search(some.instance, steps=0)
        if found is None:
            taken_in[g] = False
            alone = left_for(problem, plan, g)
            refused[problem.topologies[g]] = refusal(alone, classes_of(alone).instance)
        else:
            plan = assigned(problem, some, found.x)
    if not taken_in.any():
        raise next(iter(refused.values()))
    return only_some(classes, taken_in), refused


def only_some(classes: Classes, topologies: Bools) -> Classes:
    """The same classes, with nothing to place for the other topologies."""
    instance = classes.instance
    count = np.where(topologies[instance.group], instance.count, 0)
    return replace(classes, instance=replace(instance, count=count))


def left_for(problem: Problem, plan: Assignment, topology: int) -> Problem:
    """A topology alone, on what a plan of the others leaves."""
    placed = plan.node != UNPLACED
    taken, slot_taken = problem.taken + used(problem, plan), problem.slot_taken.copy()
    slot_taken[plan.node[placed], plan.worker[placed]] = True
    return problem.only(topology, taken, slot_taken)
