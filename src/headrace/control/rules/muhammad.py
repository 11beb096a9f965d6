"""Tune scheduling: move if tuples go less far on no more nodes, or if a node is overloaded.

Source    A. Muhammad, PhD thesis 2023, section 3.1, which says what is looked at: traffic between
          nodes, slots and executors, and the resources used.
Maturity  inspired
Guards    the busiest node is not loaded above `most_busy` and above now.
Differs   the thesis gives neither a rule nor thresholds; ours: traffic counts by how far it goes,
          5 % are asked, and no more nodes may be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headrace.control.choice import Choice, Decision
from headrace.judge.report import Report
from headrace.model.problem import CPU, Problem


def muhammad(choice: Choice, *, improve_percent: float = 5.0, most_busy: float = 1.0) -> Decision:
    """Weigh traffic at three levels against the resources used."""
    now = Levels.of(choice.problem, choice.now)
    then = Levels.of(choice.planned_for, choice.then)
    return tune(now, then, improve_percent=improve_percent, most_busy=most_busy)


@dataclass(frozen=True, slots=True)
class Levels:
    """Traffic by how far it goes, in tuples/s, and the resources in use."""

    inter_node: float
    inter_slot: float  # between slots of one node
    inter_executor: float  # between executors of one slot
    nodes_used: int
    busiest: float  # largest utilisation of a node's CPU; 0 where no capacity is known

    @staticmethod
    def of(problem: Problem, report: Report) -> Levels:
        """The levels of a judged plan."""
        busiest = 0.0
        for n, name in enumerate(problem.nodes):
            used, capacity = report.nodes.get(name), float(problem.capacity[n, CPU])
            if used is not None and math.isfinite(capacity) and capacity > 0:
                busiest = max(
                    busiest, (float(used["cpu"] or 0) + float(used["cpu_taken"] or 0)) / capacity
                )
        node, worker, total = (
            report.inter_node_traffic,
            report.inter_worker_traffic,
            report.total_traffic,
        )
        return Levels(node, worker - node, total - worker, report.nodes_used, busiest)

    @property
    def way(self) -> float:
        """Tuples/s times how far they go: 2 to another node, 1 to another slot, 0 within one."""
        return 2 * self.inter_node + self.inter_slot


def tune(
    now: Levels, then: Levels, *, improve_percent: float = 5.0, most_busy: float = 1.0
) -> Decision:
    """The rule in figures."""
    falls = 100 * (now.way - then.way) / now.way if now.way > 0 else 0.0
    numbers = {"falls_percent": falls, "busiest_now": now.busiest, "busiest_then": then.busiest}
    figures = (
        f"node {now.inter_node:g} -> {then.inter_node:g}, "
        f"slot {now.inter_slot:g} -> {then.inter_slot:g}, "
        f"executor {now.inter_executor:g} -> {then.inter_executor:g} tuples/s "
        f"({falls:.3g} % less way to go); nodes {now.nodes_used} -> {then.nodes_used}, "
        f"busiest {100 * now.busiest:.3g} % -> {100 * then.busiest:.3g} %"
    )
    if now.busiest > most_busy and then.busiest < now.busiest:
        return Decision(True, f"an overloaded node is relieved: {figures}", numbers)
    if then.busiest > most_busy and then.busiest > now.busiest:
        return Decision(False, f"a node would be overloaded: {figures}", numbers)
    if then.nodes_used > now.nodes_used:
        return Decision(False, f"more nodes would be used: {figures}", numbers)
    return Decision(
        falls > 0 and falls >= improve_percent * (1 - 1e-12),
        f"{figures}; {improve_percent:g} % are asked",
        numbers,
    )
