"""What a plan uses on every node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.judge.traffic import Traffic, Workers
from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem


@dataclass(frozen=True, slots=True)
class SendPrice:
    """CPU milliseconds for a tuple that leaves its worker; 0 unless stated."""

    to_worker_ms: float = 0.0  # paid by the node of both workers
    to_node_ms: float = 0.0  # by the sender's node
    from_node_ms: float = 0.0  # by the receiver's

    @staticmethod
    def of(problem: Problem) -> SendPrice:
        """What the options of `judge` state."""
        options = problem.options.get("judge", {})
        names = ("send_worker_cpu_ms", "send_node_cpu_ms", "receive_node_cpu_ms")
        return SendPrice(*(float(str(options.get(name, 0))) for name in names))

    @property
    def stated(self) -> bool:
        return max(self.to_worker_ms, self.to_node_ms, self.from_node_ms) > 0


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """Per node, without what others take."""

    resources: Floats  # [N, K] at the given rates; CPU includes the price of sending
    cpu_by_rate: Floats  # [N] how much of the CPU grows with the rates
    tasks: Ints  # [N]
    workers: Ints  # [N]


def use(problem: Problem, assignment: Assignment, workers: Workers, sent: Traffic) -> Use:
    """Add up the tasks of every node."""
    n = len(problem.nodes)
    placed = assignment.node != UNPLACED
    node, component = assignment.node[placed], problem.component_of[placed]
    machine = problem.node_type[node]
    fixed = totals(node, problem.cpu_fixed[component, machine], n)
    grows = (
        problem.demand[component, CPU]
        + problem.cpu_rate[component, machine] * problem.share[placed]
    )
    price = SendPrice.of(problem)
    sending_ms = (
        sent.to_other_worker * price.to_worker_ms
        + sent.to_other_node * price.to_node_ms
        + sent.from_other_node * price.from_node_ms
    )
    by_rate = totals(node, grows, n) + sending_ms / 10
    resources = np.column_stack(
        [totals(node, problem.demand[component, k], n) for k in range(len(problem.resources))]
    )
    resources[:, CPU] = fixed + by_rate
    return Use(
        resources, by_rate, np.bincount(node, minlength=n), np.bincount(workers.node, minlength=n)
    )
