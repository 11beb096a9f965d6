"""Nasiri et al.: raise the rate; where a machine is full, add an instance of its hottest task.

Source    H. Nasiri et al., A scheduling algorithm to maximize Storm throughput in heterogeneous
          cluster, 2023, algorithms 1 and 2, eq. 5-6.
Maturity  faithful
Guards    CPU is never overcommitted at the rate found; `max_tasks`, pins and separations are kept;
          memory, slots and bandwidth may be violated (the paper does not look at them).
Differs   the abstract sends a new instance to the 'least utilised' machine, the text to the 'most
          suitable' one: option `to` takes the machine that has room and is least utilised, or the
          one where the instance uses least (least TCU, eq. 5, the default, as algorithm 1 does);
          the first of equals. Machines of the paper have one core; here a machine counts as
          over-utilised also where a task needs more than one thread, so that nodes of several
          cores get an instance for each. What a component receives follows the topology
          (`fanout`); option split=tasks takes eq. 6 to the letter (`fanout: tasks`), where a
          component with more tasks gets a larger share. The rate given is the largest the plan
          sustains, which may be above the last one the algorithm tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from headrace.errors import Infeasible
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import CPU, Assignment
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.solve.counts.count_flow import count_flow, grow_rates
from headrace.solve.counts.fill import fluid_bound

To = Literal["least-tcu", "least-utilised"]  # the machine of a new instance

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
    to: To = "least-tcu",
) -> Sized:
    """One instance of each component, then maximize the throughput."""
    if split == "tasks":
        workload = workload.with_fanout("tasks")
    workload = sizable(workload, catalog=False)
    load = load_of(workload, catalog=False)
    load.refuse_what_fits_nowhere()
    cost = Prediction(load)
    first = ExecutionGraph(first_assignment(cost), 1.0)
    final = maximize_throughput(cost, first, to, request.deadline)
    return place_instances(load, final.instances, fluid_bound(load), "fluid")


def place_instances(load: Load, instances: Ints, bound: float | None, bound_kind: str) -> Sized:
    """The answer that instances on machines [C, N] make."""
    counts = zip(load.problem.components, instances.sum(axis=1), strict=True)
    tasks = {name: int(n) for name, n in counts}
    problem = load.workload.problem(tasks)
    node = np.concatenate([np.repeat(np.arange(instances.shape[1]), row) for row in instances])
    assignment = Assignment(node, np.zeros(len(node), dtype=np.int64))
    rate = thread_rate(problem, assignment)
    notes = problem.notes
    return Sized(tasks, problem, assignment, rate, bound, bound_kind, notes, workload=load.workload)


class Prediction:
    """CPU usage of tasks (eq. 5) at input rates that depend on the instances (eq. 6)."""

    def __init__(self, load: Load, most_tasks: int = MOST_TASKS) -> None:
        self.load = load
        self.most_tasks = most_tasks
        self.fixed = load.fixed  # MET, [C, N]
        self.capacity = load.problem.free[:, CPU]  # MAC at the start, [N]
        self.flow = count_flow(load.workload.flow, load.problem.rate)
        self.more, self.first_gets = np.ones(len(load.most)), np.zeros(len(load.most))

    def by_rate(self, instances: Ints) -> Floats:
        """Points of whole components at R0 on every machine: e * IR of all instances, [C, N]."""
        if not self.load.copied:
            return self.load.by_rate
        grow_rates(self.flow, instances.sum(axis=1), self.more, self.first_gets)
        return self.load.by_rate * self.more[:, None]

    def task_cpu(self, instances: Ints, factor: float) -> Floats:
        """TCU of one instance of every component on every machine, [C, N] (eq. 5)."""
        return factor * self.by_rate(instances) / instances.sum(axis=1)[:, None] + self.fixed

    def machine_cpu(self, instances: Ints, factor: float) -> Floats:
        """Utilisation of every machine, [N]."""
        return (instances * self.task_cpu(instances, factor)).sum(axis=0)

    def over_utilised(self, graph: ExecutionGraph) -> Ints:
        """Machines that are too full, or have a task that needs more than one thread."""
        task = self.task_cpu(graph.instances, graph.factor)
        full = (graph.instances * task).sum(axis=0) > self.capacity * (1 + TOLERANCE)
        thread = ((graph.instances > 0) & (task > self.load.thread * (1 + TOLERANCE))).any(axis=0)
        return np.flatnonzero(full | thread)


def first_assignment(cost: Prediction) -> Ints:
    """Algorithm 1: each component on the machine where it uses least."""
    usable = cost.load.fits
    instances = np.zeros(usable.shape, dtype=np.int64)
    least = np.where(usable, cost.load.by_rate + cost.fixed, np.inf).argmin(axis=1)
    instances[np.arange(len(instances)), least] = 1
    return instances


def maximize_throughput(
    cost: Prediction, current: ExecutionGraph, to: To, deadline: Callable[[], bool] | None
) -> ExecutionGraph:
    """Algorithm 2: the last graph in which no machine is over-utilised."""
    final: ExecutionGraph | None = None
    scale = 1.0
    while True:
        if final is not None and deadline is not None and deadline():
            return final
        over = cost.over_utilised(current)
        if not len(over):
            final = current
            if not np.isfinite(cost.capacity).any():
                return final
            current = ExecutionGraph(current.instances, current.factor * (1 + 1 / scale))
            continue
        grown = add_instance(cost, current, int(over[0]), to)
        if grown is not None:
            current = grown
        elif final is not None and current.factor * cost.load.spout_rate > scale:
            scale *= 2
            current = ExecutionGraph(final.instances, final.factor * (1 + 1 / scale))
        elif final is not None:
            return final
        else:
            raise too_fast_to_start(cost, current, int(over[0]))


def add_instance(
    cost: Prediction, state: ExecutionGraph, machine: int, to: To
) -> ExecutionGraph | None:
    """Add an instance of the hottest task of a full machine where there is room, if anywhere."""
    task_cpu = cost.task_cpu(state.instances, state.factor)
    here = state.instances[:, machine] > 0
    hottest = int(np.where(here, task_cpu[:, machine], -1.0).argmax())
    tasks = int(state.instances[hottest].sum())
    if tasks >= cost.load.most[hottest] or state.instances.sum() >= cost.most_tasks:
        return None
    shared = state.instances.copy()
    shared[hottest, machine] += 1  # wherever it goes, all instances become smaller
    smaller = cost.task_cpu(shared, state.factor)
    if smaller[hottest, machine] >= task_cpu[hottest, machine] * (1 - 1e-12):
        return None  # its load does not fall, whatever the number of instances
    used = (state.instances * smaller).sum(axis=0)
    room = used + smaller[hottest] <= cost.capacity * (1 + TOLERANCE)
    room &= cost.load.fits[hottest]
    if cost.load.problem.apart[hottest]:
        room &= state.instances[hottest] == 0
    if not room.any():
        return None
    utilisation = np.divide(used, cost.capacity, out=np.ones_like(used), where=cost.capacity > 0)
    least = smaller[hottest] if to == "least-tcu" else utilisation
    where = int(np.where(room, least, np.inf).argmin())
    grown = state.instances.copy()
    grown[hottest, where] += 1
    return ExecutionGraph(grown, state.factor)


def too_fast_to_start(cost: Prediction, state: ExecutionGraph, machine: int) -> Infeasible:
    """The refusal where even the first rate over-utilises a machine."""
    problem = cost.load.problem
    needed = float(cost.machine_cpu(state.instances, state.factor)[machine])
    available = float(cost.capacity[machine])
    what = problem.nodes[machine]
    if needed <= available * (1 + TOLERANCE):  # it is one of its tasks that is too large
        task_cpu = cost.task_cpu(state.instances, state.factor)[:, machine]
        hottest = int(np.where(state.instances[:, machine] > 0, task_cpu, -1.0).argmax())
        what = f"one task of {problem.components[hottest]} on {what}"
        needed, available = float(task_cpu[hottest]), float(cost.load.thread[machine])
    return Infeasible(
        f"{cost.load.spout_rate:g} tuples/s, where it starts, are too much: "
        f"{what} would need {needed:g} cpu of {available:g}",
        resource="cpu",
        needed=needed,
        available=available,
        fix="lower the spouts' `rate`, from which it starts, or use headrace",
    )
