"""Nasiri et al.: raise the rate; where a machine is full, add an instance of its hottest task.

Source    H. Nasiri et al., A scheduling algorithm to maximize Storm throughput in heterogeneous
          cluster, 2023, algorithms 1 and 2, eq. 5-6.
Maturity  faithful
Guards    CPU is never overcommitted at the rate found; `max_tasks`, pins and separations are kept;
          memory, slots and bandwidth may be violated (the paper does not look at them).
Differs   the text calls the machine for a new instance both 'most suitable' and 'least utilised':
          here the one of least TCU (eq. 5) that has room, the first of equals. What a component
          receives follows the topology (`fanout`); option split=tasks takes eq. 6 to the letter,
          where a component with more tasks gets a larger share. The rate given is the largest the
          plan sustains, which may be above the last one the algorithm tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from headrace.errors import Infeasible
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Floats, Ints
from headrace.model.flow import Flow, rates
from headrace.model.problem import CPU, Assignment
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.solve.counts.fill import fluid_bound

MOST_TASKS = 200_000  # in all; beyond that, one more instance changes nothing


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionGraph:
    """An execution topology graph (ETG), and the factor of R0 that it was made for."""

    instances: Ints  # [C, N] of every component on every machine
    factor: float


def nasiri(
    workload: Workload,
    request: Request = DEFAULT_REQUEST,
    *,
    split: Literal["components", "tasks"] = "components",
) -> Sized:
    """One instance of each component, then maximize the throughput."""
    workload = sizable(workload, catalog=False)
    load = load_of(workload, catalog=False)
    load.refuse_what_fits_nowhere()
    cost = Prediction(load, split)
    final = maximize_throughput(cost, ExecutionGraph(first_assignment(cost), 1.0), request.deadline)
    return place_instances(load, final.instances, fluid_bound(load), "fluid")


def place_instances(load: Load, instances: Ints, bound: float | None, bound_kind: str) -> Sized:
    """The answer that instances on machines [C, N] make; without a bound, the rate is the bound."""
    counts = zip(load.problem.components, instances.sum(axis=1), strict=True)
    tasks = {name: int(n) for name, n in counts}
    problem = load.workload.problem(tasks)
    node = np.concatenate([np.repeat(np.arange(instances.shape[1]), row) for row in instances])
    assignment = Assignment(node, np.zeros(len(node), dtype=np.int64))
    rate = thread_rate(problem, assignment)
    bound = rate if bound is None else bound
    notes = problem.notes
    return Sized(tasks, problem, assignment, rate, bound, bound_kind, notes, workload=load.workload)


class Prediction:
    """CPU usage of tasks (eq. 5) at input rates that depend on the instances (eq. 6)."""

    def __init__(self, load: Load, split: str) -> None:
        self.load = load
        self.split = split
        self.fixed = load.fixed  # MET, [C, N]
        self.capacity = load.problem.free[:, CPU]  # MAC at the start, [N]
        self.known: dict[tuple[int, ...], Floats] = {}

    def by_rate(self, instances: Ints) -> Floats:
        """Points of whole components at R0 on every machine: e * IR of all instances, [C, N]."""
        if self.split == "components" and not self.load.copied:
            return self.load.by_rate
        tasks = instances.sum(axis=1)
        key = tuple(tasks.tolist())
        if key not in self.known:
            self.known = {key: self._by_rate(tasks)}
        return self.known[key]

    def _by_rate(self, tasks: Ints) -> Floats:
        problem = self.load.problem
        if self.split == "components":
            return self.load.at(dict(zip(problem.components, tasks.tolist(), strict=True))).by_rate
        flows: list[Flow] = []
        # eq. 6: divided by all tasks downstream of a task, whatever their component.
        for s in problem.streams:
            downstream = sum(
                int(tasks[t]) for t in {o.target for o in problem.streams if o.source == s.source}
            )
            emits = self.load.workload.components[s.source].spec
            gain = (1.0 if emits.spout else emits.selectivity) * int(tasks[s.target]) / downstream
            flows.append(Flow(s.source, s.target, gain, 1.0))
        spouts = np.where(problem.spout, problem.rate, 0.0)
        rate, _ = rates(spouts, flows, [])
        scale = np.divide(rate, problem.rate, out=np.ones_like(rate), where=problem.rate > 0)
        return self.load.by_rate * scale[:, None]

    def task_cpu(self, instances: Ints, factor: float) -> Floats:
        """TCU of one instance of every component on every machine, [C, N] (eq. 5)."""
        return factor * self.by_rate(instances) / instances.sum(axis=1)[:, None] + self.fixed

    def machine_cpu(self, instances: Ints, factor: float) -> Floats:
        """Utilisation of every machine, [N]."""
        return (instances * self.task_cpu(instances, factor)).sum(axis=0)


def first_assignment(cost: Prediction) -> Ints:
    """Algorithm 1: each component on the machine where it uses least."""
    usable = cost.load.fits
    instances = np.zeros(usable.shape, dtype=np.int64)
    least = np.where(usable, cost.load.by_rate + cost.fixed, np.inf).argmin(axis=1)
    instances[np.arange(len(instances)), least] = 1
    return instances


def maximize_throughput(
    cost: Prediction, current: ExecutionGraph, deadline: Callable[[], bool] | None
) -> ExecutionGraph:
    """Algorithm 2: the last graph in which no machine is over-utilised."""
    final: ExecutionGraph | None = None
    scale = 1.0
    limit = cost.capacity * (1 + 1e-9)
    while True:
        over = np.flatnonzero(cost.machine_cpu(current.instances, current.factor) > limit)
        if not len(over):
            final = current
            if not np.isfinite(cost.capacity).any():
                return final
            current = ExecutionGraph(current.instances, current.factor * (1 + 1 / scale))
            continue
        grown = add_instance(cost, current, int(over[0]))
        if grown is not None:
            current = grown
        elif (
            final is not None
            and current.factor * cost.load.spout_rate > scale
            and not (deadline is not None and deadline())
        ):
            scale *= 2
            current = ExecutionGraph(final.instances, final.factor * (1 + 1 / scale))
        elif final is not None:
            return final
        else:
            raise too_fast_to_start(cost, current, int(over[0]))


def add_instance(cost: Prediction, state: ExecutionGraph, machine: int) -> ExecutionGraph | None:
    """Add an instance of the hottest task of a full machine where there is room, if anywhere."""
    task_cpu = cost.task_cpu(state.instances, state.factor)
    here = state.instances[:, machine] > 0
    hottest = int(np.where(here, task_cpu[:, machine], -1.0).argmax())
    tasks = int(state.instances[hottest].sum())
    if tasks >= cost.load.most[hottest] or state.instances.sum() >= MOST_TASKS:
        return None
    shared = state.instances.copy()
    shared[hottest, machine] += 1  # wherever it goes, all instances become smaller
    smaller = cost.task_cpu(shared, state.factor)
    if smaller[hottest, machine] >= task_cpu[hottest, machine] * (1 - 1e-12):
        return None  # its load does not fall, whatever the number of instances
    used = (state.instances * smaller).sum(axis=0)
    room = used + smaller[hottest] <= cost.capacity * (1 + 1e-9)
    room &= cost.load.fits[hottest]
    if cost.load.problem.apart[hottest]:
        room &= state.instances[hottest] == 0
    if not room.any():
        return None
    where = int(np.where(room, smaller[hottest], np.inf).argmin())
    grown = state.instances.copy()
    grown[hottest, where] += 1
    return ExecutionGraph(grown, state.factor)


def too_fast_to_start(cost: Prediction, state: ExecutionGraph, machine: int) -> Infeasible:
    """The refusal where even the first rate over-utilises a machine."""
    problem = cost.load.problem
    needed = float(cost.machine_cpu(state.instances, state.factor)[machine])
    available = float(cost.capacity[machine])
    return Infeasible(
        f"{cost.load.spout_rate:g} tuples/s, where it starts, are too much: "
        f"{problem.nodes[machine]} would need {needed:g} cpu of {available:g}",
        resource="cpu",
        needed=needed,
        available=available,
        fix="lower the spouts' `rate`, from which it starts, or use headrace",
    )
