"""Headrace's own sizing: counts and places for the largest rate of the cluster, with a bound.

Source    ours; a linear program over components and kinds of machines, without counts; its answer
          is rounded to whole tasks of several sizes and improved by annealing. Of counts within 1 %
          of the best rate found, the fewest tasks are taken.
Maturity  ours
Guards    CPU, memory and further resources, slots, worker heap, pins, separations and `max_tasks`
          are never broken; no task is planned above one thread. Bandwidth and the price of sending
          are kept at the rate given.
Differs   nothing to differ from. The bound is the linear program: no counts on this cluster sustain
          more. Option within=0 takes the very best rate, whatever number of tasks that needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Ints
from headrace.model.problem import CPU, THREAD, Assignment
from headrace.model.request import DEFAULT_REQUEST, Request, share_of
from headrace.model.sizable import UNLIMITED, Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.place.building_blocks.sized_tasks import place_sized_tasks
from headrace.size.few_tasks import find_few_tasks, send_less, use_fewer_tasks
from headrace.size.nasiri import (
    ExecutionGraph,
    Prediction,
    first_assignment,
    maximize_throughput,
)
from headrace.solve.counts.dop import Market, cheapest, fastest
from headrace.solve.counts.fill import (
    Filled,
    fill_machines,
    fluid_bound,
    pools_of,
    search_small_cluster,
)

NASIRI_TASKS = 3_000  # in all, for a start
NASIRI_SHARE = 0.25  # of the time, for such starts


def headrace(
    workload: Workload, request: Request = DEFAULT_REQUEST, *, within: float = 0.01
) -> Sized:
    """Counts and places for the largest sustainable rate; with a rate, few tasks that carry it.

    Of all counts whose rate is `within` that share of the largest, those with the fewest tasks.
    """
    if not 0 <= within < 1:
        raise InvalidInput(f"headrace: option within is {within:g}; it must be from 0 to below 1")
    workload = sizable(workload, catalog=False)
    load = load_of(workload, catalog=False)
    load.refuse_what_fits_nowhere()
    if workload.machine_per_task:
        return size_one_each(workload, load, request.rate)
    rate = request.rate
    if rate is not None:
        few = find_few_tasks(workload, load, rate, request)
        if few is not None:
            few = use_fewer_tasks(workload, load, few, rate, request)
            return Sized(*few, rate, fluid_bound(load), "fluid", few[1].notes, workload=workload)
    refuse_without_limit(load)
    found = fill_for_most_rate(load, request)
    tasks = found.tasks(load)
    problem = workload.problem(tasks)
    plan = tasks, problem, place_sized_tasks(problem, found.node, request)
    largest = found.factor * load.spout_rate
    if thread_rate(*plan[1:]) < largest * (1 - 1e-6) < np.inf:
        plan = send_less(workload, load, plan, largest, request)
    best = thread_rate(*plan[1:])
    notes: tuple[str, ...] = ()
    least = best * (1 - within) if rate is None else rate
    if 0 < least < min(best, np.inf):
        fewer = use_fewer_tasks(workload, load, plan, least, request)
        if fewer is not plan:
            had, has = sum(plan[0].values()), sum(fewer[0].values())
            notes = (f"{has:,} tasks: more of them, {had:,}, would carry {best:,.6g} tuples/s",)
            plan = fewer
    carried = thread_rate(*plan[1:])
    bound = found.bound * load.spout_rate if load.least_at_one_each else None
    return Sized(*plan, carried, bound, "fluid", (*plan[1].notes, *notes), workload=workload)


def size_one_each(workload: Workload, load: Load, rate: float | None) -> Sized:
    """Counts where every task has a node of its own: the largest rate, or the fewest for a rate."""
    found = place_one_each(load, rate)
    tasks = found.tasks(load)
    problem = workload.problem(tasks)
    assignment = Assignment(found.node, np.zeros(len(found.node), dtype=np.int64))
    carried = thread_rate(problem, assignment)
    bound = found.bound * load.spout_rate if load.least_at_one_each else None
    notes = problem.notes
    return Sized(tasks, problem, assignment, carried, bound, "exact", notes, workload=workload)


def refuse_without_limit(load: Load) -> None:
    """Raise where any number of tasks of every component fits some node: no rate is the largest."""
    problem = load.problem
    endless = np.isinf(problem.free[:, CPU]) & (problem.free_slots > 0)
    unlimited = (problem.demand[:, None, 1:] == 0) | np.isinf(problem.free[None, :, 1:])
    roomy = load.fits & endless & unlimited.all(axis=2)
    heaped = (problem.demand[:, 1] > 0) & np.isfinite(problem.worker_heap_mb[problem.topology])
    grows = roomy.any(axis=1) & ~heaped & ~problem.apart & (load.most >= UNLIMITED)
    costly = load.by_rate.any(axis=1)
    if grows[costly].all() and costly.any():
        name = problem.nodes[int(np.flatnonzero(endless)[0])]
        raise Unsupported(
            f"nothing limits the rate: `{name}` states no cpu, so any number of tasks fits there",
            resource="cpu",
            fix="state the `cpu` of every node, give `max_tasks`, or ask for a rate with --rate",
        )


def place_one_each(load: Load, rate: float | None = None) -> Filled:
    """The proven best where every task has a node of its own; with a rate, the fewest nodes.

    Pools of alike nodes count as machine types that all have the same price.
    """
    if load.copied:
        raise Unsupported(
            "one machine per task needs rates that do not depend on counts; "
            "a stream here is copied to every task"
        )
    pools, pool, machines = pools_of(load)
    with np.errstate(divide="ignore"):
        carries = np.where(pools.by_rate > 0, (pools.thread - pools.fixed) / pools.by_rate, np.inf)
    market = Market(
        np.where(pools.may, carries, 0.0),
        np.ones(len(machines)),
        machines.astype(np.int64),
        load.most,
    )
    best = fastest(market, np.inf, mixed=True)
    if best is None:
        raise Infeasible(
            f"one task of each component needs {len(load.most)} nodes that fit; "
            f"there are {int(machines.sum())}",
            resource="nodes",
            needed=len(load.most),
            available=float(machines.sum()),
            fix="add nodes, or take `machine_per_task` away",
        )
    most = market.factor(best)
    fewest = None if rate is None else cheapest(market, rate / load.spout_rate, mixed=True)
    best = best if fewest is None else fewest
    x = np.zeros((len(load.most), len(pool)), dtype=np.int64)
    for p in range(len(machines)):
        x[
            np.repeat(np.arange(len(best)), best[:, p]),
            np.flatnonzero(pool == p)[: best[:, p].sum()],
        ] = 1
    return Filled(x, market.factor(best), most)


def fill_for_most_rate(load: Load, request: Request) -> Filled:
    """The best counts found: from many starts, among them Nasiri's, then on small clusters all."""
    found = fill_machines(
        load,
        seed=request.seed,
        steps=request.steps,
        deadline=request.deadline,
        known=grow_as_nasiri(load, share_of(request.deadline, NASIRI_SHARE)),
    )
    if found is None:
        raise Infeasible(
            "one task of each component does not fit the nodes as they are",
            resource="memory_mb",
            fix="add a node, or larger ones",
        )
    return search_small_cluster(load, found, request.deadline)


def grow_as_nasiri(load: Load, deadline: Callable[[], bool] | None) -> list[Ints]:
    """Instances [C, N] by Nasiri's algorithm, in its variants; none where it cannot start.

    It starts from the rates of the file and from half of what its first instances sustain, and
    chooses machines in both ways.
    """
    cost = Prediction(load, NASIRI_TASKS)
    first = first_assignment(cost)
    fixed = (first * cost.fixed).sum(axis=0)
    by_rate = (first * cost.by_rate(first)).sum(axis=0)
    busy = by_rate > 0
    room = np.minimum(cost.capacity, THREAD)[busy] - fixed[busy]
    sustained = float((room / by_rate[busy]).min(initial=np.inf))
    if not 0 < sustained < np.inf:
        return []
    found: list[Ints] = []
    for factor in (1.0, sustained / 2):
        start = ExecutionGraph(first, factor)
        for to in ("least-tcu", "least-utilised"):
            try:
                found.append(maximize_throughput(cost, start, to, deadline).instances)
            except Infeasible:  # its first rate is too much
                continue
    return found
