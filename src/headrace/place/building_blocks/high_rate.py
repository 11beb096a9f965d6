"""Counts with a high rate or an even load: searched from several sides, from feasible ones."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from headrace.judge.traffic import traffic
from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem
from headrace.model.request import Request
from headrace.place.building_blocks.one_thread import (
    allow_threads_at,
    highest_thread_rate,
    rate_of_threads,
    thread_limits,
)
from headrace.place.building_blocks.rate_packing import fill_to_the_brim, scale_to_rate
from headrace.solve.classes import Classes
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.rate.costs import rate_costs
from headrace.solve.rate.pairs import deal_pairs
from headrace.solve.rate.speed import improve_speed, sustained_rate

FEW = 20_000  # classes x nodes up to which a rate is searched from several sides
EVEN_STARTS = 4  # of plans that fill nodes evenly
LEAST_STEP = 1e-4  # a smaller gain of the rate, as a share, is not worth a try
FIRST_STEPS = 20_000  # of a search for any plan to start from
THREAD_LEVELS = 6  # how often the rate is raised again where the threads of some nodes limit it


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
            steps=FIRST_STEPS,
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


def raise_rate_of_nodes(
    problem: Problem, classes: Classes, x: Ints, request: Request, enough: float
) -> Ints:
    """Counts with the highest rate that nodes sustain; more than `enough` is of no use."""
    seed, improve = request.seed, partial(improve_counts, problem, classes, request)
    rate = partial(sustained_rate, problem, classes)
    found = [improve(x, "rate", seed, enough)]
    if rate(found[0]) < enough and classes.instance.allowed.size <= FEW:
        found.append(deal_pairs_again(problem, classes, request, found[0], "rate"))
        # Evenly filled nodes are near the best where nothing is sent, and quickly found.
        found += [improve(x, "balance", seed + i) for i in range(EVEN_STARTS)]
        found.append(improve(found[0], "balance", seed))
    fastest = max(found, key=rate)
    if rate(fastest) >= enough:
        return fastest
    return fill_to_the_brim(problem, classes, fastest, request.deadline)


def carried_rate(problem: Problem, classes: Classes, limits: Floats, x: Ints) -> float:
    """The factor that nodes and threads sustain with counts x[C, N]."""
    return min(sustained_rate(problem, classes, x), rate_of_threads(limits, x))


def even_out_load(problem: Problem, classes: Classes, x: Ints, request: Request) -> Ints:
    """Counts that fill nodes evenly: the evenest of several searches.

    Nodes that are full at a high rate are filled evenly: some of the searches start from such. They
    come before further seeds, which gain less where the time is short.
    """
    seed, improve = request.seed, partial(improve_counts, problem, classes, request)
    fast = improve(x, "rate", seed)
    found = [improve(x, "balance", seed), fast, improve(fast, "balance", seed)]
    if classes.instance.allowed.size <= FEW:
        found += [deal_pairs_again(problem, classes, request, one, "balance") for one in found[:2]]
        fastest = max(found, key=partial(sustained_rate, problem, classes))
        found.append(fill_to_the_brim(problem, classes, fastest, request.deadline))
        found.append(improve(found[-1], "balance", seed))
    found += [improve(x, "balance", seed + i) for i in range(1, EVEN_STARTS)]
    costs = rate_costs(problem, classes)
    if (
        max(costs.send_points, costs.receive_points) > 0
    ):  # what sending costs is known to the search alone
        return found[0]
    points = (costs.grows + costs.fixed)[problem.node_type]  # [N, C]
    stated = np.isfinite(costs.installed) & (costs.installed > 0)

    def unevenness(counts: Ints) -> tuple[bool, float]:
        used = (points * counts.T).sum(axis=1) + problem.taken[:, CPU]
        share = np.divide(used, costs.installed, out=np.zeros(len(used)), where=stated)
        return not bandwidth_suffices(problem, classes, counts), float(np.std(share))

    return min(found, key=unevenness)


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


def deal_pairs_again(
    problem: Problem,
    classes: Classes,
    request: Request,
    x: Ints,
    aim: Literal["rate", "balance"],
) -> Ints:
    """Counts x with pairs of nodes dealt again, which single moves do not find."""
    costs = rate_costs(problem, classes)
    return deal_pairs(classes.instance, costs, x, aim, seed=request.seed, deadline=request.deadline)


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
