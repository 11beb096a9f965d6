"""Why is this task here, and what would it take to move it?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headrace.errors import InvalidInput
from headrace.figures import number
from headrace.judge.traffic import Workers, stream_crossing, traffic
from headrace.judge.use import use
from headrace.model.arrays import TOLERANCE, Floats, totals
from headrace.model.load_aware import with_shares
from headrace.model.nearest import nearest
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What moving a task to another node would do."""

    node: str
    traffic: float  # tuples/s it exchanges with tasks there
    change: float  # of inter-node traffic, if it moved there; below 0 is better
    blocked: str | None  # what forbids it, with the numbers


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is where it is."""

    task: str
    node: str
    worker: int
    holds: float  # tuples/s it exchanges with tasks on its node
    total: float  # tuples/s it exchanges with all others
    partners: tuple[tuple[str, float], ...]  # components on its node it talks to most
    elsewhere: tuple[Elsewhere, ...]  # other nodes, the best first
    reason: str

    def to_json(self) -> dict[str, Any]:
        """As printed by `explain --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Costly:
    """A stream, and how much of it goes from node to node."""

    source: str
    target: str
    stream: str
    tuples_per_s: float
    crossing: float


def task_number(problem: Problem, name: str) -> int:
    """The number of the task that files call by this name."""
    component, _, nth = (name, "", "1") if problem.bare else name.rpartition(".")
    if component in problem.components and nth.isdigit():
        c = problem.components.index(component)
        if 1 <= int(nth) <= problem.tasks[c]:
            return int(problem.first[c]) + int(nth) - 1
    near = nearest(component or name, problem.components)
    raise InvalidInput(f"there is no task `{name}`{near}; tasks are called component.N")


def explain_task(problem: Problem, assignment: Assignment, name: str) -> Explanation:
    """What holds a task on its node, what every other node would cost, and what blocks it there."""
    task = task_number(problem, name)
    node = int(assignment.node[task])
    if node == UNPLACED:
        topology = problem.topologies[problem.topology[problem.component_of[task]]]
        why = assignment.refused.get(topology)
        raise InvalidInput(
            f"{name} is not placed: `{topology}` was refused{': ' + why.message if why else ''}"
        )
    by_component = _exchange(problem, assignment, task)
    by_node = by_component.sum(axis=0)
    here = float(by_node[node])
    others = [n for n in range(len(problem.nodes)) if n != node]
    blocked = _blocked(problem, assignment, task)
    elsewhere = sorted(
        (
            Elsewhere(problem.nodes[n], float(by_node[n]), here - float(by_node[n]), blocked[n])
            for n in others
        ),
        key=lambda e: (e.change, e.blocked is not None),
    )
    partners = [
        (problem.components[c], float(by_component[c, node]))
        for c in np.argsort(-by_component[:, node], kind="stable")[:3]
    ]
    partners = [(who, rate) for who, rate in partners if rate > 0]
    total = float(by_node.sum())
    reason = _reason(name, problem.nodes[node], here, total, partners, elsewhere)
    return Explanation(
        name,
        problem.nodes[node],
        int(assignment.worker[task]),
        here,
        total,
        tuple(partners),
        tuple(elsewhere),
        reason,
    )


def costly_streams(problem: Problem, assignment: Assignment) -> list[Costly]:
    """Streams by the traffic they send between nodes, most first; pairs added up by component."""
    problem = with_shares(problem, assignment)
    workers = Workers.of(assignment)
    rows: list[Costly] = []
    for s in problem.streams:
        if assignment.node[problem.first[s.source]] != UNPLACED:
            c = stream_crossing(problem, workers, s)
            rows.append(
                Costly(
                    problem.components[s.source],
                    problem.components[s.target],
                    s.name,
                    c.total,
                    max(0.0, c.inter_node),
                )
            )
    pairs = problem.pairs
    if len(pairs):
        edge = (
            problem.component_of[pairs.source] * len(problem.tasks)
            + problem.component_of[pairs.target]
        )
        edges, which = np.unique(edge, return_inverse=True)
        crosses = assignment.node[pairs.source] != assignment.node[pairs.target]
        total = np.bincount(which, pairs.tuples_per_s)
        apart = np.bincount(which, pairs.tuples_per_s * crosses)
        for e, t, x in zip(edges.tolist(), total.tolist(), apart.tolist(), strict=True):
            a, b = divmod(e, len(problem.tasks))
            rows.append(Costly(problem.components[a], problem.components[b], "measured", t, x))
    return sorted(rows, key=lambda row: -row.crossing)


def _exchange(problem: Problem, assignment: Assignment, task: int) -> Floats:
    """Tuples/s a task exchanges with others, by their component and node, [C, N]."""
    c, n = int(problem.component_of[task]), len(problem.nodes)
    exchange = np.zeros((len(problem.components), n))
    for s in problem.streams:
        if c not in (s.source, s.target):
            continue
        source, target = problem.tasks_of(s.source), problem.tasks_of(s.target)
        received = s.received(target.stop - target.start)
        if s.source == c:
            sends = s.tuples_per_s * problem.share[task]
            exchange[s.target] += sends * totals(assignment.node[target], received, n)
            if s.target == c:
                exchange[c, assignment.node[task]] -= sends * received[task - target.start]
        if s.target == c:
            takes = s.tuples_per_s * received[task - target.start]
            exchange[s.source] += takes * totals(assignment.node[source], problem.share[source], n)
            if s.source == c:
                exchange[c, assignment.node[task]] -= takes * problem.share[task]
    pairs = problem.pairs
    for one, other in ((pairs.source, pairs.target), (pairs.target, pairs.source)):
        mine = (one == task) & (other != task)
        np.add.at(
            exchange,
            (problem.component_of[other[mine]], assignment.node[other[mine]]),
            pairs.tuples_per_s[mine],
        )
    return np.maximum(exchange, 0.0)


def _blocked(problem: Problem, assignment: Assignment, task: int) -> list[str | None]:
    """For every node, what keeps the task from moving there."""
    workers = Workers.of(assignment)
    used = use(problem, assignment, workers, traffic(problem, assignment, workers))
    c = int(problem.component_of[task])
    topology = int(problem.topology[c])
    owner = problem.topology[problem.component_of]
    at_home = (
        np.bincount(
            assignment.node[(owner == topology) & (assignment.node != UNPLACED)],
            minlength=len(problem.nodes),
        )
        > 0
    )
    siblings = np.bincount(assignment.node[problem.tasks_of(c)], minlength=len(problem.nodes))
    answers: list[str | None] = []
    for n in range(len(problem.nodes)):
        machine = int(problem.node_type[n])
        need = problem.demand[c].copy()
        need[CPU] += (
            problem.cpu_fixed[c, machine] + problem.cpu_rate[c, machine] * problem.share[task]
        )
        free = problem.capacity[n] - problem.taken[n] - used.resources[n]
        short = [
            k for k in range(len(need)) if need[k] > free[k] + TOLERANCE * max(1.0, float(need[k]))
        ]
        if problem.allowed is not None and not problem.allowed[c, n]:
            answers.append(f"{problem.components[c]} is pinned to other nodes")
        elif problem.apart[c] and siblings[n]:
            answers.append(
                f"another task of {problem.components[c]} is there, and they are to be kept apart"
            )
        elif not at_home[n] and used.workers[n] >= problem.free_slots[n]:
            answers.append(f"no free slot ({int(problem.slots[n])} slots, all in use)")
        elif short:
            answers.append(
                "; ".join(
                    f"{problem.resources[k]} needs {need[k]:g}, {max(0.0, free[k]):g} is free"
                    for k in short
                )
            )
        else:
            answers.append(None)
    return answers


def _reason(
    name: str,
    node: str,
    here: float,
    total: float,
    partners: list[tuple[str, float]],
    elsewhere: list[Elsewhere],
) -> str:
    if total == 0:
        return f"{name} exchanges no tuples with others; any node with room is as good as {node}."
    talks = ", ".join(f"{who} ({number(rate)}/s)" for who, rate in partners)
    text = f"{name} exchanges {number(total)} tuples/s; {number(here)} of them stay on {node}" + (
        f", with {talks}." if talks else "."
    )
    if not elsewhere:
        return text
    best = elsewhere[0]
    free = next((e for e in elsewhere if e.blocked is None), None)
    if best.change < 0 and best.blocked:
        text += f" {best.node} would save {number(-best.change)}/s, but is blocked: {best.blocked}."
    if free is not None:
        word = f"save {number(-free.change)}" if free.change < 0 else f"cost {number(free.change)}"
        text += f" The best node with room, {free.node}, would {word} tuples/s."
    else:
        text += " No other node has room for it."
    return text
