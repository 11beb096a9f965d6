"""The section that says why: what limits the plan, what its traffic is made of, what was assumed, what is broken."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace.judge.report import Report
from headrace.model.problem import Problem
from headrace.page.markup import Html, element, joined
from headrace.page.view import Flow, View, flows, state
from headrace.page.words import counted, number, percent, sustained
from headrace.planner import Planned

MOST_STREAMS = 5
MOST_VIOLATIONS = 5  # of one plan


def explanation(view: View) -> Html:
    """Bottleneck, costly streams, notes and broken rules."""
    shown = view.shown
    parts = [_bottleneck(shown), _streams(view, shown)] if shown is not None else []
    parts += [_notes(view), *(_broken(result) for result in view.results)]
    return element("section", element("h2", "Why"), *parts) if any(parts) else Html()


def _bottleneck(shown: Planned) -> Html:
    report = shown.report
    if report is None or report.bottleneck is None:
        return Html()
    problem = shown.problem
    facts: list[str] = []
    node = _named_node(report)
    if node is not None:
        row = report.nodes[node]
        facts = [f for resource in problem.resources if (f := _resource(resource, row))]
        bandwidth = row["bandwidth_mbps"]
        if bandwidth is not None and (row["out_mbps"] or row["in_mbps"]):
            facts.append(
                f"network: {number(row['out_mbps'])} out and {number(row['in_mbps'])} in of {number(bandwidth)} Mbit/s"
            )
        facts.append(f"runs {_tenants(problem, shown, node)}")
    full = (
        f" At {sustained(report.max_rate, shown.absolute)}{'' if shown.absolute else ' the given rates'} it is full."
        if report.max_rate is not None and shown.objective != "batch"
        else ""
    )
    return joined(
        [
            element("h3", f"What limits {shown.scheduler}"),
            element("p", element("b", report.bottleneck), f".{full}"),
            element("ul", *(element("li", fact) for fact in facts)) if facts else "",
        ]
    )


def _named_node(report: Report) -> str | None:
    """The node that the bottleneck names; of several that fit, the longest name."""
    text = report.bottleneck or ""
    fits = [
        name
        for name in report.nodes
        if text.startswith(f"node {name}: ") or text.endswith(f" on node {name}")
    ]
    return max(fits, key=len, default=None)


def _resource(resource: str, row: Mapping[str, float | None]) -> str:
    used, taken, capacity = (
        row[resource] or 0.0,
        row[f"{resource}_taken"] or 0.0,
        row[f"{resource}_capacity"],
    )
    if capacity is None:
        return f"{resource}: {number(used)} used, no limit stated" if used else ""
    others = f" and {number(taken)} by others" if taken else ""
    part = f" ({percent((used + taken) / capacity)})" if capacity else ""
    return f"{resource}: {number(used)} used{others} of {number(capacity)}{part}"


def _tenants(problem: Problem, shown: Planned, node: str) -> str:
    assert shown.assignment is not None
    here = np.flatnonzero(shown.assignment.node == problem.nodes.index(node))
    kinds, count = np.unique(problem.component_of[here], return_counts=True)
    order = np.lexsort((kinds, -count))
    words = [f"{problem.components[kinds[i]]} × {number(int(count[i]))}" for i in order[:8]]
    return ", ".join(words) + (
        f" and {counted(len(order) - 8, 'more component')}" if len(order) > 8 else ""
    )


def _streams(view: View, shown: Planned) -> Html:
    flowing = flows(shown.problem, shown.assignment)
    crossing = sum(flow.inter_node for flow in flowing)
    if not flowing:
        return Html()
    title = element("h3", "Streams that cross most")
    if not crossing:
        return joined([title, element("p", "No stream crosses between nodes.")])
    costly = sorted((f for f in flowing if f.inter_node), key=lambda f: -f.inter_node)
    head = element(
        "tr",
        *(
            element("th", name)
            for name in ("stream", "tuples/s", "between nodes", "of it", "of all crossing")
        ),
        element("th"),
    )
    rows = (_stream(view, flow, crossing) for flow in costly[:MOST_STREAMS])
    return joined(
        [
            title,
            element(
                "div",
                element("table", element("thead", head), element("tbody", *rows)),
                class_="scroll",
            ),
        ]
    )


def _stream(view: View, flow: Flow, crossing: float) -> Html:
    ends = f"{view.operators[flow.source].name} → {view.operators[flow.target].name}"
    share = flow.inter_node / crossing
    return element(
        "tr",
        element("th", ends, element("small", flow.label), scope="row"),
        element("td", number(flow.tuples_per_s)),
        element("td", number(flow.inter_node)),
        element("td", percent(min(1.0, flow.inter_node / flow.tuples_per_s))),
        element("td", percent(share)),
        element(
            "td",
            element("span", element("i", style=f"width:{100 * share:.1f}%"), class_="bar"),
            class_="bars",
        ),
    )


def _notes(view: View) -> Html:
    notes = dict.fromkeys(
        note for result in view.results if result.report is not None for note in result.report.notes
    )
    notes = notes or dict.fromkeys(view.problem.notes)
    if not notes:
        return Html()
    return joined(
        [
            element("h3", "Assumed and overridden"),
            element("ul", *(element("li", note) for note in notes)),
        ]
    )


def _broken(result: Planned) -> Html:
    """Every rule a plan breaks, up to a few, and every refusal with what would make it fit."""
    reasons = (
        []
        if result.report is None
        else [violation.message for violation in result.report.violations]
    )
    if result.report is not None:
        for name, fields in result.report.unplaced.items():
            reasons.append(
                f"topology {name} is not placed: {fields['message']}"
                + (f"; {fields['fix']}" if fields["fix"] else "")
            )
    if result.refusal is not None:
        reasons.append(
            result.refusal.message + (f"; {result.refusal.fix}" if result.refusal.fix else "")
        )
    if not reasons:
        return Html()
    rest = len(reasons) - MOST_VIOLATIONS
    return joined(
        [
            element("h3", f"{result.scheduler}: {state(result)}"),
            element(
                "ul",
                *(element("li", reason) for reason in reasons[:MOST_VIOLATIONS]),
                element("li", f"and {rest:,} more") if rest > 0 else "",
                class_="bad",
            ),
        ]
    )
