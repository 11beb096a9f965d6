"""Eskandari's ceiling: how far a node's CPU may be filled, and how many nodes a load needs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.judge.shortage import shortage
from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import CPU, Problem


def room_under_ceiling(problem: Problem, alpha: float) -> Floats:
    """What a node may be filled to, CPU to the ceiling of eq. 7.2, [N, K]."""
    if not 0 < alpha <= 1:
        raise InvalidInput(
            f"alpha is {alpha:g}; the ceiling of a node's CPU must be above 0 and at most 1"
        )
    room = problem.free.copy()
    room[:, CPU] = np.maximum(alpha * problem.capacity[:, CPU] - problem.taken[:, CPU], 0.0)
    return room


def node_capacity(problem: Problem, alpha: float) -> Floats:
    """The same; raises if it is plain that tasks cannot fit."""
    room = room_under_ceiling(problem, alpha)
    missing = shortage(
        replace(
            problem,
            capacity=room,
            taken=np.zeros_like(room),
            allowed=None,
            apart=np.zeros_like(problem.apart),
        )
    )
    if missing is not None:
        raise (
            under_ceiling(missing, alpha) if missing.resource == problem.resources[CPU] else missing
        )
    return room


def cpu_capacity(problem: Problem, alpha: float) -> Floats:
    """The CPU that a node may be filled to, [N]; raises if all together have too little."""
    room = room_under_ceiling(problem, alpha)[:, CPU]
    open_nodes = problem.free_slots > 0
    if not open_nodes.any():
        raise Infeasible(
            "no node has a free slot",
            resource="slots",
            needed=1,
            available=0,
            fix="free a slot or add a node",
        )
    needed, available = float(problem.mean_demand[:, CPU].sum()), float(room[open_nodes].sum())
    if needed > available * (1 + TOLERANCE) + TOLERANCE:
        largest = int(np.where(open_nodes, room, -1.0).argmax())
        most = float(room[largest])
        more = math.ceil((needed - available) / most) if most > TOLERANCE else 0
        refusal = Infeasible(
            f"the topology needs {needed:g} cpu in all; {int(open_nodes.sum())} nodes have "
            f"{available:g} free: {needed - available:g} too little",
            resource="cpu",
            needed=needed,
            available=available,
            fix=f"add {more} node{'s' * (more != 1)} like {problem.nodes[largest]}"
            if more
            else "add nodes with cpu",
        )
        raise under_ceiling(refusal, alpha)
    return room


def sort_by_capacity(problem: Problem, room: Floats) -> Ints:
    """Nodes with a free slot, largest first: by CPU, then by the other resources."""
    order = np.lexsort(-room.T[::-1])
    return order[problem.free_slots[order] > 0]


def nodes_needed(load: Floats, room: Floats) -> int:
    """Eq. 7.1, for every resource: how many of the first nodes have room for the load."""
    enough = np.cumsum(room, axis=0) * (1 + TOLERANCE) + TOLERANCE >= load
    return min(int((~enough).sum(axis=0).max()) + 1, len(room))


def no_packing(problem: Problem, room: Floats, alpha: float) -> Infeasible:
    """The refusal where the totals suffice, but no way was found to pack the tasks."""
    open_room = room[problem.free_slots > 0].sum(axis=0)
    load = problem.mean_demand.sum(axis=0)
    k = int((load / np.maximum(open_room, 1e-12)).argmax())
    resource, needed, available = problem.resources[k], float(load[k]), float(open_room[k])
    message = (
        f"`{problem.topologies[0]}` needs {needed:g} {resource} of {available:g}, "
        "but its tasks were not found to pack into the nodes"
    )
    refusal = Infeasible(
        message,
        resource=resource,
        needed=needed,
        available=available,
        fix="add a node, or use headrace",
    )
    return under_ceiling(refusal, alpha) if k == CPU else refusal


def under_ceiling(refusal: Infeasible, alpha: float) -> Infeasible:
    """The refusal, with a word about the ceiling that helped to cause it."""
    if alpha == 1:
        return refusal
    return Infeasible(
        f"{refusal.message} (a node's CPU is filled to {alpha:.0%})",
        task=refusal.task,
        resource=refusal.resource,
        needed=refusal.needed,
        available=refusal.available,
        fix=f"{refusal.fix}; or raise alpha, which is {alpha:g}",
    )
