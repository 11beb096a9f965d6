"""The refusal of a whole problem, with the smallest change that would make it fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.errors import Infeasible
from headrace.judge.shortage import shortage
from headrace.model.problem import CPU, Problem
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search

MOST_ADDED = 16  # nodes tried before giving up on a precise answer
MOST_NODES = 200  # with more, trying takes longer than placing did


def too_little_room(problem: Problem, instance: Instance) -> Infeasible:
    """The refusal where the totals do not suffice, or the tasks do not fit together."""
    missing = shortage(problem)
    if missing is not None:
        return missing
    fullest = _fullest(problem)
    resource = problem.resources[fullest]
    need = float((problem.mean_demand[:, fullest]).sum())
    room = float(problem.free[problem.free_slots > 0, fullest].sum())
    few = len(instance.node_type) <= MOST_NODES
    added = _nodes_to_add(instance) if few else None
    node = problem.nodes[_largest(instance)]
    who = f"`{problem.topologies[0]}`" if len(problem.topologies) == 1 else "the topologies"
    message = (
        f"{who} need {need:g} {resource} of {room:g} free, "
        "but their tasks do not fit together on the nodes as they are"
    )
    fix = (
        f"add {added} node{'s' * (added != 1)} like {node}"
        if added
        else f"add {f'more than {MOST_ADDED} ' if few else ''}nodes like {node}, or larger ones"
    )
    return Infeasible(message, resource=resource, needed=need, available=room, fix=fix)


def _fullest(problem: Problem) -> int:
    room = problem.free[problem.free_slots > 0].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.where(np.isfinite(room) & (room > 0), problem.mean_demand.sum(axis=0) / room, 0.0)
    return int(part.argmax()) if part.any() else CPU


def _largest(instance: Instance) -> int:
    """The node with most room; of those that every class may use, if there are any."""
    size = np.where(np.isfinite(instance.capacity), instance.capacity, 0.0)
    size = (size / np.maximum(size.max(axis=0), 1e-12)).sum(axis=1) + instance.slots / max(
        1, int(instance.slots.max())
    )
    return int(
        np.where(
            instance.allowed.all(axis=0) | ~instance.allowed.all(axis=0).any(), size, -1.0
        ).argmax()
    )


def _nodes_to_add(instance: Instance) -> int | None:
    """The fewest more nodes like the largest with which a plan is found: doubled, then halved."""
    low, high = 0, 1
    while high <= MOST_ADDED and not _fits_with(instance, high):
        low, high = high, 2 * high
    if high > MOST_ADDED:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits_with(instance, middle) else (middle, high)
    return high


def _fits_with(instance: Instance, more: int) -> bool:
    n = np.concatenate([np.arange(len(instance.node_type)), np.full(more, _largest(instance))])
    allowed = np.column_stack([instance.allowed, np.ones((len(instance.count), more), dtype=bool)])
    larger = replace(
        instance,
        node_type=instance.node_type[n],
        capacity=instance.capacity[n],
        slots=instance.slots[n],
        allowed=allowed,
    )
    return least_crossing_search(larger, steps=0) is not None
