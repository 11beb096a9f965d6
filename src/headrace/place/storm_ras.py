"""Storm's resource-aware scheduler: most connected tasks first, each to the first node that fits.

Source    Apache Storm 2.0 to 2.2, DefaultResourceAwareStrategy with its default settings: what
          Muhammad calls R-Storm (2.0.0). Option version=2.3: that of 2.3 and later, which sorts
          nodes again between two tasks of a component, prefers nodes in use, gives every new
          worker an acker and, where a task finds no room, tries other places for those before it,
          for up to max_states states. Option neighbours=most: that of 1.1, Eskandari's R-Storm
          (1.1.1).
Maturity  faithful
Guards    CPU, memory, further resources, worker heap and slots are never overcommitted; bandwidth,
          pins and separations may be violated (the scheduler does not know them).
Differs   a demand of 0 counts as one that is not stated; topologies without a spout are placed,
          which Storm refuses; all tasks are placed again, so no node is preferred for what already
          runs there; equal nodes and racks keep their order in the file, where Storm orders them by
          an id; bare tasks keep their order, where Storm has that of a hash map. The search of 2.3
          ends by its states alone, where Storm also looks at the clock (60 s), and it does not
          begin where it cannot succeed. The number of workers follows from the heap; `workers` is
          not looked at, as in Storm. Apart from this, every executor is where Storm's own classes
          put it (`headrace lab storm-referee`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.model.arrays import TOLERANCE
from headrace.model.problem import (
    CPU,
    MEMORY,
    Assignment,
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
from headrace.place.building_blocks.storm_room import Racks, Room, sort_nodes
from headrace.place.building_blocks.topologies import each_topology

Neighbours = Literal["most", "fewest"]
Version = Literal["2.0", "2.3"]
Refuse = Callable[[int], Infeasible]
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
    max_states: int = 10_000,
) -> Assignment:
    """Place every topology by first fit, with Storm's defaults for what the file does not say."""
    if max_states < 1:
        raise InvalidInput(f"storm-ras: max_states is {max_states}; a search needs at least 1")
    options = [default_cpu, default_memory_mb, worker_heap_mb, node_cpu, node_memory_mb]
    if min(options) < 0:
        raise InvalidInput(f"storm-ras: an option is {min(options):g}; amounts cannot be negative")
    known = state_defaults(problem, *options)
    if not np.isinf(problem.worker_heap_mb).any():
        return first_fit(known, version, neighbours, None, max_states)
    placed = first_fit(known, version, neighbours, worker_heap_mb, max_states)
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
    problem: Problem,
    version: Version,
    neighbours: Neighbours,
    assumed_heap_mb: float | None,
    max_states: int,
) -> Assignment:
    """Each executor in turn to the first node, and there the first worker, that can hold it."""
    graph = list_operators(problem)
    room = Room(problem)
    executors = order_executors(problem, graph, neighbours)
    ackers = order_system_executors(problem, graph, version)

    def refuse(task: int) -> Infeasible:
        return no_worker_fits(problem, task, room, assumed_heap_mb)

    if version == "2.3":
        place_with_ackers(problem, room, executors, ackers, refuse, max_states)
    else:
        place_in_order(problem, room, [*executors, *ackers], refuse)
    return Assignment(room.node, room.worker)


def place_in_order(problem: Problem, room: Room, executors: list[int], refuse: Refuse) -> None:
    """Place all executors over nodes sorted once."""
    nodes = np.concatenate(list(sort_nodes(problem, room, counted=False))).tolist()
    kind = number_kinds(problem)
    # The first node that may still hold tasks of a kind: what is free only shrinks, so those before
    # it never will again.
    start = np.zeros(int(kind.max()) + 1, dtype=np.int64)
    for task in executors:
        for position in range(int(start[kind[task]]), len(nodes)):
            if room.take(task, nodes[position]):
                break
        else:
            raise refuse(task)
        start[kind[task]] = position


def place_with_ackers(
    problem: Problem,
    room: Room,
    executors: list[int],
    ackers: list[int],
    refuse: Refuse,
    max_states: int,
) -> None:
    """The same since Storm 2.3: sort nodes again, give new workers an acker, and go back.

    Storm means to sort whenever the component changes, but its test is the wrong way round: it
    sorts when the component is that of the executor before, and after going back.
    """
    check_states(problem, max_states)
    descent = Descent(room, executors, ackers)
    component = problem.component_of[descent.order].tolist()
    states, racks, refusal = 0, None, None
    while descent.at < len(descent.order):
        if refusal and states > max_states:
            raise give_up(refusal, f"until {max_states} states were seen (option max_states)")
        at = descent.at
        if descent.is_placed_acker(at):
            descent.at += 1
            continue
        if racks is None or at == 0 or component[at] == component[at - 1]:
            racks = Racks(sort_nodes(problem, room, counted=True, task=descent.order[at]))
        # Sorting is dear: not where no order would help.
        if (refusal is None or room.has_place(descent.order[at])) and descent.go_on(racks):
            states += 1
            continue
        racks = None
        refusal = refusal or refuse_first(problem, descent.order[at], refuse)
        if not descent.go_back():
            raise give_up(refusal, "in vain")


class Descent:
    """The places of the first executors, and what was tried for each of them."""

    def __init__(self, room: Room, executors: list[int], ackers: list[int]) -> None:
        self.room = room
        self.order = [*executors, *ackers]
        self.own = len(executors)  # ackers come after these
        self.at = 0  # whose turn it is
        # Workers that were looked at for each executor, while those before it stayed.
        self.tried = [0] * len(self.order)
        # Workers that got an acker, the first of them the first acker, and so on.
        self.with_acker: dict[tuple[int, int], None] = {}

    def is_placed_acker(self, at: int) -> bool:
        """Whether an executor is an acker that a new worker has already got."""
        return 0 <= at - self.own < len(self.with_acker)

    def go_on(self, racks: Racks) -> bool:
        """Put the executor into the first worker with room after those tried, if there is one."""
        task = self.order[self.at]
        self.tried[self.at] = take_next(self.room, task, racks, self.tried[self.at])
        if not self.tried[self.at]:
            return False
        if self.at < self.own:
            self.add_acker(int(self.room.node[task]), int(self.room.worker[task]))
        self.at += 1
        return True

    def add_acker(self, node: int, worker: int) -> None:
        """Put the next acker into a worker that has none, if it can hold it."""
        waiting = self.own + len(self.with_acker)
        if (
            waiting < len(self.order)
            and (node, worker) not in self.with_acker
            and self.room.take_beside(self.order[waiting], node, worker)
        ):
            self.with_acker[node, worker] = None

    def go_back(self) -> bool:
        """Take the executor before out of its worker, with the acker it brought, if there is one.

        Then it is that executor's turn.
        """
        self.at -= 1
        while self.is_placed_acker(self.at):
            self.at -= 1
        if self.at < 0:
            return False
        if self.room.take_back(self.order[self.at]) > 1:
            self.with_acker.popitem()
        return True


def take_next(room: Room, task: int, racks: Racks, tried: int) -> int:
    """Put a task into the first worker that can hold it, the first `tried` left out.

    How many workers were looked at by then; 0 if none can hold it. Storm counts workers along the
    nodes as they are sorted now, even if they were tried in another order.
    """
    seen = 0
    for nodes in racks:
        for n in nodes[room.could_hold(task, nodes)].tolist():
            slots = int(room.slots[n])
            if seen + slots > tried and room.take(task, n, tried - seen):
                return seen + room.rank(task) + 1
            seen += slots
    return 0


def check_states(problem: Problem, max_states: int) -> None:
    """Refuse a topology with so many executors that the search could not see them all."""
    if problem.task_count >= max_states:
        raise Unsupported(
            f"storm-ras 2.3 sees at most {max_states} states, one for each task it places, and "
            f"there are {problem.task_count} tasks: Storm refuses such a topology",
            fix=f"set max_states to {problem.task_count + 1} or more "
            "(topology.ras.constraint.max.state.search in Storm), or choose version=2.0",
        )


def refuse_first(problem: Problem, task: int, refuse: Refuse) -> Infeasible:
    """The refusal of the first task without room; raised where no other places could help.

    They cannot if the task has no room on empty nodes, or if all nodes together have too little.
    """
    refusal = refuse(task)
    room = Room(problem)
    needed = room.need[np.unique(room.machine)].min(axis=0).sum(axis=0)
    free = np.maximum(room.free, 0.0).sum(axis=0) + TOLERANCE * len(problem.nodes)
    if not room.has_place(task) or not fits(needed, free).all():
        raise refusal
    return refusal


def give_up(refusal: Infeasible, outcome: str) -> Infeasible:
    """The refusal, with what became of the search for other places."""
    return Infeasible(
        f"{refusal.message}; other places for the tasks before it were tried {outcome}",
        task=refusal.task,
        resource=refusal.resource,
        needed=refusal.needed,
        available=refusal.available,
        fix=refusal.fix,
    )


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
