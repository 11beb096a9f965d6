"""The graph of operators: who feeds whom, and which tasks belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.model.problem import Pairs, Problem


@dataclass(frozen=True, slots=True)
class Operator:
    """A component; in a bare task graph, the tasks that name the same one.

    Children and parents are positions in the list of operators.
    """

    name: str  # of its first component
    tasks: tuple[int, ...]
    spout: bool
    children: tuple[int, ...]  # operators that receive from it, in file order
    parents: tuple[int, ...]  # operators it receives from, in file order

    @property
    def neighbours(self) -> tuple[int, ...]:
        """Children, then parents; each once."""
        return tuple(dict.fromkeys((*self.children, *self.parents)))


def list_operators(problem: Problem) -> list[Operator]:
    """All operators, in file order."""
    _, first, number = np.unique(problem.operator, return_index=True, return_inverse=True)
    # The operator of each component, numbered by first appearance.
    position = np.argsort(np.argsort(first))[number]
    of_task = position[problem.component_of]
    measured = np.column_stack(
        [of_task[problem.pairs.source], of_task[problem.pairs.target]]
    ).tolist()
    edges = dict.fromkeys(
        [(int(position[s.source]), int(position[s.target])) for s in problem.streams]
        + [(a, b) for a, b in measured]
    )
    tasks: list[list[int]] = [[] for _ in first]
    for task, operator in enumerate(of_task.tolist()):
        tasks[operator].append(task)
    children: list[list[int]] = [[] for _ in first]
    parents: list[list[int]] = [[] for _ in first]
    for a, b in edges:
        children[a].append(b)
        parents[b].append(a)
    component = np.sort(first).tolist()
    return [
        Operator(
            problem.components[c],
            tuple(tasks[o]),
            bool(problem.spout[c]),
            tuple(children[o]),
            tuple(parents[o]),
        )
        for o, c in enumerate(component)
    ]


def downstream_pairs(problem: Problem) -> Pairs:
    """All pairs of tasks but those that lead back to a spout, as Storm's acks do."""
    pairs = problem.task_pairs()
    onward = ~problem.spout[problem.component_of[pairs.target]]
    if onward.all():
        return pairs
    return Pairs(
        pairs.source[onward],
        pairs.target[onward],
        pairs.tuples_per_s[onward],
        pairs.bytes_per_s[onward],
    )


def take_turns(queues: list[list[int]]) -> Iterator[int]:
    """The first of every queue, then the second of every queue that has one, and so on."""
    for turn in range(max(map(len, queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))
