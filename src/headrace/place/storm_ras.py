"""Storm's resource-aware scheduler: most connected tasks first, each to the first node that fits.

Source    Apache Storm 2.0 to 2.2, DefaultResourceAwareStrategy with its default settings: what
          Muhammad calls R-Storm (2.0.0). Option version=2.3: that of 2.3 and later, which sorts
          nodes again between two tasks of a component, prefers nodes in use and gives every new
          worker an acker. Option neighbours=most: that of 1.1, Eskandari's R-Storm (1.1.1).
Maturity  faithful
Guards    CPU, memory, further resources, worker heap and slots are never overcommitted; bandwidth,
          pins and separations may be violated (the scheduler does not know them).
Differs   a demand of 0 counts as one that is not stated; topologies without a spout are placed,
          which Storm refuses; all tasks are placed again, so no node is preferred for what already
          runs there; equal nodes and racks keep their order in the file, where Storm orders them by
          an id; bare tasks keep their order, where Storm has that of a hash map. Where a task finds
          no room the topology is refused; 2.3 tries other places for the tasks before it. The
          number of workers follows from the heap; `workers` is not looked at, as in Storm. Apart
          from this, every executor is where Storm's own classes put it (`headrace lab
          storm-referee`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Literal

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.model.arrays import TOLERANCE
from headrace.model.problem import (
    CPU,
    MEMORY,
    UNPLACED,
    Assignment,
    Bools,
    Floats,
    Ints,
    Problem,
)
from headrace.place.building_blocks.no_room import fits, no_room
from headrace.place.building_blocks.operators import Operator, list_operators
from headrace.place.building_blocks.storm_numbers import (
    hash_order,
    is_system,
    number_tasks,
    table_of_copy,
    table_of_growth,
    table_of_set,
)
from headrace.place.building_blocks.topologies import each_topology

Neighbours = Literal["most", "fewest"]
Version = Literal["2.0", "2.3"]
NOT_IN_THE_FILE = "Storm's default, as the file gives no worker_max_heap_mb"


def storm_ras(
    problem: Problem,
    *,
    default_cpu: float = 10.0,
    default_memory_mb: float = 128.0,
    worker_heap_mb: float = 768.0,
    node_cpu: float = 400.0,
    node_memory_mb: float = 3072.0,
    neighbours: Neighbours = "fewest",
    version: Version = "2.0",
) -> Assignment:
    """Place every topology by first fit, with Storm's defaults for what the file does not say."""
    options = [default_cpu, default_memory_mb, worker_heap_mb, node_cpu, node_memory_mb]
    if min(options) < 0:
        raise InvalidInput(f"storm-ras: an option is {min(options):g}; amounts cannot be negative")
    known = state_defaults(problem, *options)
    if not np.isinf(problem.worker_heap_mb).any():
        return first_fit(known, version, neighbours, None)
    placed = first_fit(known, version, neighbours, worker_heap_mb)
    note = f"a worker's heap is {worker_heap_mb:g} MB, {NOT_IN_THE_FILE}"
    return replace(placed, notes=(*placed.notes, note))


def state_defaults(
    problem: Problem,
    default_cpu: float = 10.0,
    default_memory_mb: float = 128.0,
    worker_heap_mb: float = 768.0,
    node_cpu: float = 400.0,
    node_memory_mb: float = 3072.0,
) -> Problem:
    """The problem with Storm's defaults for what the file does not say."""
    unstated = problem.demand == 0
    unstated[:, CPU] &= ~problem.profiled
    unstated[:, MEMORY + 1 :] = False
    return replace(
        problem,
        demand=np.where(unstated, _row(problem, default_cpu, default_memory_mb), problem.demand),
        capacity=np.where(
            np.isinf(problem.capacity), _row(problem, node_cpu, node_memory_mb), problem.capacity
        ),
        worker_heap_mb=np.where(
            np.isinf(problem.worker_heap_mb), worker_heap_mb, problem.worker_heap_mb
        ),
    )


def _row(problem: Problem, cpu: float, memory_mb: float) -> Floats:
    """Amounts of all resources; there is no limit for further ones, [K]."""
    return np.array([cpu, memory_mb, *[np.inf] * (len(problem.resources) - 2)])


@each_topology
def first_fit(
    problem: Problem, version: Version, neighbours: Neighbours, assumed_heap_mb: float | None
) -> Assignment:
    """Each executor in turn to the first node, and there the first worker, that can hold it."""
    graph = list_operators(problem)
    room = Room(problem)
    executors = order_executors(problem, graph, neighbours)
    ackers = order_system_executors(problem, graph, version)
    place = place_with_ackers if version == "2.3" else place_in_order
    if (task := place(problem, room, executors, ackers)) is not None:
        raise no_worker_fits(problem, task, room, assumed_heap_mb)
    return Assignment(room.node, room.worker)


def place_in_order(
    problem: Problem, room: Room, executors: list[int], ackers: list[int]
) -> int | None:
    """Place all over nodes sorted once, ackers last; the executor that finds no room, if any."""
    nodes = np.concatenate(list(sort_nodes(problem, room, counted=False))).tolist()
    kind = number_kinds(problem)
    # The first node that may still hold tasks of a kind: what is free only shrinks, so those before
    # it never will again.
    start = np.zeros(int(kind.max()) + 1, dtype=np.int64)
    for task in [*executors, *ackers]:
        for position in range(int(start[kind[task]]), len(nodes)):
            if room.take(task, nodes[position]):
                break
        else:
            return task
        start[kind[task]] = position
    return None


def place_with_ackers(
    problem: Problem, room: Room, executors: list[int], ackers: list[int]
) -> int | None:
    """The same since Storm 2.3: nodes are sorted again, and a new worker gets an acker at once.

    Storm means to sort whenever the component changes, but its test is the wrong way round: it
    sorts when the component is that of the executor before.
    """
    waiting = list(ackers)
    with_acker: set[tuple[int, int]] = set()
    order: list[Ints] = []
    sorting: Iterator[Ints] = iter(())
    before = None
    for task in [*executors, *ackers]:
        component = problem.component_of[task]
        if task in ackers and task not in waiting:
            before = component
            continue
        if before is None or before == component:
            order, sorting = [], sort_nodes(problem, room, counted=True, task=task)
        before = component
        if not place_on_racks(room, task, order, sorting):
            return task
        if task in waiting:
            waiting.remove(task)
            continue
        worker = int(room.node[task]), int(room.worker[task])
        if waiting and worker not in with_acker and room.take_beside(waiting[0], *worker):
            with_acker.add(worker)
            waiting.pop(0)
    return None


def place_on_racks(room: Room, task: int, order: list[Ints], sorting: Iterator[Ints]) -> bool:
    """Take the first node with room, rack by rack; a rack is sorted when it is first reached."""
    for nodes in chain(order, record(sorting, order)):
        could = nodes[room.could_hold(task, nodes)]
        if any(room.take(task, n) for n in could.tolist()):
            return True
    return False


def record(sorting: Iterator[Ints], order: list[Ints]) -> Iterator[Ints]:
    """Racks not yet reached, which are added to the order as they come."""
    for nodes in sorting:
        order.append(nodes)
        yield nodes


class Room:
    """What is free on every node and in every worker, and who sits where."""

    def __init__(self, problem: Problem) -> None:
        # What every task needs, by machine type, [Y, T, K].
        self.need = np.stack([problem.task_demand(y) for y in range(len(problem.types))])
        self.machine = problem.node_type
        self.free = problem.free.copy()
        # Left in each slot, [N, most slots].
        self.heap = np.where(problem.slot_taken, -np.inf, problem.worker_heap_mb[0])
        self.placed = np.zeros(len(problem.nodes), dtype=np.int64)  # executors on each node
        self.node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
        self.worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)

    def could_hold(self, task: int, nodes: Ints) -> Bools:
        """Nodes whose resources would do, workers aside."""
        enough = fits(self.need[self.machine[nodes], task], self.free[nodes])
        return np.asarray(enough.all(axis=1), dtype=bool)

    def take(self, task: int, node: int) -> bool:
        """Put a task into the first worker of a node that can hold it, if there is one."""
        needed = self.need[self.machine[node], task]
        workers = fits(needed[MEMORY], self.heap[node])
        if not workers.any() or not fits(needed, self.free[node]).all():
            return False
        self._put(task, node, int(workers.argmax()), needed)
        return True

    def take_beside(self, task: int, node: int, worker: int) -> bool:
        """Put a task into this worker, if it can hold it."""
        needed = self.need[self.machine[node], task]
        if (
            not fits(needed[MEMORY], self.heap[node, worker])
            or not fits(needed, self.free[node]).all()
        ):
            return False
        self._put(task, node, worker, needed)
        return True

    def _put(self, task: int, node: int, worker: int, needed: Floats) -> None:
        self.node[task], self.worker[task] = node, worker
        self.placed[node] += 1
        self.free[node] -= needed
        self.heap[node, worker] -= needed[MEMORY]


def number_kinds(problem: Problem) -> Ints:
    """Tasks of one kind need the same on every node, [T]."""
    if problem.task_share is None:
        return problem.component_of
    _, kind = np.unique(
        np.column_stack([problem.component_of, problem.task_share]), axis=0, return_inverse=True
    )
    return kind


def order_executors(problem: Problem, graph: list[Operator], neighbours: Neighbours) -> list[int]:
    """Most connected components first: one executor of it, one of each neighbour, and so on."""
    own = {o for o, operator in enumerate(graph) if not is_system(operator.name)}
    left = list_executors(problem, graph)
    beside = [[n for n in operator.neighbours if n in own] for operator in graph]
    sign = -1 if neighbours == "most" else 1

    def connections(o: int) -> int:
        return sum(len(graph[n].tasks) for n in beside[o]) * len(graph[o].tasks)

    order: list[int] = []
    for o in sorted(own, key=lambda o: (-connections(o), graph[o].name)):
        circle = sorted(beside[o], key=lambda n: (sign * len(graph[n].tasks), graph[n].name))
        while turn := [left[c].pop(0) for c in [o, *circle] if left[c]]:
            order += turn
    return order


def list_executors(problem: Problem, graph: list[Operator]) -> list[list[int]]:
    """Tasks of every operator as Storm lists them: by the buckets of a hash map of all executors.

    Bare tasks have no numbers in Storm: they keep their order in the file.
    """
    if problem.bare:
        return [list(operator.tasks) for operator in graph]
    number = number_tasks(graph)
    table = table_of_copy(len(number))
    task = {n: t for t, n in number.items()}
    return [
        [task[n] for n in hash_order([number[t] for t in operator.tasks], table)]
        for operator in graph
    ]


def order_system_executors(problem: Problem, graph: list[Operator], version: Version) -> list[int]:
    """Tasks of Storm's own components, which it places last or beside others."""
    listed = list_executors(problem, graph)
    tasks = [t for o, operator in enumerate(graph) if is_system(operator.name) for t in listed[o]]
    if problem.bare:
        return tasks
    number = number_tasks(graph)
    task = {number[t]: t for t in tasks}
    table = table_of_growth(len(tasks)) if version == "2.3" else table_of_set(len(number))
    return [task[n] for n in hash_order([number[t] for t in tasks], table)]


def sort_nodes(
    problem: Problem, room: Room, *, counted: bool, task: int | None = None
) -> Iterator[Ints]:
    """Nodes rack by rack, those with most available resources first.

    `counted`: racks and nodes that hold most executors of the topology come before all others, and
    of those that are left the mean decides before the smaller share (Storm 2.3). Then a resource
    that `task` does not ask for counts against those that have it.
    """
    offer = np.where(np.isfinite(room.free), np.maximum(room.free, 0.0), 0.0)
    of_rack = np.zeros((len(problem.racks), offer.shape[1]))
    np.add.at(of_rack, problem.rack, offer)
    placed = np.bincount(problem.rack, room.placed, len(problem.racks)).astype(np.int64)
    unwanted = np.zeros(offer.shape[1], dtype=bool)
    if task is not None:
        unwanted[MEMORY + 1 :] = room.need[0, task, MEMORY + 1 :] == 0

    def sort(free: Floats, placed: Ints) -> Ints:
        least, mean = availability(free, unwanted)
        keys = (-least, -mean, -placed) if counted else (-mean, -least)
        return np.lexsort(keys)

    for rack in sort(of_rack, placed):
        nodes = np.flatnonzero(problem.rack == rack)
        yield nodes[sort(offer[nodes], room.placed[nodes])]


def availability(free: Floats, unwanted: Bools) -> tuple[Floats, Floats]:
    """Smallest and mean percentage of what all nodes, or racks, have free together."""
    total = free.sum(axis=0)
    known = total > 0
    if not known.any():
        return np.full(len(free), 100.0), np.full(len(free), 100.0)
    share = (np.where(unwanted, -free, free) / np.where(known, total, 1.0))[:, known]
    return share.min(axis=1) * 100.0, share.sum(axis=1) * 100.0 / known.sum()


def no_worker_fits(
    problem: Problem, task: int, room: Room, assumed_heap_mb: float | None
) -> Infeasible:
    """The refusal where no worker, or no node, can take a task."""
    need, free, heap = room.need[room.machine, task], room.free, room.heap
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
