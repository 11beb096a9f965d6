"""How fast a plan is, since each task is one thread and does no more than that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.judge.rate import Bottleneck, Speed, max_rate
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.arrays import TOLERANCE, Floats
from headrace.model.load_aware import is_load_aware, settle
from headrace.model.problem import CPU, THREAD, UNPLACED, Assignment, Problem

RATE_STEPS = 60  # of the search for the highest rate under load-aware streams


def thread_rate(problem: Problem, assignment: Assignment) -> float:
    """Tuples/s over all spouts that nodes and threads sustain; inf if nothing limits it."""
    problem = settle(problem, assignment)
    workers = Workers.of(assignment)
    sent = traffic(problem, assignment, workers)
    by_nodes = max_rate(problem, sent, use(problem, assignment, workers, sent))
    speed = absolute_rate(problem, assignment, by_nodes)
    return np.inf if speed.value is None else speed.value


def absolute_rate(problem: Problem, assignment: Assignment, by_nodes: Speed) -> Speed:
    """The rate in tuples/s over all spouts: what nodes sustain, or less where a thread is full."""
    given = float(problem.rate[problem.spout].sum())
    speed = with_threads(problem, assignment, by_nodes)
    return replace(speed, value=None if speed.value is None else speed.value * given)


def plan_rate(problem: Problem, assignment: Assignment, at_given: Speed) -> Speed:
    """The factor by which all spout rates can grow; `at_given` is what the given rates say.

    With load-aware streams tuples go elsewhere at higher rates, so the factor is looked for.
    """
    if not is_load_aware(problem) or at_given.value is None or at_given.value <= 0:
        return at_given
    good, speed = at_given.value, at_given
    bad = np.inf
    for _ in range(RATE_STEPS):
        factor = 2 * good if bad == np.inf else (good + bad) / 2
        faster = problem.scaled(factor)
        found = _speed(settle(faster, assignment), assignment)
        if found.value is None:
            return found
        if found.value >= 1 - TOLERANCE:
            good, speed = factor * max(1.0, found.value), found
        else:
            bad = factor
        if bad <= good * (1 + 1e-6):
            break
    return Speed(good, speed.bottleneck)


def _speed(problem: Problem, assignment: Assignment) -> Speed:
    workers = Workers.of(assignment)
    sent = traffic(problem, assignment, workers)
    by_nodes = max_rate(problem, sent, use(problem, assignment, workers, sent))
    return with_threads(problem, assignment, by_nodes)


def with_threads(problem: Problem, assignment: Assignment, by_nodes: Speed) -> Speed:
    """The factor of the given rates: what nodes sustain, or less where a thread is full."""
    most = np.inf if by_nodes.value is None else by_nodes.value
    if thread_factors_by_type(problem).min(initial=np.inf) >= most * (1 - TOLERANCE):
        return by_nodes  # wherever tasks run; saves a look at millions of them
    factor = _thread_factors(problem, assignment)
    least = float(factor.min(initial=np.inf))
    if least < most * (1 - TOLERANCE):
        return Speed(least, Bottleneck("thread", task=problem.task_name(int(factor.argmin()))))
    return by_nodes


def thread_factors_by_type(problem: Problem) -> Floats:
    """The factor at which the largest task of each component fills its thread, [C, Y]."""
    share = (
        1.0 / problem.tasks
        if problem.task_share is None
        else np.maximum.reduceat(problem.task_share, problem.first[:-1])
    )
    grows = problem.demand[:, [CPU]] + problem.cpu_rate * share[:, None]
    return fill_thread(grows, problem.cpu_fixed)


def _thread_factors(problem: Problem, assignment: Assignment) -> Floats:
    """The factor of the given rates at which each task fills its thread, [T]."""
    c, machine = problem.component_of, problem.node_type[assignment.node]
    grows = problem.demand[c, CPU] + problem.cpu_rate[c, machine] * problem.share
    factor = fill_thread(grows, problem.cpu_fixed[c, machine])
    return np.where(assignment.node == UNPLACED, np.inf, factor)


def fill_thread(grows: Floats, fixed: Floats) -> Floats:
    """The factor at which CPU that grows with the rate and CPU that does not fill one thread.

    Infinite where nothing grows.
    """
    room = np.maximum(THREAD - fixed, 0.0)
    return np.divide(room, grows, out=np.full(grows.shape, np.inf), where=grows > 0)
