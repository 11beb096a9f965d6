"""Headrace's own scheduler: search over task counts per node; every resource and rule is kept.

Source    ours; annealed local search over (class, node) counts from several constructions, for
          traffic or for speed.
Maturity  ours
Guards    CPU, memory and further resources, slots, worker heap, pins and separations are never
          broken; bandwidth where a plan was found that keeps it.
Differs   nothing to differ from. Local-or-shuffle counts as shuffle while searching; the judge
          counts what stays. With load-aware streams the plan is searched further task by task.
Objectives traffic, network, rate, batch, nodes, balance
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.judge.traffic import traffic
from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.load_aware import is_load_aware
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.arrange import arrange_lots
from headrace.place.building_blocks.exact_finish import finish_exactly
from headrace.place.building_blocks.fewest_nodes import drop_more_nodes
from headrace.place.building_blocks.one_thread import (
    allow_threads_at,
    highest_thread_rate,
    rate_of_threads,
    thread_limits,
)
from headrace.place.building_blocks.rate_packing import (
    LEAST_STEP,
    PACKING_STEPS,
    pack_for_more_rate,
    scale_to_rate,
)
from headrace.place.building_blocks.too_little_room import too_little_room
from headrace.place.building_blocks.topologies import sum_demand_by_node
from headrace.place.building_blocks.workers import workers_inside
from headrace.solve.classes import Classes, classes_of
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.rate.costs import rate_costs
from headrace.solve.rate.speed import improve_speed, sustained_rate

SPEEDS = ("rate", "batch", "balance")  # objectives that are about CPU first
LEAST_NODE_PRICE = 1e-6  # of the price between racks: nodes count a little even where they are free
FEW = 20_000  # classes x nodes up to which a rate is searched from two sides
EVEN_STARTS = 4  # of plans that fill nodes evenly
THREAD_LEVELS = 6  # how often the rate is raised again where the threads of some nodes limit it


def headrace(
    problem: Problem, request: Request = DEFAULT_REQUEST, *, move_cost: float | None = None
) -> Assignment:
    """Place all topologies together; with a current plan, `move_cost` is tuples/s per MB moved."""
    if move_cost is not None and problem.current is None:
        raise InvalidInput("a move cost needs a current plan: give a plan file too")
    classes = classes_of(problem)
    refused: dict[str, HeadraceError] = {}
    x = search_counts(problem, classes, request, move_cost or 0.0)
    if x is None:
        classes, start, refused = drop_impossible_topologies(problem, classes)
        x = search_counts(problem, classes, request, move_cost or 0.0, start)
        if x is None:
            raise RuntimeError("what was found with less effort is found with more")
    plan = assign_tasks(problem, classes, x, refused)
    if is_load_aware(problem) and move_cost is None:
        # Loads other schedulers, which the start of a command should not wait for.
        from headrace.place.building_blocks.near_tasks import move_near

        plan = move_near(problem, plan, request)
    return plan


def search_counts(
    problem: Problem,
    classes: Classes,
    request: Request,
    move_cost: float,
    start: Ints | None = None,
) -> Ints | None:
    """Counts [classes, N] that are good for the objective; None if no plan was found.

    Never None with a feasible plan to start from.
    """
    objective, seed, steps = request.objective, request.seed, request.steps
    deadline = request.deadline
    current = None if problem.current is None else classes.counts(problem.current.node)
    cost = None if current is None else move_cost * problem.state_mb[classes.component]
    prefer = "nodes" if objective == "nodes" else "traffic"
    # For speed, traffic comes last: a short search is enough here.
    first_steps = PACKING_STEPS if objective in SPEEDS and steps is None else steps
    found = least_crossing_search(
        classes.instance,
        starts=() if start is None else (start,),
        current=current,
        move_cost=cost,
        steps=first_steps,
        deadline=deadline,
        seed=seed,
        prefer=prefer,
    )
    if found is None:
        return None
    if objective in ("traffic", "network", "nodes"):
        x = found.x
        if objective == "traffic" and current is None:
            x = finish_exactly(classes.instance, x, request)
        elif objective == "nodes" and current is None:
            x = drop_more_nodes(classes.instance, x, request)
        x = x if current is not None else arrange_lots(problem, classes, x)
        if objective == "network":
            x = gather_tasks(problem, classes, x, request, current, cost)
        if bandwidth_suffices(problem, classes, x):
            return x
        return improve_speed(
            problem, classes, x, "rate", seed=seed, steps=steps, deadline=deadline, enough=1.0
        )
    if objective not in SPEEDS:
        raise Unsupported(f"headrace does not know the objective {objective}")
    if objective == "rate":
        x = raise_rate(problem, classes, found.x, request)
        return reduce_traffic_at_same_rate(problem, classes, x, request)
    if objective == "batch":
        # Loads other schedulers, which the start of a command should not wait for.
        from headrace.place.building_blocks.short_batch import shorten_batch

        return shorten_batch(problem, classes, found.x, request)
    return even_out_load(problem, classes, found.x, request)


def even_out_load(problem: Problem, classes: Classes, x: Ints, request: Request) -> Ints:
    """Counts that fill nodes evenly: the evenest of several searches.

    Nodes that are full at a high rate are filled evenly: some of the searches start from such. They
    come before further seeds, which gain less where the time is short.
    """
    seed, improve = request.seed, partial(improve_counts, problem, classes, request)
    fast = improve(x, "rate", seed)
    found = [improve(x, "balance", seed), fast, improve(fast, "balance", seed)]
    if classes.instance.allowed.size <= FEW:
        fastest = max(found, key=partial(sustained_rate, problem, classes))
        found.append(pack_for_more_rate(problem, classes, fastest, seed, request.deadline))
        found.append(improve(found[-1], "balance", seed))
    found += [improve(x, "balance", seed + i) for i in range(1, EVEN_STARTS)]
    costs = rate_costs(problem, classes)
    if costs.send_points > 0:  # what sending costs is known to the search alone
        return found[0]
    points = (costs.grows + costs.fixed)[problem.node_type]  # [N, C]
    stated = np.isfinite(costs.installed) & (costs.installed > 0)

    def unevenness(counts: Ints) -> tuple[bool, float]:
        used = (points * counts.T).sum(axis=1) + problem.taken[:, CPU]
        share = np.divide(used, costs.installed, out=np.zeros(len(used)), where=stated)
        return not bandwidth_suffices(problem, classes, counts), float(np.std(share))

    return min(found, key=unevenness)


def gather_tasks(
    problem: Problem,
    classes: Classes,
    x: Ints,
    request: Request,
    current: Ints | None,
    move_cost: Floats | None,
) -> Ints:
    """Counts with a low price of all that crosses, from x: here racks count in every step."""
    _, node, rack = problem.network
    further = (rack - node) / max(node, LEAST_NODE_PRICE * rack, 1e-300)
    instance = replace(classes.instance, rack=problem.rack, rack_price=further)
    found = least_crossing_search(
        instance,
        starts=[x],
        current=current,
        move_cost=move_cost,
        steps=request.steps,
        deadline=request.deadline,
        seed=request.seed,
    )
    if found is None:
        return x
    if current is not None:
        return found.x
    return min((found.x, arrange_lots(problem, classes, found.x)), key=instance.cost)


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


def raise_rate(problem: Problem, classes: Classes, x: Ints, request: Request) -> Ints:
    """Counts with the highest rate that nodes and threads sustain, from feasible ones.

    Where threads limit it and other nodes have faster ones, again with those alone.
    """
    limits = thread_limits(problem, classes)
    most = highest_thread_rate(classes, limits)
    if most <= 0:
        return x
    x = raise_rate_of_nodes(problem, classes, x, request, most)
    for attempt in range(THREAD_LEVELS):
        rate = carried_rate(problem, classes, limits, x)
        if rate >= min(most, sustained_rate(problem, classes, x)) * (1 - LEAST_STEP):
            break
        faster = allow_threads_at(classes, limits, rate * (1 + LEAST_STEP))
        start = least_crossing_search(
            faster.instance,
            steps=PACKING_STEPS,
            deadline=request.deadline,
            seed=request.seed + attempt,
        )
        if start is None:
            break
        other = raise_rate_of_nodes(problem, faster, start.x, request, most)
        if carried_rate(problem, classes, limits, other) <= rate:
            break
        x = other
    return x


def carried_rate(problem: Problem, classes: Classes, limits: Floats, x: Ints) -> float:
    """The factor that nodes and threads sustain with counts x[C, N]."""
    return min(sustained_rate(problem, classes, x), rate_of_threads(limits, x))


def raise_rate_of_nodes(
    problem: Problem, classes: Classes, x: Ints, request: Request, enough: float
) -> Ints:
    """Counts with the highest rate that nodes sustain; more than `enough` is of no use."""
    seed, improve = request.seed, partial(improve_counts, problem, classes, request)
    rate = partial(sustained_rate, problem, classes)
    found = [improve(x, "rate", seed, enough)]
    if rate(found[0]) < enough and classes.instance.allowed.size <= FEW:
        # Evenly filled nodes are near the best where nothing is sent, and quickly found.
        found += [improve(x, "balance", seed + i) for i in range(EVEN_STARTS)]
        found.append(improve(found[0], "balance", seed))
    fastest = max(found, key=rate)
    if rate(fastest) >= enough:
        return fastest
    return pack_for_more_rate(problem, classes, fastest, seed, request.deadline)


def improve_counts(
    problem: Problem,
    classes: Classes,
    request: Request,
    x: Ints,
    objective: Literal["rate", "balance"],
    seed: int,
    enough: float = np.inf,
) -> Ints:
    """Counts x made faster, or more even, within what was asked for."""
    return improve_speed(
        problem,
        classes,
        x,
        objective,
        seed=seed,
        steps=request.steps,
        deadline=request.deadline,
        enough=enough,
    )


def reduce_traffic_at_same_rate(
    problem: Problem, classes: Classes, x: Ints, request: Request
) -> Ints:
    """Look for a plan with less traffic that sustains the same rate.

    Nodes have to carry the given rates also where threads do not.
    """
    limits = thread_limits(problem, classes)
    rate = carried_rate(problem, classes, limits, x)
    if not 0 < rate < np.inf:
        return x
    fast = allow_threads_at(classes, limits, rate)
    instance = scale_to_rate(fast, rate_costs(problem, classes), max(rate, 1.0))
    found = least_crossing_search(
        instance,
        starts=[x],
        steps=request.steps,
        deadline=request.deadline,
        seed=request.seed,
    )
    if found is None or carried_rate(problem, classes, limits, found.x) < rate * (1 - 1e-9):
        return x
    return found.x


def assign_tasks(
    problem: Problem, classes: Classes, x: Ints, refused: dict[str, HeadraceError] | None = None
) -> Assignment:
    """Nodes and workers for single tasks; as many as possible stay where they are."""
    current = None if problem.current is None else problem.current.node
    node = classes.nodes(x, current)
    return Assignment(node, workers_inside(problem, classes, node), refused or {})


def drop_impossible_topologies(
    problem: Problem, classes: Classes
) -> tuple[Classes, Ints, dict[str, HeadraceError]]:
    """Keep the topologies that fit together, by priority, with counts of a plan for them.

    Those that fit beside the ones kept so far are taken in together: where some do not, by halves.
    Each of the others is refused, with its reason.
    """
    if len(problem.topologies) == 1:
        raise too_little_room(problem, classes.instance)
    refused: dict[str, HeadraceError] = {}
    taken_in = np.zeros(len(problem.topologies), dtype=bool)
    kept = np.zeros_like(classes.instance.allowed, np.int64)
    middle = (len(taken_in) + 1) // 2  # all together were tried
    order = np.argsort(problem.priority, kind="stable")
    waiting = [order[middle:], order[:middle]]
    while waiting:
        batch = waiting.pop()
        taken_in[batch] = True
        some = keep_topologies(classes, taken_in)
        found = least_crossing_search(some.instance, starts=[kept], steps=0)
        if found is not None:
            kept = found.x
            continue
        taken_in[batch] = False
        if len(batch) > 1:
            waiting += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
        else:
            plan = assign_tasks(problem, keep_topologies(classes, taken_in), kept)
            alone = reduce_to_topology(problem, plan, int(batch[0]))
            name = problem.topologies[int(batch[0])]
            refused[name] = too_little_room(alone, classes_of(alone).instance)
    if not taken_in.any():
        raise next(iter(refused.values()))
    return keep_topologies(classes, taken_in), kept, refused


def keep_topologies(classes: Classes, topologies: Bools) -> Classes:
    """The same classes, with nothing to place for topologies that are not kept."""
    instance = classes.instance
    count = np.where(topologies[instance.group], instance.count, 0)
    return replace(classes, instance=replace(instance, count=count))


def reduce_to_topology(problem: Problem, plan: Assignment, topology: int) -> Problem:
    """A topology alone, on what a plan of the others leaves."""
    placed = plan.node != UNPLACED
    taken, slot_taken = problem.taken + sum_demand_by_node(problem, plan), problem.slot_taken.copy()
    slot_taken[plan.node[placed], plan.worker[placed]] = True
    return problem.only(topology, taken, slot_taken)
