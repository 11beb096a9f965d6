"""Needs that no plan can meet, and the smallest change that would meet them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from headrace.errors import Infeasible
from headrace.judge.feasible import exceeds
from headrace.model.arrays import TOLERANCE, Floats, Ints, distinct
from headrace.model.problem import CPU, Problem


def shortage(problem: Problem) -> Infeasible | None:
    """The first need that no plan can meet; None where none is obvious (it may still not fit)."""
    return next(_shortages(problem), None)


def _shortages(problem: Problem) -> Iterator[Infeasible]:
    if not problem.free_slots.any():
        yield Infeasible(
            "no node has a free slot",
            resource="slots",
            needed=1,
            available=0,
            fix="free a slot or add a node",
        )
        return
    for c in range(len(problem.components)):
        where = usable_nodes(problem, c)
        demand, task = largest_task(problem, c)
        yield from _no_node_for(problem, c, task, demand, where)
        yield from _too_few_apart(problem, c, where)
        if problem.allowed is not None and not problem.allowed[c].all():
            yield from _total(
                problem,
                np.array([c]),
                where,
                f"{problem.components[c]}, which may run on {len(where)} nodes only,",
            )
    everywhere = np.flatnonzero(problem.free_slots > 0)
    yield from _total(
        problem,
        np.arange(len(problem.components)),
        everywhere,
        "the topology" if len(problem.topologies) == 1 else "all topologies",
    )


def usable_nodes(problem: Problem, component: int) -> Ints:
    """Nodes with a free slot that a component may use."""
    open_nodes = problem.free_slots > 0
    return np.flatnonzero(
        open_nodes if problem.allowed is None else open_nodes & problem.allowed[component]
    )


def largest_task(problem: Problem, component: int) -> tuple[Floats, int]:
    """What a component's largest task needs on every node, [N, K], and which task that is."""
    tasks = problem.tasks_of(component)
    task = tasks.start + int(problem.share[tasks].argmax())
    demand = np.tile(problem.demand[component], (len(problem.nodes), 1))
    machine = problem.node_type
    demand[:, CPU] += (
        problem.cpu_fixed[component, machine]
        + problem.cpu_rate[component, machine] * problem.share[task]
    )
    return demand, task


def _no_node_for(
    problem: Problem, component: int, task: int, demand: Floats, where: Ints
) -> Iterator[Infeasible]:
    name = problem.task_name(task)
    if not len(where):
        message = f"task {name} may not run on any node that has a free slot"
        yield Infeasible(
            message,
            task=name,
            resource="nodes",
            needed=1,
            available=0,
            fix=f"widen `nodes` of {problem.components[component]}",
        )
        return
    short = demand[where] - problem.free[where]
    fits = short <= TOLERANCE * np.maximum(
        1.0, np.where(np.isfinite(problem.free[where]), problem.free[where], 1.0)
    )
    if fits.all(axis=1).any():
        return
    # What to change: the node where least is missing, as a share of what the task needs.
    missing = np.maximum(short, 0.0) / np.maximum(demand[where], 1e-12)
    n = int(missing.max(axis=1).argmin())
    k = int(missing[n].argmax())
    node, resource = problem.nodes[where[n]], problem.resources[k]
    needed, available = float(demand[where[n], k]), float(problem.free[where[n], k])
    message = (
        f"task {name} needs {needed:g} {resource} and fits no node; "
        f"the nearest, {node}, has {available:g} free"
    )
    fix = (
        f"give {node} {needed - available:g} more {resource}, "
        f"or lower what {problem.components[component]} needs"
    )
    yield Infeasible(
        message, task=name, resource=resource, needed=needed, available=available, fix=fix
    )


def _too_few_apart(problem: Problem, component: int, where: Ints) -> Iterator[Infeasible]:
    count = int(problem.tasks[component])
    if problem.apart[component] and count > len(where):
        name = problem.components[component]
        message = f"{name} has {count} tasks to be kept apart; {len(where)} nodes can take one"
        yield Infeasible(
            message,
            resource="nodes",
            needed=count,
            available=len(where),
            fix=f"add {count - len(where)} nodes or lower {name}.tasks",
        )


def _total(problem: Problem, components: Ints, where: Ints, who: str) -> Iterator[Infeasible]:
    need = (problem.demand[components] * problem.tasks[components, None]).sum(axis=0)
    types = distinct(problem.node_type[where])
    fixed = problem.cpu_fixed[components][:, types].min(axis=1) * problem.tasks[components]
    need[CPU] += float((fixed + problem.cpu_rate[components][:, types].min(axis=1)).sum())
    room = problem.free[where].sum(axis=0)
    for k, resource in enumerate(problem.resources):
        needed, available = float(need[k]), float(room[k])
        if exceeds(needed, available):
            largest = int(where[problem.capacity[where, k].argmax()])
            more = (
                math.ceil((needed - available) / problem.capacity[largest, k])
                if problem.capacity[largest, k] > 0
                else None
            )
            fix = (
                f"add {more} node{'s' * (more != 1)} like {problem.nodes[largest]}"
                if more
                else f"add nodes with {resource}"
            )
            message = (
                f"{who} needs {needed:g} {resource} in all; {len(where)} nodes have "
                f"{available:g} free: {needed - available:g} too little"
            )
            yield Infeasible(
                message, resource=resource, needed=needed, available=available, fix=fix
            )
