"""Storm's own schedulers as referees: do ours put every executor where Storm's put it?

The Java class `Referee` of `storm-plugin/` runs Storm's classes outside Nimbus. What it gets and
gives is JSON with positions in the place of names, so that Storm's order by name is the order of
our files.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.model.arrays import Ints
from headrace.model.problem import CPU, MEMORY, UNPLACED, Assignment, Problem
from headrace.place.building_blocks.operators import list_operators
from headrace.place.building_blocks.storm_numbers import number_tasks
from headrace.place.storm_even import storm_even
from headrace.place.storm_ras import Version, state_defaults, storm_ras

REFEREE = "org.headrace.storm.referee.Referee"
STRATEGY = "org.apache.storm.scheduler.resource.strategies.scheduling.DefaultResourceAwareStrategy"
BACKTRACKED = re.compile(r"backtracked (\d+) times")
UNLIMITED = 1e9  # Storm knows no node without a limit


@dataclass(frozen=True, slots=True)
class Rule:
    """One of our schedulers, and the one of Storm's that it follows."""

    name: str
    version: Version | None  # of storm-ras; None: storm-even
    storm: str  # the version whose classes are asked

    @property
    def strategy(self) -> str | None:
        """The resource-aware strategy to ask; None: Storm's default scheduler."""
        return None if self.version is None else STRATEGY


# Storm 2.8.3 still has the strategy of 2.0 to 2.2 (DefaultResourceAwareStrategyOld), but there it
# places ackers as the new one does: so 2.2.0 itself is asked.
RULES = {
    rule.name: rule
    for rule in (
        Rule("storm-even", None, "2.8.3"),
        Rule("2.0", "2.0", "2.2.0"),
        Rule("2.3", "2.3", "2.8.3"),
    )
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What both did with one problem."""

    executors: int
    same: int  # executors on the same node, in workers of the same executors
    refused: tuple[str, ...]  # topologies that both refuse
    first: str  # where they part, in words; empty if they do not
    seconds: float  # that Storm took
    went_back: int  # how often Storm moved an executor to make room for a later one

    @property
    def equal(self) -> bool:
        """Whether they agree on every executor."""
        return self.same == self.executors


def referee(problems: Sequence[Problem], rule: Rule, java: Sequence[str]) -> list[Verdict]:
    """Let Storm and us place problems by the same rule, and compare executor by executor.

    `java` starts a JVM with the classes of `rule.storm` and ours (`headrace.storm.nimbus`).
    """
    ours = [place(problem, rule) for problem in problems]
    questions = [describe(p, rule, plan) for p, plan in zip(problems, ours, strict=True)]
    answers = ask(questions, java)
    return [
        compare(problem, plan, answer)
        for problem, plan, answer in zip(problems, ours, answers, strict=True)
    ]


def place(problem: Problem, rule: Rule) -> Assignment:
    """What we do; nothing is placed where all topologies are refused."""
    try:
        if rule.version is None:
            return storm_even(problem)
        return storm_ras(problem, version=rule.version)
    except HeadraceError as error:
        nowhere = np.full(problem.task_count, UNPLACED, dtype=np.int64)
        return Assignment(nowhere, nowhere, dict.fromkeys(problem.topologies, error))


def ask(questions: Sequence[Mapping[str, Any]], java: Sequence[str]) -> list[dict[str, Any]]:
    """The referee's answers; one JVM for all, since it takes a second to start."""
    text = json.dumps({"problems": questions})
    done = subprocess.run([*java, REFEREE], input=text, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        words = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Unsupported(f"Storm's referee ended with status {done.returncode}: {words[-1]}")
    return json.loads(done.stdout)["answers"]


def describe(problem: Problem, rule: Rule, ours: Assignment) -> dict[str, Any]:
    """A problem as the referee reads it: what is free, and what every executor asks for."""
    known = state_defaults(problem) if rule.strategy else problem
    if not (known.cpu_rate == known.cpu_rate[:, :1]).all() or (
        known.task_share is not None and (known.cpu_rate > 0).any()
    ):
        raise InvalidInput(
            "Storm knows one CPU demand for all executors of a component, wherever they run; "
            "this problem's profile gives several"
        )
    free = np.where(np.isfinite(known.free), known.free, UNLIMITED)
    return {
        "strategy": rule.strategy,
        "nodes": [
            {
                "id": f"{n:06}",
                "rack": f"{known.rack[n]:06}",
                "slots": int(known.free_slots[n]),
                **_amounts(known, free[n].tolist()),
            }
            for n in range(len(known.nodes))
        ],
        "topologies": [_topology(known, g, ours) for g in _order(known)],
    }


def _order(problem: Problem) -> list[int]:
    """Topologies in the order in which they are placed."""
    return np.argsort(problem.priority, kind="stable").tolist()


def _amounts(problem: Problem, amounts: Sequence[float]) -> dict[str, Any]:
    further = zip(problem.resources[MEMORY + 1 :], amounts[MEMORY + 1 :], strict=True)
    return {
        "cpu": amounts[CPU],
        "memory_mb": amounts[MEMORY],
        "resources": {name: amount for name, amount in further if amount < UNLIMITED},
    }


def _topology(problem: Problem, topology: int, ours: Assignment) -> dict[str, Any]:
    alone = problem.only(topology, problem.taken, problem.slot_taken)
    need = alone.task_demand(0)
    graph = list_operators(alone)
    tasks = np.flatnonzero(problem.topology[problem.component_of] == topology)
    workers = {(ours.node[t], ours.worker[t]) for t in tasks if ours.node[t] != UNPLACED}
    return {
        "id": f"{topology:06}",
        # Absent in the file, the number of workers depends on the slots that others left.
        "workers": int(problem.workers[topology]) or max(1, len(workers)),
        "worker_heap_mb": float(min(problem.worker_heap_mb[topology], UNLIMITED)),
        "components": [
            {
                "name": operator.name.rsplit("/", 1)[-1],
                "spout": not operator.parents,
                "tasks": len(operator.tasks),
                "inputs": sorted({graph[p].name.rsplit("/", 1)[-1] for p in operator.parents}),
                **_amounts(alone, need[operator.tasks[0]].tolist()),
            }
            for operator in graph
        ],
    }


def read_answer(problem: Problem, answer: Mapping[str, Any]) -> Assignment:
    """Storm's assignment; slots are the free ones of a node, by position."""
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    for found in answer["topologies"]:
        topology = int(found["id"])
        tasks = np.flatnonzero(problem.topology[problem.component_of] == topology)
        alone = problem.only(topology, problem.taken, problem.slot_taken)
        number = number_tasks(list_operators(alone))
        task = {n: int(tasks[t]) for t, n in number.items()}
        for n, name, slot in found["executors"]:
            free = np.flatnonzero(~problem.slot_taken[int(name)])
            node[task[n]], worker[task[n]] = int(name), free[slot]
    return Assignment(node, worker)


def compare(problem: Problem, ours: Assignment, answer: Mapping[str, Any]) -> Verdict:
    """Executors that both put on the same node, in workers of the same executors."""
    storms = read_answer(problem, answer)
    same = (ours.node == storms.node) & (partners(ours) == partners(storms))
    first = ""
    if not same.all():
        task = int(np.flatnonzero(~same)[0])
        first = (
            f"{problem.task_name(task)} is {_where(problem, ours, task)} with us "
            f"and {_where(problem, storms, task)} with Storm"
        )
    owner = problem.topology[problem.component_of]
    refused = [
        name
        for g, name in enumerate(problem.topologies)
        if (ours.node[owner == g] == UNPLACED).all() and (storms.node[owner == g] == UNPLACED).all()
    ]
    return Verdict(
        executors=len(same),
        same=int(same.sum()),
        refused=tuple(refused),
        first=first,
        seconds=float(answer["seconds"]),
        went_back=sum(count_backtracks(found["status"]) for found in answer["topologies"]),
    )


def count_backtracks(status: str) -> int:
    """How often Storm went back with a topology, from what it says of it; before 2.3, never."""
    found = BACKTRACKED.search(status)
    return int(found[1]) if found else 0


def partners(assignment: Assignment) -> Ints:
    """The lowest task in the same worker, [T]: the same however slots are numbered."""
    slots = np.column_stack([assignment.node, assignment.worker])
    _, lowest, group = np.unique(slots, axis=0, return_index=True, return_inverse=True)
    return lowest[group.reshape(-1)]


def _where(problem: Problem, assignment: Assignment, task: int) -> str:
    if assignment.node[task] == UNPLACED:
        return "not placed"
    return f"on {problem.nodes[assignment.node[task]]} in slot {assignment.worker[task]}"
