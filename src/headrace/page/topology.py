"""The section that shows what is planned: the largest topologies drawn, the others listed."""

from __future__ import annotations

import numpy as np

from headrace.page.drawing import DASHED, Box, Curve, draw
from headrace.page.markup import Html, element, joined
from headrace.page.view import Flow, View, flows
from headrace.page.words import counted, number, percent, short

MOST_TOPOLOGIES = 3
MOST_BOXES = 60  # in all drawings together
MOST_CURVES = 120  # in one drawing


def topology(view: View) -> Html:
    """The topologies with the most tasks, as graphs."""
    problem, shown = view.problem, view.shown
    owner = np.array([int(problem.topology[operator.components[0]]) for operator in view.operators])
    tasks = np.bincount(problem.topology, problem.tasks, len(problem.topologies))
    ranked = sorted(range(len(problem.topologies)), key=lambda g: (-tasks[g], g))
    flowing = flows(problem, shown.assignment if shown is not None else None)
    room = MOST_BOXES
    drawings: list[Html] = []
    listed: list[int] = []
    for g in ranked:
        members = np.flatnonzero(owner == g).tolist()
        if drawings and (len(drawings) == MOST_TOPOLOGIES or len(members) > room):
            listed.append(g)
            continue
        room -= len(members)
        drawings.append(_drawing(view, g, members, [f for f in flowing if owner[f.source] == g]))
    core = "; the coloured core is the part that crosses between nodes" if shown is not None else ""
    cycles = (
        " Dashed streams close a cycle." if any(DASHED in drawing for drawing in drawings) else ""
    )
    return element(
        "section",
        element("h2", "Topology" if len(problem.topologies) == 1 else "Topologies"),
        element(
            "p", f"Streams are as wide as their tuples per second{core}.{cycles}", class_="lead"
        ),
        *drawings,
        _others(view, listed, owner, tasks),
    )


def _drawing(view: View, g: int, members: list[int], flowing: list[Flow]) -> Html:
    problem = view.problem
    weight = dict.fromkeys(members, 0.0)
    for flow in flowing:
        weight[flow.source] += flow.tuples_per_s
        weight[flow.target] += flow.tuples_per_s
    kept = sorted(sorted(members, key=lambda o: (-weight[o], o))[:MOST_BOXES])
    between = [f for f in flowing if f.source in kept and f.target in kept]
    drawn = sorted(
        sorted(range(len(between)), key=lambda i: (-between[i].tuples_per_s, i))[:MOST_CURVES]
    )
    index = {operator: i for i, operator in enumerate(kept)}
    prefix = f"{problem.topologies[g]}/" if len(problem.topologies) > 1 else ""
    boxes = [_box(view, operator, prefix) for operator in kept]
    curves = [_curve(view, between[i], index) for i in drawn]
    left_out = [
        text
        for count, text in (
            (
                len(members) - len(kept),
                counted(len(members) - len(kept), "component") + " with less traffic",
            ),
            (len(flowing) - len(drawn), counted(len(flowing) - len(drawn), "stream")),
        )
        if count
    ]
    return joined(
        [
            element("h3", problem.topologies[g]) if prefix else "",
            element(
                "div", draw(boxes, curves, f"Topology {problem.topologies[g]}"), class_="scroll"
            ),
            element("p", f"Not drawn: {' and '.join(left_out)}.", class_="aside")
            if left_out
            else "",
        ]
    )


def _box(view: View, o: int, prefix: str) -> Box:
    problem, operator = view.problem, view.operators[o]
    tasks, rate = (
        int(problem.tasks[operator.components].sum()),
        float(problem.rate[operator.components].sum()),
    )
    spout = bool(problem.spout[operator.components].any())
    detail = counted(tasks, "task") + (f" · {short(rate)}/s" if rate else "")
    memory, state = (
        float(values[operator.components].max())
        for values in (problem.demand[:, 1], problem.state_mb)
    )
    facts = [
        f"{operator.letter}: {operator.name}",
        counted(tasks, "task"),
        f"{'emits' if spout else 'processes'} {number(rate)} tuples/s" if rate else "",
        f"{number(memory)} MB per task" if memory else "",
        f"{number(state)} MB of state per task" if state else "",
    ]
    return Box(
        operator.name.removeprefix(prefix),
        operator.letter,
        operator.colour,
        detail,
        "\n".join(filter(None, facts)),
        spout,
    )


def _curve(view: View, flow: Flow, index: dict[int, int]) -> Curve:
    crossing = flow.inter_node / flow.tuples_per_s if flow.tuples_per_s else 0.0
    ends = f"{view.operators[flow.source].name} → {view.operators[flow.target].name}"
    facts = (
        flow.label,
        f"{number(flow.tuples_per_s)} tuples/s",
        f"{percent(crossing)} between nodes",
    )
    tooltip = f"{ends}\n{', '.join(filter(None, facts))}"
    return Curve(
        index[flow.source], index[flow.target], flow.label, flow.tuples_per_s, crossing, tooltip
    )


def _others(view: View, listed: list[int], owner: np.ndarray, tasks: np.ndarray) -> Html:
    if not listed:
        return Html()
    names = [
        f"{view.problem.topologies[g]} ({counted(int((owner == g).sum()), 'component')}, {counted(int(tasks[g]), 'task')})"
        for g in listed[:MOST_BOXES]
    ]
    more = f" and {len(listed) - MOST_BOXES:,} more" if len(listed) > MOST_BOXES else ""
    return element("p", f"Also planned, not drawn: {', '.join(names)}{more}.", class_="aside")
