"""Counts from measured thread points: what so many threads of a component reach in one slot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.errors import InvalidInput, Unsupported
from headrace.model.document import ThreadPoint
from headrace.model.sized import Sized
from headrace.model.workload import Workload

Points = Mapping[int, ThreadPoint]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Threads of a component and the percents of slots they take."""

    threads: int
    cpu: float
    memory: float


def allocate_threads(
    workload: Workload, allocate: Callable[[float, Points], Allocation], by: str
) -> Sized:
    """Counts for the rates of the file: every component with thread points by `allocate`.

    Components without thread points keep their count.
    """
    if workload.inputs.document.tasks is not None:
        raise Unsupported(
            "a bare task graph has no components whose tasks could be counted",
            fix="describe it as a topology",
        )
    problem = workload.problem()
    parts: dict[str, Allocation] = {}
    tasks: dict[str, int] = {}
    for c, component in enumerate(workload.components):
        points = thread_points(workload, component.name, problem.types, by)
        if points is None:
            tasks[component.name] = component.spec.tasks
            continue
        part = allocate(float(problem.rate[c]), points)
        most = component.spec.max_tasks
        if most is not None and part.threads > most:
            raise Unsupported(
                f"{by} needs {part.threads} tasks of `{component.name}` "
                f"for {problem.rate[c]:g} tuples/s; its max_tasks is {most}",
                task=component.name,
                resource="tasks",
                needed=part.threads,
                available=most,
                fix="raise max_tasks, or lower the rate",
            )
        parts[component.name] = part
        tasks[component.name] = max(1, part.threads)
    if not parts:
        raise InvalidInput(
            f"no component has thread points: "
            f"{by} needs `profile: {{component: {{type: {{threads: ..}}}}}}`"
        )
    cpu, memory = sum(p.cpu for p in parts.values()), sum(p.memory for p in parts.values())
    sized = workload.problem(tasks)
    rate = float(sized.rate[sized.spout].sum())
    slots = (
        f"{by}: {count_slots(parts)} slots; "
        f"{cpu:.2f} % of one slot's cpu and {memory:.2f} % of one slot's memory in all"
    )
    return Sized(tasks, sized, None, rate, notes=(*sized.notes, slots), workload=workload)


def count_slots(parts: Mapping[str, Allocation]) -> int:
    """Slots that hold all of it, for the one of CPU and memory that needs more."""
    return math.ceil(
        max(sum(p.cpu for p in parts.values()), sum(p.memory for p in parts.values())) / 100 - 1e-9
    )


def thread_points(
    workload: Workload, component: str, types: tuple[str, ...], by: str
) -> Points | None:
    """The measured points of a component, the same on all machine types; None if it has none."""
    found = [
        cost.threads
        for kind in types
        if (cost := workload.cost(component, kind)) is not None and cost.threads
    ]
    if not found:
        return None
    if any(points != found[0] for points in found) or len(found) < len(types):
        raise Unsupported(
            f"{by} knows one kind of slot; "
            f"the thread points of `{component}` differ between machine types",
            fix="use headrace",
        )
    if 1 not in found[0]:
        raise InvalidInput(f"profile: the thread points of `{component}` lack those of 1 thread")
    for threads, point in found[0].items():
        if not point.rate > 0:
            raise InvalidInput(
                f"profile: `{component}` with {threads} threads has rate {point.rate:g}; "
                "it must be above 0"
            )
    return found[0]
