"""Counts and places that carry a given rate with few tasks: the least each component needs, then more and smaller ones until all fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.errors import HeadraceError
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Floats
from headrace.model.problem import Assignment, Problem
from headrace.model.request import Request
from headrace.model.sizable import Load
from headrace.model.workload import Workload
from headrace.place.headrace import headrace as place

SHARES = (1.0, 0.7, 0.5, 0.35, 0.25)  # of a thread that a task may fill


def few_tasks(
    workload: Workload,
    load: Load,
    rate: float,
    request: Request,
) -> tuple[dict[str, int], Problem, Assignment] | None:
    """The first counts, from few to many, that a search for little traffic places at the rate; None if it places none."""
    factor = rate / load.spout_rate
    tried: list[dict[str, int]] = []
    for one_task in carried_by_one(load):
        tasks = counts(load, factor, one_task)
        if tasks is None or tasks in tried:
            continue
        tried.append(tasks)
        problem = workload.problem(tasks)
        faster = problem.scaled(factor)
        try:
            plan = place(faster, replace(request, objective="traffic"))
        except HeadraceError:
            continue
        if not plan.refused and thread_rate(faster, plan) >= rate * (1 - 1e-9):
            return tasks, problem, plan
    return None


def carried_by_one(load: Load) -> list[Floats]:
    """The factor that one task of each component may carry, most first: on its fastest nodes, then on any, then with less of a thread, [C]."""

    def factor(share: float) -> Floats:
        with np.errstate(divide="ignore"):
            return np.where(
                load.by_rate > 0,
                np.maximum(share * load.thread - load.fixed, 0.0) / load.by_rate,
                np.inf,
            )

    fastest = np.where(load.fits, factor(1.0), 0.0).max(axis=1)
    return [fastest, *(np.where(load.fits, factor(share), np.inf).min(axis=1) for share in SHARES)]


def counts(load: Load, factor: float, one_task: Floats) -> dict[str, int] | None:
    """Tasks of every component for a factor; None where a component may not have so many."""
    if not (one_task > 0).all():
        return None
    tasks = np.maximum(np.ceil(factor / one_task * (1 - 1e-9)), 1)
    if (tasks > load.most).any():
        return None
    return {name: int(n) for name, n in zip(load.problem.components, tasks, strict=True)}
