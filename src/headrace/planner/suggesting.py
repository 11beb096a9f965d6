"""What would have to change for less traffic or a higher rate, and by how much.

Changes that could help are taken from what limits the plan, tried, and kept where they do help.
Beside them stand the bound's prices: by how much one more machine of a kind lowers the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from headrace.errors import HeadraceError
from headrace.judge.bounds import price_of_nodes
from headrace.judge.report import plannable
from headrace.model.build import build
from headrace.model.headroom import headroom_in, with_headroom
from headrace.model.problem import UNPLACED
from headrace.model.progress import begin, stop_wished
from headrace.model.read import Inputs
from headrace.model.what_if import WhatIf, apply_change
from headrace.planner.placing import place
from headrace.planner.result import Plan

MOST_TASKS = 5_000  # of a problem whose changes are tried: each is planned once more
SECONDS = 2.0  # for each
MORE = 1.25  # times as much of what limits
LEAST_GAIN = 0.005  # of the figure: less is not worth a line
FULL = 0.05  # of a node's capacity that is left: then it may be what keeps traffic apart


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that was tried, and what the plan becomes with it."""

    change: str  # as options of the command, or in words
    traffic: float  # between nodes
    traffic_change: float  # below 0 is better
    max_rate: float | None
    rate_change: float | None  # above 0 is better

    def to_json(self) -> dict[str, Any]:
        """As printed by `explain --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What would help: changes that were tried, and what the bound says of more machines."""

    tried: tuple[Suggestion, ...]  # the best first
    asked: int  # changes that were tried
    prices: dict[str, float]  # machine type -> tuples/s by which one more lowers the bound

    def to_json(self) -> dict[str, Any]:
        """As printed by `explain --json`."""
        rows = [one.to_json() for one in self.tried]
        return {"tried": self.asked, "helps": rows, "bound_prices": self.prices}


def suggest(inputs: Inputs, plan: Plan, *, seed: int = 0) -> Suggestions:
    """What would help a plan of these files; nothing is tried where that would take long."""
    if plan.problem.task_count > MOST_TASKS:
        return Suggestions((), 0, {})
    found: list[Suggestion] = []
    asked = 0
    for words, changed, objective in candidates(inputs, plan):
        if stop_wished():
            break
        begin(f"trying {words}")
        asked += 1
        try:
            problem = replace(build(changed), current=None)
            limits = {"objective": objective, "seed": seed, "seconds": SECONDS}
            tried = place(problem, bounded=False, **limits)  # pyright: ignore[reportArgumentType]
        except HeadraceError:
            continue
        if tried.report.feasible and (one := compare(words, plan, tried)) is not None:
            found.append(one)
    begin("asking the bound for its prices")
    prices = price_of_nodes(plannable(plan.problem, "traffic"))
    return Suggestions(tuple(sorted(found, key=lambda s: _worth(plan, s))), asked, prices)


def _worth(plan: Plan, one: Suggestion) -> float:
    """The less, the better: share of the traffic, and of the rate."""
    traffic = one.traffic_change / max(plan.report.inter_node_traffic, 1e-9)
    return traffic - (one.rate_change or 0.0) / max(plan.report.max_rate or 1.0, 1e-9)


def compare(words: str, plan: Plan, tried: Plan) -> Suggestion | None:
    """What a change does; None where it helps neither figure."""
    before, after = plan.report, tried.report
    less = after.inter_node_traffic - before.inter_node_traffic
    faster = None
    if before.max_rate is not None and after.max_rate is not None:
        faster = after.max_rate - before.max_rate
    helps = -less > LEAST_GAIN * before.inter_node_traffic
    helps |= faster is not None and faster > LEAST_GAIN * (before.max_rate or 0.0)
    if not helps:
        return None
    return Suggestion(words, after.inter_node_traffic, less, after.max_rate, faster)


def candidates(inputs: Inputs, plan: Plan) -> Iterator[tuple[str, Inputs, str]]:
    """Changes that could help: as words, as files, and the objective to plan for."""
    for change in changes(inputs, plan):
        try:
            yield " ".join(change.words()), apply_change(inputs, change), "traffic"
        except HeadraceError:
            continue
    if headroom_in(inputs):
        yield "--headroom 0", with_headroom(inputs, 0.0), "traffic"
    if plan.objective != "rate":
        yield "--objective rate", inputs, "rate"
    if plan.objective != "traffic":
        yield "--objective traffic", inputs, "traffic"


def changes(inputs: Inputs, plan: Plan) -> Iterator[WhatIf]:
    """More of what limits: full nodes, one more machine, one more task, fewer rules."""
    document, problem = inputs.document, plan.problem
    stated = document.cluster.nodes if document.cluster is not None else {}
    limit = plan.report.bottleneck
    full = full_resources(plan)
    if limit is not None and limit.node is not None and limit.resource == "cpu":
        full.add((problem.types[problem.node_type[problem.nodes.index(limit.node)]], "cpu"))
    for pattern, node in stated.items():
        for resource in ("cpu", "memory_mb"):
            has = getattr(node, resource)
            if has and (node.type, resource) in full:
                path, more = f"cluster.nodes.{pattern}.{resource}", round(has * MORE, 3)
                yield WhatIf(settings=((path, int(more) if more == int(more) else more),))
    for kind in dict.fromkeys(node.type for node in stated.values() if node.type):
        yield WhatIf(added=((kind, 1),))
    if document.topology is None:
        return
    for name, spec in document.topology.components.items():
        path = f"topology.components.{name}"
        if limit is not None and limit.task is not None and limit.task.startswith(f"{name}."):
            yield WhatIf(settings=((f"{path}.tasks", spec.tasks + 1),))
        if spec.apart:
            yield WhatIf(settings=((f"{path}.apart", False),))
        if spec.nodes is not None:
            yield WhatIf(settings=((f"{path}.nodes", None),))


def full_resources(plan: Plan) -> set[tuple[str, str]]:
    """Machine types of which a node in use is nearly full, within its headroom, and of what."""
    problem = plan.problem
    used = {int(n) for n in plan.assignment.node.tolist() if n != UNPLACED}
    found: set[tuple[str, str]] = set()
    for n in used:
        row = plan.report.nodes[problem.nodes[n]]
        for resource in ("cpu", "memory_mb"):
            capacity = row[f"{resource}_capacity"]
            kept = 1.0 - problem.headroom.get(resource, 0.0)
            in_use = (row[resource] or 0.0) + (row[f"{resource}_taken"] or 0.0)
            if capacity and in_use > (kept - FULL) * capacity:
                found.add((problem.types[problem.node_type[n]], resource))
    return found
