"""The rate of a sized plan, in tuples/s: what its nodes sustain, and no task more than one thread can do."""

from __future__ import annotations

import numpy as np

from headrace.judge.rate import max_rate
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.arrays import Bools, Floats
from headrace.model.problem import CPU, Assignment, Problem
from headrace.model.sizable import THREAD


def thread_rate(problem: Problem, assignment: Assignment) -> float:
    """Tuples/s summed over the spouts, in the ratio of their rates; inf if nothing limits it."""
    workers = Workers.of(assignment)
    sent = traffic(problem, assignment, workers)
    speed = max_rate(problem, sent, use(problem, assignment, workers, sent))
    by_nodes = np.inf if speed.value is None else speed.value
    by_threads = float(_factors(problem, assignment).min(initial=np.inf))
    return min(by_nodes, by_threads) * float(problem.rate[problem.spout].sum())


def _factors(problem: Problem, assignment: Assignment) -> Floats:
    """The factor of the given rates at which each task fills its thread, [T]."""
    c, machine = problem.component_of, problem.node_type[assignment.node]
    grows = problem.demand[c, CPU] + problem.cpu_rate[c, machine] * problem.share
    room = np.maximum(THREAD - problem.cpu_fixed[c, machine], 0.0)
    busy: Bools = grows > 0
    return np.divide(room, grows, out=np.full(len(grows), np.inf), where=busy)
