"""The plan in force: where each task of a running topology belongs, and how a new plan comes in."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import HeadraceError, Infeasible, InvalidInput
from headrace.model.cluster import nodes_of
from headrace.model.document import Node, PlanSection
from headrace.model.read import Inputs, read
from headrace.model.topology import Topology, task_name
from headrace.run.stages import Stages, stages

Task = tuple[str, int]  # component and number, from 0
Place = tuple[str, int]  # node and worker


@dataclass(frozen=True, slots=True)
class Placement:
    """A plan, for one topology."""

    name: str
    tasks: Mapping[str, int]  # component -> count
    places: Mapping[Task, Place]
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])  # what is known of them

    def node(self, task: Task) -> str:
        return self.places[task][0]

    def beside(self, task: Task, component: str) -> tuple[int, ...]:
        """The tasks of a component in the same worker."""
        return tuple(
            n
            for n in range(self.tasks[component])
            if self.places[component, n] == self.places[task]
        )


def workers_per_node(placement: Placement) -> dict[str, int]:
    """How many workers each node needs to have for a plan: slots are counted from 0."""
    wanted: dict[str, int] = {}
    for node, worker in placement.places.values():
        wanted[node] = max(wanted.get(node, 1), worker + 1)
    return wanted


def read_placement(file: str | os.PathLike[str], topology: Topology) -> Placement:
    """The plan that a file holds for a topology; it must place every task."""
    inputs = read((Path(file),))
    if inputs.document.plan is None:
        raise InvalidInput(f"{file}: holds no plan; write one with headrace place .. --out")
    return placement_from_section(
        inputs.document.plan, topology, name=Path(file).name, nodes=_nodes(inputs)
    )


def placement_from_section(
    plan: PlanSection,
    topology: Topology,
    *,
    name: str = "plan",
    nodes: Mapping[str, Node] | None = None,
) -> Placement:
    """The places of a topology's tasks in a plan; tasks of other topologies are passed over."""
    places: dict[Task, Place] = {}
    for component, number, node, worker in _entries(plan, topology.name):
        if component not in topology.components:
            raise InvalidInput(
                f"the plan places {task_name(component, number)}; "
                f"the topology `{topology.name}` has no such component"
            )
        if (component, number - 1) in places:
            raise InvalidInput(f"the plan places {task_name(component, number)} twice")
        places[component, number - 1] = (node, worker)
    counts, stated = Counter(component for component, _ in places), plan.tasks or {}
    for component in topology.components:
        placed = counts[component]
        wanted = stated.get(component, stated.get(f"{topology.name}/{component}", max(1, placed)))
        for number in range(max(wanted, placed)):
            if (component, number) not in places or number >= wanted:
                raise InvalidInput(
                    f"the plan has {wanted} tasks of `{component}` "
                    f"and does not place {task_name(component, number + 1)}"
                )
    return Placement(name, dict(counts), places, nodes or {})


def _entries(plan: PlanSection, topology: str) -> Iterator[tuple[str, int, str, int]]:
    """(component, number from 1, node, worker) of one topology."""
    for task, where in (plan.assignment or {}).items():
        component, _, number = task.rpartition(".")
        if not number.isdecimal():
            raise InvalidInput(f"the plan places `{task}`; tasks are called component.N")
        if (own := _own_name(component, topology)) is not None:
            yield own, int(number), where.node, where.worker
    for component, runs in (plan.placement or {}).items():
        if (own := _own_name(component, topology)) is not None:
            yield from (
                (own, number, node, worker)
                for node, worker, first, last in runs
                for number in range(first, last + 1)
            )


def _own_name(component: str, topology: str) -> str | None:
    """The component's own name; None if it belongs to another topology."""
    owner, slash, name = component.rpartition("/")
    return component if not slash else name if owner == topology else None


def _nodes(inputs: Inputs) -> dict[str, Node]:
    document = inputs.document
    return (
        nodes_of(inputs) if document.cluster is not None or document.inventory is not None else {}
    )


class PlanInForce:
    """The plan of a run; a new one, or a change of its file, holds from the next batch on."""

    def __init__(
        self,
        topology: Topology,
        placement: Placement | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
        check: Callable[[Placement], None] = lambda placement: None,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._topology, self._say = topology, say
        self.check = check  # refuses a plan that cannot run
        self._file = None if file is None else Path(file)
        self._lock = threading.Lock()
        self._read_at = self._stamp()
        self._placement = placement
        if self._file is not None:
            self._placement = read_placement(self._file, topology)
        if self._placement is not None:
            check(self._placement)

    def set(self, placement: Placement) -> None:
        """Put another plan in force; one that cannot run is refused, and the old one stays."""
        self.check(placement)
        with self._lock:
            self._placement = placement

    def current(self) -> Placement | None:
        """The plan for the batch that starts now; None: every task anywhere."""
        if self._file is not None and self._stamp() != self._read_at:
            self._read_at = self._stamp()
            try:
                self.set(read_placement(self._file, self._topology))
                self._say(f"{self._file}: a new plan, in force from this batch on")
            except HeadraceError as refusal:
                self._say(
                    f"{self._file}: the new plan is refused, "
                    f"and the one before stays in force: {refusal.message}"
                )
        with self._lock:
            return self._placement

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            facts = os.stat(self._file) if self._file is not None else None
        except OSError:  # while someone replaces it
            return None
        return (facts.st_mtime_ns, facts.st_ino, facts.st_size) if facts else None


def check_cores(topology: Topology, placement: Placement, cores: Mapping[str, int]) -> None:
    """Refuse a plan with more tasks of a stage on a node than it has cores: they would queue."""
    order: Stages = stages(topology.components)
    for level in order.levels:
        wanted: dict[str, list[str]] = {}
        for component in level:
            for number in range(placement.tasks[component]):
                wanted.setdefault(placement.node((component, number)), []).append(
                    task_name(component, number + 1)
                )
        for node, tasks in wanted.items():
            _check_node(node, tasks, cores)


def _check_node(node: str, tasks: Sequence[str], cores: Mapping[str, int]) -> None:
    have = cores.get(node, 0)
    if node not in cores:
        raise Infeasible(
            f"the plan puts {tasks[0]} on node {node}, which is not there; "
            f"there are: {', '.join(cores) or 'none'}",
            task=tasks[0],
            resource="cores",
            needed=len(tasks),
            available=0,
            fix="plan for the nodes there are",
        )
    if len(tasks) > have:
        some = ", ".join(tasks[:5]) + (", .." if len(tasks) > 5 else "")
        raise Infeasible(
            f"the plan runs {len(tasks)} tasks at once on node {node} ({some}), "
            f"which has {have} cores",
            task=tasks[have],
            resource="cores",
            needed=len(tasks),
            available=have,
            fix=f"give {node} {len(tasks)} cores, plan fewer tasks per node, "
            "or let tasks queue (--crowded)",
        )
