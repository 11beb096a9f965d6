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

import numpy as np

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.load_aware import is_load_aware
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.request import DEFAULT_REQUEST, Request, share_of
from headrace.place.building_blocks.arrange import arrange_lots
from headrace.place.building_blocks.exact_finish import finish_exactly
from headrace.place.building_blocks.fewest_nodes import drop_more_nodes
from headrace.place.building_blocks.high_rate import (
    FIRST_STEPS,
    bandwidth_suffices,
    even_out_load,
    raise_rate,
    reduce_traffic_at_same_rate,
)
from headrace.place.building_blocks.too_little_room import too_little_room
from headrace.place.building_blocks.topologies import sum_demand_by_node
from headrace.place.building_blocks.workers import workers_inside
from headrace.solve.classes import Classes, classes_of
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.rate.speed import improve_speed

SPEEDS = ("rate", "batch", "balance")  # objectives that are about CPU first
LEAST_NODE_PRICE = 1e-6  # of the price between racks: nodes count a little even where they are free
EXACT_SHARE = 0.7  # of the time that is left, for an integer program
FEW_CELLS = 600  # classes x nodes up to which traffic is searched from few nodes too


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
    first_steps = FIRST_STEPS if objective in SPEEDS and steps is None else steps
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
        if current is None:
            x = search_further(problem, classes, found.x, request)
        else:
            x = found.x
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


def search_further(problem: Problem, classes: Classes, x: Ints, request: Request) -> Ints:
    """Counts x made better for traffic, network or nodes, by ways that are for small problems."""
    instance, objective = classes.instance, request.objective
    if objective == "nodes":
        return arrange_lots(problem, classes, drop_more_nodes(instance, x, request))
    if objective == "traffic":
        within = replace(request, deadline=share_of(request.deadline, EXACT_SHARE))
        x, proven = finish_exactly(instance, x, within)
        few = None if proven else search_on_few_nodes(instance, request)
        x = x if few is None else min((x, few), key=instance.crossing)
        return arrange_lots(problem, classes, x)

    def gather(start: Ints) -> Ints:
        arranged = arrange_lots(problem, classes, start)
        return gather_tasks(problem, classes, arranged, request, None, None)

    gathered = [gather(x)]
    few = search_on_few_nodes(instance, request)
    if few is not None:
        gathered += [gather(few), gather(finish_exactly(instance, x, request)[0])]
    priced = price_racks(problem, instance)
    return min(gathered, key=priced.cost)


def search_on_few_nodes(instance: Instance, request: Request) -> Ints | None:
    """Counts on the fewest nodes, from where there is often a way to less traffic; None: too many.

    Such a search ends in a moment, and elsewhere than one for traffic.
    """
    if request.steps is not None or instance.allowed.size > FEW_CELLS:
        return None
    found = least_crossing_search(
        instance, deadline=request.deadline, seed=request.seed, prefer="nodes"
    )
    return None if found is None else found.x


def price_racks(problem: Problem, instance: Instance) -> Instance:
    """The instance with prices for what goes between racks."""
    _, node, rack = problem.network
    further = (rack - node) / max(node, LEAST_NODE_PRICE * rack, 1e-300)
    return replace(instance, rack=problem.rack, rack_price=further)


def gather_tasks(
    problem: Problem,
    classes: Classes,
    x: Ints,
    request: Request,
    current: Ints | None,
    move_cost: Floats | None,
) -> Ints:
    """Counts with a low price of all that crosses, from x: here racks count in every step."""
    instance = price_racks(problem, classes.instance)
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
