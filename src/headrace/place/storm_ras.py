"""Storm's resource-aware scheduler: most connected tasks first, each to the first node that fits.

Source    Apache Storm >= 1.1, DefaultResourceAwareStrategy with its default settings: what both
          theses call R-Storm in their experiments (1.1.1 and 2.0.0).
Maturity  faithful
Guards    CPU, memory, further resources, worker heap and slots are never overcommitted; bandwidth,
          pins and separations may be violated (the scheduler does not know them).
Differs   a demand of 0 counts as one that is not stated; topologies without a spout are placed,
          which Storm refuses; all tasks are placed again, so no node is preferred for what already
          runs there; equal nodes and racks keep their order in the file, where Storm orders them by
          an id. Storm 2 takes neighbours with fewest tasks first (option neighbours=fewest). The
          number of workers follows from the heap; `workers` is not looked at, as in Storm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.model.arrays import TOLERANCE
from headrace.model.problem import CPU, MEMORY, Assignment, Floats, Ints, Problem
from headrace.place.building_blocks.no_room import fits, no_room
from headrace.place.building_blocks.operators import list_operators, take_turns
from headrace.place.building_blocks.topologies import each_topology

Neighbours = Literal["most", "fewest"]
NOT_IN_THE_FILE = "Storm's default, as the file gives no worker_max_heap_mb"


def storm_ras(
    problem: Problem,
    *,
    default_cpu: float = 10.0,
    default_memory_mb: float = 128.0,
    worker_heap_mb: float = 768.0,
    node_cpu: float = 400.0,
    node_memory_mb: float = 3072.0,
    neighbours: Neighbours = "most",
) -> Assignment:
    """Place every topology by first fit, with Storm's defaults for what the file does not say."""
    options = [default_cpu, default_memory_mb, worker_heap_mb, node_cpu, node_memory_mb]
    if min(options) < 0:
        raise InvalidInput(f"storm-ras: an option is {min(options):g}; amounts cannot be negative")
    unstated = problem.demand == 0
    unstated[:, CPU] &= ~problem.profiled
    unstated[:, MEMORY + 1 :] = False
    known = replace(
        problem,
        demand=np.where(unstated, _row(problem, default_cpu, default_memory_mb), problem.demand),
        capacity=np.where(
            np.isinf(problem.capacity), _row(problem, node_cpu, node_memory_mb), problem.capacity
        ),
        worker_heap_mb=np.where(
            np.isinf(problem.worker_heap_mb), worker_heap_mb, problem.worker_heap_mb
        ),
    )
    if not np.isinf(problem.worker_heap_mb).any():
        return first_fit(known, neighbours, None)
    placed = first_fit(known, neighbours, worker_heap_mb)
    note = f"a worker's heap is {worker_heap_mb:g} MB, {NOT_IN_THE_FILE}"
    return replace(placed, notes=(*placed.notes, note))


def _row(problem: Problem, cpu: float, memory_mb: float) -> Floats:
    """Amounts of all resources; there is no limit for further ones, [K]."""
    return np.array([cpu, memory_mb, *[np.inf] * (len(problem.resources) - 2)])


@each_topology
def first_fit(
    problem: Problem, neighbours: Neighbours, assumed_heap_mb: float | None
) -> Assignment:
    """Each executor in turn to the first node, and there the first worker, that can hold it."""
    need = np.stack([problem.task_demand(y) for y in range(len(problem.types))])  # [Y, T, K]
    free = problem.free.copy()
    # Left in each slot, [N, most slots].
    heap = np.where(problem.slot_taken, -np.inf, problem.worker_heap_mb[0])
    nodes = sort_nodes(problem).tolist()
    kind = number_kinds(problem)
    # The first node that may still hold tasks of a kind: what is free only shrinks, so those before
    # it never will again.
    start = np.zeros(int(kind.max()) + 1, dtype=np.int64)
    node, worker = (
        np.empty(problem.task_count, dtype=np.int64),
        np.empty(problem.task_count, dtype=np.int64),
    )
    for task in order_executors(problem, neighbours):
        for position in range(int(start[kind[task]]), len(nodes)):
            n = nodes[position]
            needed = need[problem.node_type[n], task]
            workers = fits(needed[MEMORY], heap[n])
            if workers.any() and fits(needed, free[n]).all():
                break
        else:
            needs = need[problem.node_type, task]
            raise no_worker_fits(problem, task, needs, free, heap, assumed_heap_mb)
        start[kind[task]] = position
        node[task], worker[task] = n, workers.argmax()
        free[n] -= needed
        heap[n, worker[task]] -= needed[MEMORY]
    return Assignment(node, worker)


def number_kinds(problem: Problem) -> Ints:
    """Tasks of one kind need the same on every node, [T]."""
    if problem.task_share is None:
        return problem.component_of
    _, kind = np.unique(
        np.column_stack([problem.component_of, problem.task_share]), axis=0, return_inverse=True
    )
    return kind


def order_executors(problem: Problem, neighbours: Neighbours) -> list[int]:
    """Most connected components first: one executor of it, one of each neighbour, and so on."""
    graph = list_operators(problem)
    left = [list(operator.tasks) for operator in graph]
    sign = -1 if neighbours == "most" else 1

    def connections(o: int) -> int:
        return sum(len(graph[n].tasks) for n in graph[o].neighbours) * len(graph[o].tasks)

    order: list[int] = []
    for o in sorted(range(len(graph)), key=lambda o: (-connections(o), graph[o].name)):
        circle = [
            o,
            *sorted(graph[o].neighbours, key=lambda n: (sign * len(graph[n].tasks), graph[n].name)),
        ]
        order += take_turns([left[c] for c in dict.fromkeys(circle)])
        for c in circle:
            left[c] = []
    return order


def sort_nodes(problem: Problem) -> Ints:
    """Nodes rack by rack, those with most available resources first."""
    free = problem.free[:, [CPU, MEMORY]]
    of_rack = np.zeros((len(problem.racks), 2))
    np.add.at(of_rack, problem.rack, free)
    members = [np.flatnonzero(problem.rack == rack) for rack in sort_by_availability(of_rack)]
    return np.concatenate([nodes[sort_by_availability(free[nodes])] for nodes in members])


def sort_by_availability(free: Floats) -> Ints:
    """Nodes or racks by share of what all have free: the smaller of CPU and memory, then mean."""
    total = free.sum(axis=0)
    share = free / np.where(total > 0, total, 1.0)
    return np.lexsort(
        (np.arange(len(free)), -share.mean(axis=1), -share.min(axis=1) * bool((total > 0).all()))
    )


def no_worker_fits(
    problem: Problem,
    task: int,
    need: Floats,
    free: Floats,
    heap: Floats,
    assumed_heap_mb: float | None,
) -> Infeasible:
    """The refusal where no worker, or no node, can take a task."""
    memory, limit = float(need[0, MEMORY]), float(problem.worker_heap_mb[0])
    if memory > limit + TOLERANCE:
        name = problem.task_name(task)
        message = (
            f"no worker can hold `{name}`: it needs {memory:g} memory_mb, "
            f"and the worker heap is {limit:g}"
        )
        if limit == assumed_heap_mb:
            message += f" ({NOT_IN_THE_FILE})"
        fix = f"raise worker_max_heap_mb to {memory:g}"
        return Infeasible(
            message, task=name, resource="worker heap", needed=memory, available=limit, fix=fix
        )
    has_worker = np.any(fits(need[:, MEMORY, None], heap), axis=1)
    return no_room(problem, task, problem.resources, need, free, has_worker)
