"""What other rates would cost, or other budgets buy, around a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.errors import HeadraceError
from headrace.model.read import Inputs
from headrace.model.workload import Workload
from headrace.planner.placing import DEFAULT
from headrace.planner.result import Plan
from headrace.planner.sizing import planned_rate, provision
from headrace.registry import By

CURVE = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.1, 1.25, 1.5, 1.75, 2.0)  # of the rate or cost
CURVE_STEPS = 30_000  # of search for each of them


@dataclass(frozen=True, slots=True)
class Point:
    """A plan among those that trade rate against cost."""

    cost: float
    rate: float  # tuples/s over all spouts that it sustains
    machines: Mapping[str, int]
    limit: tuple[float, float] | None  # cost and rate: nothing that costs less is faster


@dataclass(frozen=True, slots=True)
class CostCurve:
    """The curve of rate against cost around a plan."""

    points: tuple[Point, ...]  # by cost, each faster than all that cost less
    chosen: Point
    limits: tuple[tuple[float, float], ...]  # of all that was looked at, by cost


def cost_curve(
    inputs: Inputs, chosen: Plan, by: By = DEFAULT, *, budgets: bool = False, seed: int = 0
) -> CostCurve | None:
    """The curve from a dozen runs of the provisioner; None where there is nothing to rent.

    It asks for the cheapest machines of some rates, or with `budgets` for what some budgets buy.
    """
    if not inputs.document.catalog or chosen.report.cost is None or not chosen.absolute:
        return None
    asked = planned_rate(chosen.problem)
    here = _point(chosen, None if budgets else asked)
    found = [here]
    for factor in CURVE:
        rate, budget = (None, here.cost * factor) if budgets else (asked * factor, None)
        try:
            other = provision(
                Workload(inputs), by, rate=rate, budget=budget, seed=seed, steps=CURVE_STEPS
            )
        except HeadraceError:
            continue
        found.append(_point(other, rate))
    points: list[Point] = []
    for point in sorted(found, key=lambda p: (p.cost, -p.rate, p is not here)):
        if not points or point.rate > points[-1].rate * (1 + 1e-6):
            points.append(point)
    limits = sorted(p.limit for p in found if p.limit is not None)
    return CostCurve(tuple(points), here, tuple(limits))


def _point(plan: Plan, asked: float | None) -> Point:
    """A plan as a point; `asked` is the rate whose cost its bound is about."""
    report, kinds = plan.report, [plan.problem.types[t] for t in plan.problem.node_type.tolist()]
    cost, rate = report.cost or 0.0, report.max_rate or planned_rate(plan.problem)
    value, of = report.bound.value, report.bound.of
    limit = None
    if value is not None and of == "cost" and asked:
        limit = (value, asked)
    elif value is not None and of == "max_rate":
        limit = (cost, value)
    machines = plan.machines or {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return Point(cost, rate, machines, limit)
