"""How many vertices does I-Scheduler's exact model solve in how many seconds, on this machine?

The thesis finds its threshold phi for a time theta "from previous experiments" (algorithm 4, line
4). These are the experiments: its three layouts on its two clusters, growing until the time is
over. Where all tasks are alike, as in the thesis, or those of an operator, far larger graphs are
solved than where every load and every rate is different; so there are three columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import headrace
from headrace.lab.machine import machine
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import Problem
from headrace.model.read import validated
from headrace.model.request import Deadline, Request
from headrace.place.building_blocks.exact_model import (
    ALIKE,
    BY_OPERATOR,
    KINDS,
    solve_model,
)

CLUSTERS = ((4,) * 10, (6,) * 3 + (4,) * 3 + (2,) * 4)  # capacities, section 6.2.1
MOST = min(sum(capacities) for capacities in CLUSTERS)  # tasks that both clusters hold
WARM_UP = 10  # the smallest size that all three layouts have
SEEDS = range(2)  # different loads and rates


def calibrate(
    *, seconds: float = 60.0, most: int = MOST, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """CPU seconds by kind of graph and number of vertices, the worst case of each.

    A kind ends with the first size that has a case of more than `seconds`.
    """
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        found[kind] = {}
        for problem in cases(kind, WARM_UP):
            took_s(problem, seconds)  # compiles
        for size in range(2, min(most, MOST) + 1, 2):
            worst = worst_of(cases(kind, size), seconds)
            say(f"{kind}, {size} vertices: {worst:.2f} s")
            if worst > seconds:
                break
            found[kind][str(size)] = round(worst, 3)
    return {
        "what": "CPU seconds of the exact model, the worst case by number of vertices",
        "made_by": f"headrace lab calibrate --seconds {seconds:g}",
        "version": headrace.__version__,
        "machine": machine(),
        "seconds": found,
    }


def worst_of(problems: Iterable[Problem], seconds: float) -> float:
    """The longest time; the first one above the limit is enough."""
    worst = 0.0
    for problem in problems:
        worst = max(worst, took_s(problem, seconds))
        if worst > seconds:
            break
    return worst


def took_s(problem: Problem, seconds: float) -> float:
    """CPU seconds until the model is solved, or until the limit is over."""
    demand = np.stack([problem.task_demand(y) for y in range(len(problem.types))])
    deadline = Deadline(seconds, time.process_time)
    vertices = np.arange(problem.task_count)
    solve_model(
        problem, problem.task_pairs(), demand, problem.free, vertices, Request(deadline=deadline)
    )
    return deadline.elapsed


def cases(kind: str, size: int) -> Iterator[Problem]:
    """Every layout that has so many tasks, on both clusters."""
    for operators in layouts(size):
        for capacities in CLUSTERS:
            for seed in SEEDS[:1] if kind == ALIKE else SEEDS:
                yield problem_of(operators, capacities, kind, seed)


Operators = list[tuple[int, list[int]]]  # tasks, and the operators it receives from


def layouts(size: int) -> Iterator[Operators]:
    """Linear, diamond and star of a size, where there is one (section 6.2.1)."""
    yield [(2, [i - 1] if i else []) for i in range(size // 2)]
    inner = (size - 8) // 2
    if inner > 0:
        middle = list(range(1, inner + 1))
        yield [(4, []), *((2, [0]) for _ in middle), (4, middle)]
    outer = (size - 4) // 2
    if outer > 1:
        sources = list(range(1, outer + 1, 2))
        yield [(4, sources), *((2, [] if i in sources else [0]) for i in range(1, outer + 1))]


def problem_of(
    operators: Operators, capacities: tuple[int, ...], kind: str, seed: int = 0
) -> Problem:
    """Operators that are completely connected; loads and rates are 1, or as the kind says."""
    rng = np.random.default_rng(seed)

    def values(low: float, high: float, count: int) -> list[float]:
        """One for all tasks or pairs, one for those of an operator or stream, or one for each."""
        if kind == ALIKE:
            return [1.0] * count
        drawn = rng.uniform(low, high, 1 if kind == BY_OPERATOR else count)
        return np.broadcast_to(drawn.round(4), count).tolist()

    tasks: dict[str, Any] = {}
    traffic: list[list[Any]] = []
    names = [[f"t{i}-{k}" for k in range(count)] for i, (count, _) in enumerate(operators)]
    for i, (count, inputs) in enumerate(operators):
        for name, load in zip(names[i], values(0.5, 1.0, count), strict=True):
            tasks[name] = {"component": f"o{i}", "cpu": load}
        for j in inputs:
            pairs = [(a, b) for a in names[j] for b in names[i]]
            rates = values(0.5, 1.5, len(pairs))
            traffic += [[a, b, rate] for (a, b), rate in zip(pairs, rates, strict=True)]
    nodes = {f"n{n}": {"cpu": float(c)} for n, c in enumerate(capacities)}
    sections = {"tasks": tasks, "traffic": traffic, "cluster": {"nodes": nodes}}
    return build(validated({"format": FORMAT, **sections}, {}))
