"""The judgement of a plan: feasible or not, all figures, the bottleneck, the bound and the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from headrace.judge.bounds import Bound, Clock, bound, no_bound, prove_again
from headrace.judge.feasible import Violation, violations
from headrace.judge.latency import Latency, predicted_latency
from headrace.judge.rate import Bottleneck, batch_seconds, max_rate
from headrace.judge.survival import (
    NOT_LOOKED_AT,
    Survival,
    broken_headroom,
    headroom_left,
    survival,
)
from headrace.judge.thread_rate import absolute_rate, plan_rate, with_threads
from headrace.judge.traffic import Traffic, Workers, traffic
from headrace.judge.use import Use, use
from headrace.model.arrays import TOLERANCE, Ints, distinct, totals
from headrace.model.headroom import within_headroom
from headrace.model.load_aware import settle, with_shares
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem

FIGURES = {  # objective -> the figure it is about
    "traffic": "inter_node_traffic",
    "network": "network_cost",
    "rate": "max_rate",
    "batch": "batch_seconds",
    "nodes": "nodes_used",
    "balance": "balance",
    "latency": "latency_p99_ms",
}
UNSIZED = "bandwidth counts only streams whose `bytes` are known"


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
    network_cost: float
    nodes_used: int
    workers_used: int
    max_rate: float | None
    batch_seconds: float | None
    latency_ms: Latency | None  # predicted at the given rates; None: the plan cannot hold them
    throughput: float  # tuples/s processed by all tasks at the rates the plan sustains
    throughput_per_node: float | None  # eq. 1.2 of Muhammad
    balance: float | None  # standard deviation of CPU utilisation over all nodes
    weighted_utilisation: float | None  # eq. 7-8 of Nasiri et al.
    cost: float | None
    bottleneck: Bottleneck | None
    bound: Bound
    gap: float | None
    stopped: str
    headroom: Mapping[str, float]  # resource -> share that is free on the fullest node
    survives: Survival
    nodes: Mapping[str, Mapping[str, float | None]]
    racks: Mapping[str, Mapping[str, float | None]]  # empty where all nodes are in one rack
    unplaced: Mapping[str, Mapping[str, object]]
    notes: tuple[str, ...]

    @property
    def latency_p99_ms(self) -> float | None:
        """What 99 % of all tuples are predicted to stay below."""
        return None if self.latency_ms is None else self.latency_ms.p99

    def to_json(self) -> dict[str, Any]:
        """The report as the contract has it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["violations"] = [asdict(v) for v in self.violations]
        fields["bottleneck"] = None if self.bottleneck is None else str(self.bottleneck)
        fields["bound"] = asdict(self.bound)
        fields["latency_ms"] = None if self.latency_ms is None else asdict(self.latency_ms)
        fields["survives"] = asdict(self.survives)
        fields["notes"] = list(self.notes)
        return fields


def judge(
    problem: Problem,
    assignment: Assignment,
    *,
    objective: str = "traffic",
    limit: Bound | None = None,
    bounded: bool = True,
    absolute: bool = False,
    rented: bool = False,
    stopped: str = "done",
    notes: Sequence[str] = (),
) -> Report:
    """Judge a plan, trusting nothing its scheduler says.

    `limit` is how good any plan could be, where that is known; absent, it is worked out if
    `bounded`. With `absolute`, `max_rate` is tuples/s over all spouts that can be planned within
    the headroom; with `rented`, every node of the problem is paid for, not only the used ones.
    `notes` are passed on.
    """
    # Longer than 60 lines: one line for each figure of the report.
    asked, problem = problem, settle(problem, assignment)
    workers = Workers.of(assignment)
    sent = traffic(problem, assignment, workers)
    used = use(problem, assignment, workers, sent)
    broken = violations(problem, assignment, workers, sent, used)
    at_given = with_threads(problem, assignment, max_rate(problem, sent, used))
    rate = full = plan_rate(asked, assignment, at_given)
    if absolute:
        planned = max_rate(within_headroom(problem), sent, used)
        rate = absolute_rate(problem, assignment, planned)
    batch = batch_seconds(problem, assignment, workers)
    throughput = _throughput(problem, assignment, full.value)
    nodes_used = int((used.tasks > 0).sum())
    feasible = not broken and not assignment.refused
    limit = limit or _limit(asked, objective, bounded)
    said = problem.notes if sent.sized else (*problem.notes, UNSIZED)
    left = headroom_left(problem, sent, used)
    too_full = broken_headroom(problem, left)
    survives = survival(problem, assignment, workers, used, full.value)
    unknown = [NOT_LOOKED_AT] if survives.any_node is None else []
    narrow = _narrow_uplinks(problem, sent)
    report = Report(
        feasible=feasible,
        violations=tuple(broken),
        total_traffic=sent.total,
        inter_node_traffic=sent.inter_node,
        inter_worker_traffic=sent.inter_worker,
        inter_rack_traffic=sent.inter_rack,
        network_distance=sent.network_distance,
        network_cost=sent.network_cost(problem.network),
        nodes_used=nodes_used,
        workers_used=len(workers.node),
        max_rate=rate.value,
        batch_seconds=batch.value,
        latency_ms=predicted_latency(with_shares(asked, assignment), assignment, workers, used),
        throughput=throughput,
        throughput_per_node=throughput / nodes_used if nodes_used else None,
        balance=_balance(problem, used),
        weighted_utilisation=_weighted_utilisation(problem, used),
        cost=_cost(problem, np.ones_like(used.tasks) if rented else used.tasks),
        bottleneck=batch.bottleneck if objective == "batch" else rate.bottleneck,
        bound=limit,
        gap=None,
        stopped=stopped,
        headroom=left,
        survives=survives,
        nodes=_node_table(problem, sent, used),
        racks=_rack_table(problem, sent, used),
        unplaced={name: error.fields() for name, error in assignment.refused.items()},
        notes=tuple(dict.fromkeys((*said, *notes, *unknown, *too_full, *narrow))),
    )
    if not feasible or too_full:  # it is no plan for what was asked, so no bound on those is near
        return report
    return replace(report, gap=gap(getattr(report, limit.of), limit.value))


def plannable(problem: Problem, objective: str) -> Problem:
    """The problem whose plans the bound on an objective is about.

    They keep the headroom; what they sustain is a matter of their nodes as they are.
    """
    return problem if objective == "rate" else within_headroom(problem)


def confirm_proof(
    problem: Problem, assignment: Assignment, deadline: Clock | None = None
) -> Bound | None:
    """The proof that a plan brings, as a bound; None if the judge does not come to the same.

    The plan must be feasible and have the value itself, and the judge must prove the value again.
    """
    stated = assignment.proof
    if stated is None or stated.of not in FIGURES.values():
        return None
    report = judge(problem, assignment, bounded=False)
    reached = getattr(report, stated.of)
    if not report.feasible or reached is None:
        return None
    if abs(reached - stated.value) > 1e-9 * max(abs(reached), abs(stated.value)):
        return None
    return prove_again(problem, assignment, stated, deadline)


def gap(value: float | None, limit: float | None) -> float | None:
    """|value - bound| / max(|value|, |bound|); 0 if both are 0; None if either is unknown."""
    if value is None or limit is None:
        return None
    largest = max(abs(value), abs(limit))
    apart = abs(value - limit)
    return apart / largest if apart > 1e-12 * largest else 0.0  # below is rounding


def _limit(problem: Problem, objective: str, bounded: bool) -> Bound:
    """How good any plan could be, if that is asked."""
    figure = FIGURES[objective]
    return bound(plannable(problem, objective), figure) if bounded else no_bound(figure)


def _throughput(problem: Problem, assignment: Assignment, rate: float | None) -> float:
    """Tuples/s processed by all tasks that are placed, at the rates that are sustained."""
    processed = float(problem.rate[assignment.node[problem.first[:-1]] != UNPLACED].sum())
    return processed * (1.0 if rate is None else min(1.0, rate))


def _balance(problem: Problem, used: Use) -> float | None:
    cpu = problem.capacity[:, CPU]
    if not (np.isfinite(cpu) & (cpu > 0)).all():
        return None
    return float(np.std((used.resources[:, CPU] + problem.taken[:, CPU]) / cpu))


def _weighted_utilisation(problem: Problem, used: Use) -> float | None:
    """Mean utilisation of each machine type, weighted by how fast the type is.

    Eq. 7-8 of Nasiri et al. The weights of eq. 8 add up to the number of component kinds, so the
    sum is divided by it.
    """
    cpu = problem.capacity[:, CPU]
    if (
        not problem.profiled.any()
        or not np.isfinite(cpu).all()
        or (problem.cpu_rate[problem.profiled] <= 0).any()
    ):
        return None
    per_tuple = problem.cpu_rate[problem.profiled] / problem.rate[problem.profiled, None]
    kinds = distinct(np.round(per_tuple, 12), axis=0)
    weight = ((1 / kinds) / (1 / kinds).sum(axis=1, keepdims=True)).sum(axis=0) / len(kinds)
    utilisation = np.divide(
        used.resources[:, CPU] + problem.taken[:, CPU], cpu, out=np.zeros(len(cpu)), where=cpu > 0
    )
    machines = np.bincount(problem.node_type, minlength=len(problem.types))
    return float(
        (weight * totals(problem.node_type, utilisation, len(problem.types)) / machines).sum()
    )


def _cost(problem: Problem, paid: Ints) -> float | None:
    """Price of the nodes that are paid for; None where one has none."""
    machines = np.bincount(problem.node_type[paid > 0], minlength=len(problem.types))
    if not machines.any() or np.isnan(problem.price[machines > 0]).any():
        return None
    return float((machines * np.where(machines > 0, problem.price, 0.0)).sum())


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


def _rack_table(problem: Problem, sent: Traffic, used: Use) -> dict[str, dict[str, float | None]]:
    """What each rack in use sends to others, beside its uplink."""
    if len(problem.racks) == 1:
        return {}
    table: dict[str, dict[str, float | None]] = {}
    for r, name in enumerate(problem.racks):
        busy = (problem.rack == r) & (used.tasks > 0)
        if busy.any():
            uplink = float(problem.uplink_mbps[r])
            table[name] = {
                "nodes": int(busy.sum()),
                "tasks": int(used.tasks[busy].sum()),
                "out_mbps": float(sent.rack_out_bytes[r] * 8 / 1e6),
                "in_mbps": float(sent.rack_in_bytes[r] * 8 / 1e6),
                "uplink_mbps": uplink if np.isfinite(uplink) else None,
            }
    return table


def _narrow_uplinks(problem: Problem, sent: Traffic) -> list[str]:
    """A line for each rack that sends or receives more than its uplink carries."""
    lines: list[str] = []
    for way, load in (("out", sent.rack_out_bytes), ("in", sent.rack_in_bytes)):
        mbps = load * 8 / 1e6
        for r in np.flatnonzero(mbps > problem.uplink_mbps * (1 + TOLERANCE)).tolist():
            need, there = f"{float(mbps[r]):g}", f"{float(problem.uplink_mbps[r]):g}"
            name = problem.racks[r] or "without a name"
            lines.append(f"rack {name}: uplink {way} needs {need} Mbit/s, there is {there}")
    return lines
