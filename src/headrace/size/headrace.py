"""Headrace's own sizing: counts and places for the largest rate of the cluster, with a bound.

Source    ours; a linear program over components and kinds of machines, without counts; its answer
          is rounded to whole tasks of several sizes and improved by annealing.
Maturity  ours
Guards    CPU, memory and further resources, slots, worker heap, pins, separations and `max_tasks`
          are never broken; no task is planned above one thread. Bandwidth and the price of sending
          are kept at the rate given.
Differs   nothing to differ from. The bound is the linear program: no counts on this cluster sustain
          more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.errors import Infeasible, Unsupported
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Ints
from headrace.model.problem import THREAD, Assignment
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.place.building_blocks.sized_tasks import place_sized_tasks
from headrace.size.few_tasks import find_few_tasks, send_less
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


def headrace(workload: Workload, request: Request = DEFAULT_REQUEST) -> Sized:
    """Counts and places for the largest sustainable rate; with a rate, few tasks that carry it."""
    workload = sizable(workload, catalog=False)
    load = load_of(workload, catalog=False)
    load.refuse_what_fits_nowhere()
    rate = request.rate
    if rate is not None and not workload.machine_per_task:
        few = find_few_tasks(workload, load, rate, request)
        if few is not None:
            return Sized(*few, rate, fluid_bound(load), "fluid", few[1].notes, workload=workload)
    found = (
        place_one_each(load, rate)
        if workload.machine_per_task
        else fill_for_most_rate(load, request)
    )
    tasks = found.tasks(load)
    problem = workload.problem(tasks)
    if workload.machine_per_task:
        assignment = Assignment(found.node, np.zeros(len(found.node), dtype=np.int64))
        kind = "exact"
    else:
        assignment = place_sized_tasks(problem, found.node, request)
        kind = "fluid"
        largest = found.factor * load.spout_rate
        if thread_rate(problem, assignment) < largest * (1 - 1e-6) < np.inf:
            plan = tasks, problem, assignment
            tasks, problem, assignment = send_less(workload, load, plan, largest, request)
    carried = thread_rate(problem, assignment)
    bound = found.bound * load.spout_rate if load.least_at_one_each else None
    return Sized(tasks, problem, assignment, carried, bound, kind, problem.notes, workload=workload)


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
        known=grow_as_nasiri(load, request.deadline),
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
