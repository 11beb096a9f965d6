"""Few tasks that carry a given rate: first the fewest, then more and smaller ones until all fit."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from headrace.errors import HeadraceError
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Floats
from headrace.model.problem import Assignment, Problem
from headrace.model.request import Request
from headrace.model.sizable import Load
from headrace.model.workload import Workload
from headrace.place.building_blocks.sized_tasks import place_sized_tasks
from headrace.place.headrace import headrace as place
from headrace.size.packed_tasks import pack_fewest_tasks
from headrace.solve.counts.fill import Filled, trim_tasks

Placed = tuple[dict[str, int], Problem, Assignment]  # tasks of every component, and their places

MANY = 2.0  # times the fewest that threads need: fewer tasks are worth a try
FEWER = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the tasks found
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25)  # of a thread that a task may fill


def find_few_tasks(
    workload: Workload,
    load: Load,
    rate: float,
    request: Request,
) -> Placed | None:
    """The first counts, from few to many, that can be placed at the rate; None if none can."""
    factor = rate / load.spout_rate
    tried: list[dict[str, int]] = []
    for one_task in list_task_factors(load):
        tasks = count_tasks(load, factor, one_task)
        if tasks is None or tasks in tried:
            continue
        if tried and request.deadline is not None and request.deadline():
            break
        tried.append(tasks)
        problem = workload.problem(tasks)
        faster = problem.scaled(factor)
        try:
            plan = place(faster, replace(request, objective="traffic"))
        except HeadraceError:
            continue
        if not plan.refused and carries((tasks, faster, plan), rate):
            return tasks, problem, plan
    return None


def send_less(
    workload: Workload, load: Load, found: Placed, largest: float, request: Request
) -> Placed:
    """The counts found, or few tasks, placed for the rate, where that carries more.

    For plans that are limited by what they send; by CPU they could carry the rate `largest`.
    """
    best, most = found, thread_rate(found[1], found[2])
    few = [
        count_tasks(load, factor, one_task)
        for factor in (0.0, most / load.spout_rate, largest / load.spout_rate)
        for one_task in list_task_factors(load)[:2]
    ]
    tried: list[dict[str, int]] = []
    for tasks in (found[0], *few):
        if tasks is None or tasks in tried or (request.deadline and request.deadline()):
            continue
        tried.append(tasks)
        # At the rate that is carried already, tasks fit if these counts are of any use.
        placed = place_for_rate(workload, tasks, most, request)
        if placed is not None and thread_rate(placed[1], placed[2]) > most:
            best, most = placed, thread_rate(placed[1], placed[2])
    return best


def place_for_rate(
    workload: Workload, tasks: dict[str, int], rate: float, request: Request
) -> Placed | None:
    """Counts placed for the largest rate, as large as they are at the rate given; None: no room."""
    problem = workload.problem(tasks)
    given = float(problem.rate[problem.spout].sum())
    try:
        plan = place(problem.scaled(rate / given), replace(request, objective="rate"))
    except HeadraceError:
        return None
    return None if plan.refused else (tasks, problem, plan)


def use_fewer_tasks(
    workload: Workload, load: Load, found: Placed, rate: float, request: Request
) -> Placed:
    """Fewer tasks that still carry a rate, and their places; what was found if there are none."""
    tasks, _, plan = found
    nodes = len(load.problem.nodes)
    owner = np.repeat(np.arange(len(load.most)), [tasks[c] for c in load.problem.components])
    x = np.bincount(owner * nodes + plan.node, minlength=len(load.most) * nodes)
    least = sum(
        (count_tasks(load, rate / load.spout_rate, list_task_factors(load)[0]) or {}).values()
    )
    if x.sum() <= max(least, len(load.most)) or (request.deadline and request.deadline()):
        return found
    trimmed = trim_tasks(
        load,
        x.reshape(-1, nodes),
        rate / load.spout_rate,
        seed=request.seed,
        steps=request.steps,
        deadline=request.deadline,
    )
    best = int(x.sum() if trimmed is None else min(x.sum(), trimmed.sum()))
    packed = pack_fewest_tasks(load, rate / load.spout_rate, best, request.deadline)
    for counts in (packed, trimmed):
        if counts is None or counts.sum() >= x.sum():
            continue
        fewer = Filled(counts, rate / load.spout_rate, np.inf)
        problem = workload.problem(fewer.tasks(load))
        placed = fewer.tasks(load), problem, place_sized_tasks(problem, fewer.node, request)
        if carries(placed, rate):
            return placed
    return scale_down(workload, load, found, rate, request)


def scale_down(
    workload: Workload, load: Load, found: Placed, rate: float, request: Request
) -> Placed:
    """A share of every component's tasks, then fewer of one after another, placed for the rate.

    For rates that bandwidth limits: there many small tasks divide the load finely, and few do about
    as well.
    """
    tasks = found[0]
    least = count_tasks(load, rate / load.spout_rate, list_task_factors(load)[0]) or {}
    if sum(tasks.values()) <= MANY * max(sum(least.values()), len(tasks)):
        return found
    for share in FEWER:
        fewer = {name: max(least.get(name, 1), ceil(share * n)) for name, n in tasks.items()}
        placed = place_carrying(workload, fewer, rate, request)
        if placed is not None:
            found = placed
            break
    for name in sorted(tasks, key=lambda name: least.get(name, 1) - found[0][name]):
        low = least.get(name, 1)
        while low < found[0][name]:
            middle = (low + found[0][name]) // 2
            placed = place_carrying(workload, {**found[0], name: middle}, rate, request)
            low, found = (middle + 1, found) if placed is None else (low, placed)
    return found


def place_carrying(
    workload: Workload, tasks: dict[str, int], rate: float, request: Request
) -> Placed | None:
    """Counts placed so that they carry a rate; None if that is not found, or in time."""
    if request.deadline is not None and request.deadline():
        return None
    placed = place_for_rate(workload, tasks, rate, request)
    return placed if placed is not None and carries(placed, rate) else None


def carries(placed: Placed, rate: float) -> bool:
    """Whether tasks carry a rate where they are."""
    return thread_rate(placed[1], placed[2]) >= rate * (1 - 1e-9)


def list_task_factors(load: Load) -> list[Floats]:
    """Factors of the rates that one task of each component may carry, the highest first, [C] each.

    On its fastest nodes, then on any node, then with less and less of a thread.
    """

    def factor(share: float) -> Floats:
        with np.errstate(divide="ignore"):
            return np.where(
                load.by_rate > 0,
                np.maximum(share * load.thread - load.fixed, 0.0) / load.by_rate,
                np.inf,
            )

    fastest = np.where(load.fits, factor(1.0), 0.0).max(axis=1)
    return [fastest, *(np.where(load.fits, factor(share), np.inf).min(axis=1) for share in SHARES)]


def count_tasks(load: Load, factor: float, one_task: Floats) -> dict[str, int] | None:
    """Tasks of every component for a factor; None where a component may not have so many."""
    if not (one_task > 0).all():
        return None
    tasks = np.maximum(np.ceil(factor / one_task * (1 - 1e-9)), 1)
    if (tasks > load.most).any():
        return None
    return {name: int(n) for name, n in zip(load.problem.components, tasks, strict=True)}
