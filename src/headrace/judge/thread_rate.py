"""How fast a plan is, since each task is one thread and does no more than that."""

from __future__ import annotations

import numpy as np

from headrace.judge.rate import Bottleneck, Speed, max_rate
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.arrays import TOLERANCE, Floats
from headrace.model.problem import CPU, THREAD, Assignment, Problem


def thread_rate(problem: Problem, assignment: Assignment) -> float:
    """Tuples/s over all spouts that nodes and threads sustain; inf if nothing limits it."""
    workers = Workers.of(assignment)
    sent = traffic(problem, assignment, workers)
    by_nodes = max_rate(problem, sent, use(problem, assignment, workers, sent))
    speed = absolute_rate(problem, assignment, by_nodes)
    return np.inf if speed.value is None else speed.value


def absolute_rate(problem: Problem, assignment: Assignment, by_nodes: Speed) -> Speed:
    """The rate in tuples/s over all spouts: what nodes sustain, or less where a thread is full."""
    given = float(problem.rate[problem.spout].sum())
    factor = _thread_factors(problem, assignment)
    nodes = np.inf if by_nodes.value is None else by_nodes.value
    most = min(nodes, float(factor.min(initial=np.inf))) * given
    if most < nodes * given * (1 - TOLERANCE):
        task = problem.task_name(int(factor.argmin()))
        return Speed(most, Bottleneck("thread", task=task))
    return Speed(most if np.isfinite(most) else None, by_nodes.bottleneck)


def _thread_factors(problem: Problem, assignment: Assignment) -> Floats:
    """The factor of the given rates at which each task fills its thread, [T]."""
    c, machine = problem.component_of, problem.node_type[assignment.node]
    grows = problem.demand[c, CPU] + problem.cpu_rate[c, machine] * problem.share
    room = np.maximum(THREAD - problem.cpu_fixed[c, machine], 0.0)
    return np.divide(room, grows, out=np.full(len(grows), np.inf), where=grows > 0)
