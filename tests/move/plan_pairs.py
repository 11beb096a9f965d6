"""Pairs of plans for one problem: random ones at a given load, and their replay by the judge."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from headrace.checks.problems import problem_of
from headrace.judge.feasible import Violation, violations
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.problem import Assignment, Problem
from headrace.move.safe_order import Move


def random_pair(
    seed: int,
    *,
    nodes: tuple[int, int] = (4, 10),
    per_node: tuple[int, int] = (6, 12),
    load: float = 0.85,
) -> tuple[Problem, Assignment, Assignment]:
    """Two random plans that fit, on alike nodes used to the given share of CPU and memory."""
    rng = np.random.default_rng([seed, 41])
    while True:
        count = int(rng.integers(nodes[0], nodes[1] + 1))
        tasks = count * int(rng.integers(per_node[0], per_node[1] + 1))
        components = max(2, tasks // 4)
        sizes = np.maximum(1, np.bincount(rng.integers(0, components, tasks), minlength=components))
        cpu, memory = (
            rng.uniform(10, 30, components).round(1),
            rng.uniform(100, 300, components).round(),
        )
        described: dict[str, dict[str, object]] = {}
        for i in range(components):
            described[f"c{i}"] = {
                "tasks": int(sizes[i]), "cpu": float(cpu[i]), "memory_mb": float(memory[i]),
                "state_mb": float(rng.integers(1, 100)), "selectivity": 0.8,
                **(
                    {"spout": True, "rate": 1000}
                    if i == 0
                    else {"inputs": {f"c{int(rng.integers(0, i))}": "shuffle"}}
                ),
            }  # fmt: skip
        node = {
            "cpu": float(sizes @ cpu) / count / load,
            "memory_mb": float(sizes @ memory) / count / load,
            "bandwidth_mbps": 1000,
        }
        content = {
            "topology": {"components": described},
            "cluster": {"nodes": {f"n{{1..{count}}}": node}},
        }
        problem = problem_of(content)
        plans = list(
            islice(
                (
                    plan
                    for plan in (random_plan(problem, rng) for _ in range(200))
                    if plan is not None
                ),
                2,
            )
        )
        if len(plans) == 2:
            return problem, plans[0], plans[1]


def random_plan(problem: Problem, rng: np.random.Generator) -> Assignment | None:
    """Tasks, large ones first, each on a random node with room; None if one finds none."""
    need, free = problem.task_demand(0), problem.free.copy()
    node = np.empty(problem.task_count, dtype=np.int64)
    size = (need / problem.free[0]).max(axis=1)
    for t in np.argsort(-size + rng.normal(0, 0.02, len(size))).tolist():
        fits = np.flatnonzero((need[t] <= free + 1e-12).all(axis=1))
        if not len(fits):
            return None
        node[t] = rng.choice(fits)
        free[node[t]] -= need[t]
    return Assignment(node, np.zeros_like(node))


def broken_rules(problem: Problem, plan: Assignment) -> list[Violation]:
    """All rules a plan breaks, by the judge."""
    workers = Workers.of(plan)
    sent = traffic(problem, plan, workers)
    return violations(problem, plan, workers, sent, use(problem, plan, workers, sent))


def replayed(problem: Problem, old: Assignment, moves: Iterable[Move]) -> Iterable[Assignment]:
    """The state after every move."""
    task = {problem.task_name(t): t for t in range(problem.task_count)}
    number = {name: n for n, name in enumerate(problem.nodes)}
    node, worker = old.node.copy(), old.worker.copy()
    for move in moves:
        t = task[move.task]
        assert move.source == (None if node[t] < 0 else problem.nodes[node[t]])
        node[t], worker[t] = number[move.target], move.worker
        yield Assignment(node.copy(), worker.copy())
