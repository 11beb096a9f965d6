"""The section that says why: what limits the plan, which streams cross, what is broken."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace.figures import number, percent, plural
from headrace.page.markup import Html, element, join
from headrace.page.parts import scroll_table
from headrace.page.view import Flow, View, flows
from headrace.planner.result import Outcome, Plan
from headrace.words import reasons, speed, state

MOST_STREAMS = 5
MOST_REASONS = 5  # of one plan
MOST_TENANTS = 8  # components of a node


def explanation(view: View) -> Html:
    """Bottleneck, costly streams, notes and broken rules."""
    shown = view.shown
    parts = [_bottleneck(shown), _streams(view, shown)] if shown is not None else []
    parts += [_notes(view), *(_broken(result) for result in view.results)]
    return element("section", element("h2", "Why"), *parts) if any(parts) else Html()


def _bottleneck(plan: Plan) -> Html:
    report = plan.report
    if report.bottleneck is None:
        return Html()
    node = report.bottleneck.node
    facts = [] if node is None else _node_facts(plan, node)
    full = ""
    if report.max_rate is not None and plan.objective != "batch":
        full = f" At {speed(plan)} it is full."
    return join(
        [
            element("h3", f"What limits {plan.scheduler}"),
            element("p", element("b", str(report.bottleneck)), f".{full}"),
            element("ul", *(element("li", fact) for fact in facts)) if facts else "",
        ]
    )


def _node_facts(plan: Plan, node: str) -> list[str]:
    """What a node's resources and links carry, and what runs there."""
    row = plan.report.nodes[node]
    facts = [fact for name in plan.problem.resources if (fact := _resource(name, row))]
    out, arrives, bandwidth = row["out_mbps"], row["in_mbps"], row["bandwidth_mbps"]
    if bandwidth is not None and (out or arrives):
        sent = f"{number(out)} out and {number(arrives)} in"
        facts.append(f"network: {sent} of {number(bandwidth)} Mbit/s")
    return [*facts, f"runs {_tenants(plan, node)}"]


def _resource(resource: str, row: Mapping[str, float | None]) -> str:
    used, taken = row[resource] or 0.0, row[f"{resource}_taken"] or 0.0
    capacity = row[f"{resource}_capacity"]
    if capacity is None:
        return f"{resource}: {number(used)} used, no limit stated" if used else ""
    others = f" and {number(taken)} by others" if taken else ""
    share = f" ({percent((used + taken) / capacity)})" if capacity else ""
    return f"{resource}: {number(used)} used{others} of {number(capacity)}{share}"


def _tenants(plan: Plan, node: str) -> str:
    """The components of a node's tasks, the most numerous first."""
    problem = plan.problem
    here = np.flatnonzero(plan.assignment.node == problem.nodes.index(node))
    kinds, count = np.unique(problem.component_of[here], return_counts=True)
    order = np.lexsort((kinds, -count))
    shown = (
        f"{problem.components[kinds[i]]} × {number(int(count[i]))}" for i in order[:MOST_TENANTS]
    )
    rest = len(order) - MOST_TENANTS
    return ", ".join(shown) + (f" and {plural(rest, 'more component')}" if rest > 0 else "")


def _streams(view: View, plan: Plan) -> Html:
    flowing = flows(plan.problem, plan.assignment)
    crossing = sum(flow.inter_node for flow in flowing)
    if not flowing:
        return Html()
    title = element("h3", "Streams that cross most")
    if not crossing:
        return join([title, element("p", "No stream crosses between nodes.")])
    costly = sorted((f for f in flowing if f.inter_node), key=lambda f: -f.inter_node)
    names = ("stream", "tuples/s", "between nodes", "of it", "of all crossing", "")
    head = (element("th", name) for name in names)
    rows = (_stream(view, flow, crossing) for flow in costly[:MOST_STREAMS])
    return join([title, scroll_table(head, rows)])


def _stream(view: View, flow: Flow, crossing: float) -> Html:
    ends = f"{view.operators[flow.source].name} → {view.operators[flow.target].name}"
    share = flow.inter_node / crossing
    bar = element("span", element("i", style=f"width:{100 * share:.1f}%"), class_="bar")
    return element(
        "tr",
        element("th", ends, element("small", flow.label), scope="row"),
        element("td", number(flow.tuples_per_s)),
        element("td", number(flow.inter_node)),
        element("td", percent(min(1.0, flow.inter_node / flow.tuples_per_s))),
        element("td", percent(share)),
        element("td", bar, class_="bars"),
    )


def _notes(view: View) -> Html:
    notes = dict.fromkeys(note for plan in view.plans for note in plan.report.notes)
    notes = notes or dict.fromkeys(view.problem.notes)
    if not notes:
        return Html()
    title = element("h3", "Assumed and overridden")
    return join([title, element("ul", *(element("li", note) for note in notes))])


def _broken(result: Outcome) -> Html:
    """What a plan breaks, up to a few, and every refusal with what would make it fit."""
    found = reasons(result, fixes=True)
    if not found:
        return Html()
    rest = len(found) - MOST_REASONS
    items = [element("li", reason) for reason in found[:MOST_REASONS]]
    more = element("li", f"and {rest:,} more") if rest > 0 else ""
    title = element("h3", f"{result.scheduler}: {state(result)}")
    return join([title, element("ul", *items, more, class_="bad")])
