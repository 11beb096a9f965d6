"""A task is one thread: which rates that allows, by class of tasks and by node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.judge.thread_rate import fill_thread
from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import CPU, Problem
from headrace.solve.classes import Classes


def thread_limits(problem: Problem, classes: Classes) -> Floats:
    """The factor of the given rates at which a task of each class is full on each node, [C, N]."""
    owner, task = classes.component, classes.order[classes.first[:-1]]
    by_share = problem.cpu_rate[owner] * problem.share[task][:, None]
    grows = problem.demand[owner, CPU][:, None] + by_share
    return fill_thread(grows, problem.cpu_fixed[owner])[:, problem.node_type]


def highest_thread_rate(classes: Classes, limits: Floats) -> float:
    """The factor that threads allow where every class runs on the nodes that suit it best."""
    instance = classes.instance
    best = np.where(instance.allowed, limits, 0.0).max(axis=1, initial=0.0)
    return float(best[instance.count > 0].min(initial=np.inf))


def rate_of_threads(limits: Floats, x: Ints) -> float:
    """The factor that the threads of counts x[C, N] allow."""
    return float(limits[x > 0].min(initial=np.inf))


def allow_threads_at(classes: Classes, limits: Floats, rate: float) -> Classes:
    """The classes, allowed only where one thread carries a rate."""
    instance = classes.instance
    fast = limits >= rate * (1 - TOLERANCE)
    return replace(classes, instance=replace(instance, allowed=instance.allowed & fast))
