"""The judgement of a plan: feasible or not, all figures, the bottleneck, the bound and the gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headrace.judge.bounds import Bound, bound
from headrace.judge.feasible import Violation, violations
from headrace.judge.rate import batch_seconds, max_rate
from headrace.judge.traffic import Traffic, Workers, traffic
from headrace.judge.use import Use, use
from headrace.model.arrays import totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem

FIGURES = {
    "traffic": "inter_node_traffic",
    "rate": "max_rate",
    "batch": "batch_seconds",
    "nodes": "nodes_used",
    "balance": "balance",
}  # objective -> the figure it is about


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What the judge says of a plan. Traffic is directed tuples/s."""

    feasible: bool
    violations: tuple[Violation, ...]
    total_traffic: float
    inter_node_traffic: float
    inter_worker_traffic: float
    inter_rack_traffic: float
    network_distance: float
    nodes_used: int
    workers_used: int
    max_rate: float | None
    batch_seconds: float | None
    throughput: float  # tuples/s processed by all tasks at the rates the plan sustains
    throughput_per_node: float | None  # eq. 1.2 of Muhammad
    balance: float | None  # standard deviation of CPU utilisation over all nodes
    weighted_utilisation: float | None  # eq. 7-8 of Nasiri et al.
    cost: float | None
    bottleneck: str | None
    bound: Bound
    gap: float | None
    stopped: str
    nodes: Mapping[str, Mapping[str, float | None]]
    unplaced: Mapping[str, Mapping[str, object]]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as the contract has it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["violations"] = [asdict(v) for v in self.violations]
        fields["bound"] = asdict(self.bound)
        fields["notes"] = list(self.notes)
        return fields


def judge(
    problem: Problem,
    assignment: Assignment,
    *,
    objective: str = "traffic",
    stopped: str = "done",
    bounded: bool = True,
) -> Report:
    """Judge a plan, trusting nothing its scheduler says; without `bounded`, how good any plan could be is not asked."""
    workers = Workers.of(assignment)
    sent = traffic(problem, assignment, workers)
    used = use(problem, assignment, workers, sent)
    broken = violations(problem, assignment, workers, sent, used)
    rate = max_rate(problem, sent, used)
    batch = batch_seconds(problem, assignment, workers)
    processed = float(problem.rate[assignment.node[problem.first[:-1]] != UNPLACED].sum())
    throughput = processed * (1.0 if rate.value is None else min(1.0, rate.value))
    nodes_used = int((used.tasks > 0).sum())
    figures: dict[str, float | None] = {
        "inter_node_traffic": sent.inter_node,
        "max_rate": rate.value,
        "batch_seconds": batch.value,
        "nodes_used": nodes_used,
        "balance": _balance(problem, used),
    }
    feasible = not broken and not assignment.refused
    figure = FIGURES[objective]
    limit = bound(problem, figure) if bounded else Bound(figure, None, False, "not asked")
    return Report(
        feasible=feasible,
        violations=tuple(broken),
        total_traffic=sent.total,
        inter_node_traffic=sent.inter_node,
        inter_worker_traffic=sent.inter_worker,
        inter_rack_traffic=sent.inter_rack,
        network_distance=sent.network_distance,
        nodes_used=nodes_used,
        workers_used=len(workers.node),
        max_rate=rate.value,
        batch_seconds=batch.value,
        throughput=throughput,
        throughput_per_node=throughput / nodes_used if nodes_used else None,
        balance=figures["balance"],
        weighted_utilisation=_weighted_utilisation(problem, used),
        cost=_cost(problem, used),
        bottleneck=batch.bottleneck if objective == "batch" else rate.bottleneck,
        bound=limit,
        gap=gap(figures[figure], limit.value) if feasible else None,
        stopped=stopped,
        nodes=_node_table(problem, sent, used),
        unplaced={name: error.fields() for name, error in assignment.refused.items()},
        notes=problem.notes
        + (() if sent.sized else ("bandwidth counts only streams whose `bytes` are known",)),
    )


def gap(value: float | None, limit: float | None) -> float | None:
    """|value - bound| / max(|value|, |bound|); 0 if both are 0; None if either is unknown."""
    if value is None or limit is None:
        return None
    largest = max(abs(value), abs(limit))
    return abs(value - limit) / largest if largest else 0.0


def _balance(problem: Problem, used: Use) -> float | None:
    cpu = problem.capacity[:, CPU]
    if not (np.isfinite(cpu) & (cpu > 0)).all():
        return None
    return float(np.std((used.resources[:, CPU] + problem.taken[:, CPU]) / cpu))


def _weighted_utilisation(problem: Problem, used: Use) -> float | None:
    """Mean utilisation of each machine type, weighted by how fast the type is for the components (Nasiri eq. 7-8).

    The weights of eq. 8 add up to the number of component kinds, so the sum is divided by it.
    """
    cpu = problem.capacity[:, CPU]
    if (
        not problem.profiled.any()
        or not np.isfinite(cpu).all()
        or (problem.cpu_rate[problem.profiled] <= 0).any()
    ):
        return None
    per_tuple = problem.cpu_rate[problem.profiled] / problem.rate[problem.profiled, None]
    kinds = np.unique(np.round(per_tuple, 12), axis=0)
    weight = ((1 / kinds) / (1 / kinds).sum(axis=1, keepdims=True)).sum(axis=0) / len(kinds)
    utilisation = np.divide(
        used.resources[:, CPU] + problem.taken[:, CPU], cpu, out=np.zeros(len(cpu)), where=cpu > 0
    )
    machines = np.bincount(problem.node_type, minlength=len(problem.types))
    return float(
        (weight * totals(problem.node_type, utilisation, len(problem.types)) / machines).sum()
    )


def _cost(problem: Problem, used: Use) -> float | None:
    price = problem.price[problem.node_type][used.tasks > 0]
    return None if np.isnan(price).any() or not len(price) else float(price.sum())


def _node_table(problem: Problem, sent: Traffic, used: Use) -> dict[str, dict[str, float | None]]:
    """What each used node carries, beside what it has."""
    table: dict[str, dict[str, float | None]] = {}
    for n in np.flatnonzero(used.tasks > 0).tolist():
        row: dict[str, float | None] = {
            "tasks": int(used.tasks[n]),
            "workers": int(used.workers[n]),
            "slots": int(problem.slots[n]),
        }
        for k, resource in enumerate(problem.resources):
            capacity = float(problem.capacity[n, k])
            row[resource] = float(used.resources[n, k])
            row[f"{resource}_taken"] = float(problem.taken[n, k])
            row[f"{resource}_capacity"] = capacity if np.isfinite(capacity) else None
        bandwidth = float(problem.bandwidth_mbps[n])
        row["out_mbps"] = float(sent.out_bytes[n] * 8 / 1e6)
        row["in_mbps"] = float(sent.in_bytes[n] * 8 / 1e6)
        row["bandwidth_mbps"] = bandwidth if np.isfinite(bandwidth) else None
        table[problem.nodes[n]] = row
    return table
