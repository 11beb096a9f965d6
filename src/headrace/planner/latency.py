"""Plans for a low latency: a formula guides the search, the simulator chooses among the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from headrace.errors import HeadraceError
from headrace.judge.bounds import bound
from headrace.judge.feasible import violations
from headrace.judge.latency import predicted_latency
from headrace.judge.report import FIGURES, judge
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.headroom import within_headroom
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.request import Deadline
from headrace.planner.placing import place
from headrace.planner.result import Plan
from headrace.registry import By
from headrace.simulate.simulating import simulate

STARTS = ("traffic", "rate", "balance")  # objectives whose plans the search starts from
BEST = 4  # plans that the simulator looks at, beside the starts
TRIES = 400  # moves and swaps that the search looks at, from each start
MOST_TASKS = 2000  # above, the starts alone are compared: a try would take too long
SIMULATED = 300_000.0  # tuples served in each simulation, so that chance decides little
RUNS = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan, and the latency of 99 % that the formula predicts; inf where it cannot hold."""

    assignment: Assignment
    score: float


def place_for_latency(
    problem: Problem,
    by: By,
    *,
    options: Mapping[str, object] | None,
    seed: int,
    steps: int | None,
    seconds: float | None,
    clock: Callable[[], float] = time.perf_counter,
) -> Plan:
    """The plan whose simulated latency of 99 % is the least, at the given rates.

    Candidates are the scheduler's plans for traffic, for rate and for balance, each improved by the
    formula. Plans that cannot hold the rates come last; among these the one for rate is taken.
    """
    deadline = Deadline(seconds, clock)
    made = list(_starts(problem, by, options, seed, steps, seconds, clock))
    starts = [_candidate(problem, plan.assignment) for plan in made]
    feasible = [s for s, plan in zip(starts, made, strict=True) if plan.report.feasible] or starts
    improved = [improve(problem, s, seed + i, deadline) for i, s in enumerate(feasible)]
    few = sorted(improved, key=lambda one: one.score)[:BEST]
    chosen, notes = choose(problem, [*feasible, *few], seed)
    report = judge(
        problem,
        chosen,
        objective="latency",
        limit=bound(problem, FIGURES["latency"], cheap=True),
        stopped=deadline.stopped,
        notes=notes,
    )
    return replace(
        made[0],
        objective="latency",
        seconds=deadline.elapsed,
        assignment=chosen,
        report=report,
    )


def _starts(
    problem: Problem,
    by: By,
    options: Mapping[str, object] | None,
    seed: int,
    steps: int | None,
    seconds: float | None,
    clock: Callable[[], float],
) -> Iterator[Plan]:
    """The scheduler's plans for other objectives; what it refuses for the first, it refuses."""
    share = None if seconds is None else seconds / (len(STARTS) + 1)
    limits = {"options": options, "seed": seed, "steps": steps, "seconds": share, "clock": clock}
    for i, objective in enumerate(STARTS):
        try:
            yield place(problem, by, objective=objective, bounded=False, **limits)  # pyright: ignore[reportArgumentType]
        except HeadraceError:
            if i == 0:
                raise


def _candidate(problem: Problem, assignment: Assignment) -> Candidate:
    workers = Workers.of(assignment)
    used = use(problem, assignment, workers, traffic(problem, assignment, workers))
    found = predicted_latency(problem, assignment, workers, used)
    return Candidate(assignment, np.inf if found is None else found.p99)


def improve(problem: Problem, start: Candidate, seed: int, deadline: Deadline) -> Candidate:
    """Move and swap tasks as long as the formula gets less and no rule is broken.

    A task goes to a worker that its topology has already, so that slots stay as they are.
    """
    node = start.assignment.node
    if problem.task_count > MOST_TASKS or (node == UNPLACED).any():
        return start
    rng = np.random.default_rng(seed)
    planned = within_headroom(problem)
    best = start
    for _ in range(TRIES):
        if deadline():
            break
        tried = _neighbour(problem, best.assignment, rng)
        if tried is None:
            continue
        found = _candidate(problem, tried)
        if found.score < best.score * (1 - 1e-9) and _allowed(planned, tried):
            best = found
    return best


def _neighbour(problem: Problem, plan: Assignment, rng: np.random.Generator) -> Assignment | None:
    """Another plan: a task beside another one of its topology, or two tasks swapped."""
    a, b = rng.integers(0, problem.task_count, 2).tolist()
    owner = problem.topology[problem.component_of[[a, b]]]
    if owner[0] != owner[1] or plan.node[a] == plan.node[b]:
        return None
    node, worker = plan.node.copy(), plan.worker.copy()
    node[a], worker[a] = plan.node[b], plan.worker[b]
    if rng.random() < 0.5:
        node[b], worker[b] = plan.node[a], plan.worker[a]
    return Assignment(node, worker)


def _allowed(problem: Problem, plan: Assignment) -> bool:
    workers = Workers.of(plan)
    sent = traffic(problem, plan, workers)
    return not violations(problem, plan, workers, sent, use(problem, plan, workers, sent))


def choose(
    problem: Problem, candidates: list[Candidate], seed: int
) -> tuple[Assignment, tuple[str, ...]]:
    """The candidate that does best in the simulator; ties go to the first."""
    different: dict[bytes, Candidate] = {}
    for one in candidates:
        different.setdefault(one.assignment.node.tobytes() + one.assignment.worker.tobytes(), one)
    holding = [one for one in different.values() if np.isfinite(one.score)]
    if not holding:
        rate = candidates[min(1, len(candidates) - 1)]
        return rate.assignment, ("no plan was found that holds the given rates",)
    if len(holding) == 1:
        return holding[0].assignment, ()
    served = float(problem.rate.sum())
    if problem.task_count > MOST_TASKS or not np.isfinite(served):
        return min(holding, key=lambda one: one.score).assignment, ("chosen by the formula alone",)
    seconds = SIMULATED / served

    def p99(one: Candidate) -> float:
        found = simulate(
            problem, one.assignment, seconds=seconds, warm_up=seconds / 10, runs=RUNS, seed=seed
        )
        value = found.latency_ms["p99"]
        return np.inf if value is None or not found.stable else float(value)

    scores = [p99(one) for one in holding]
    chosen = int(np.argmin(scores))
    words = f"simulated: 99 % below {scores[chosen]:.4g} ms, the best of {len(holding)} plans"
    return holding[chosen].assignment, (words,)
