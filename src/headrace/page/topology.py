"""The section that shows what is planned: the largest topologies drawn, the others listed."""

from __future__ import annotations

import numpy as np

from headrace.figures import number, percent, plural, short
from headrace.model.problem import Assignment, Ints, Problem
from headrace.page.drawing import DASHED, Box, Curve, draw
from headrace.page.markup import Html, element, join
from headrace.page.view import Flow, Operator, View, flows, operators

MOST_TOPOLOGIES = 3
MOST_BOXES = 60  # in all drawings together
MOST_CURVES = 120  # in one drawing


def topology(view: View) -> Html:
    """The topologies with the most tasks, as graphs."""
    problem, shown = view.problem, view.shown
    title = "Topology" if len(problem.topologies) == 1 else "Topologies"
    drawings = draw_topologies(problem, None if shown is None else shown.assignment)
    return element("section", element("h2", title), drawings)


def draw_topologies(problem: Problem, assignment: Assignment | None) -> Html:
    """The topologies with the most tasks as graphs; with a plan, what of each stream crosses."""
    drawn = operators(problem)
    owner = np.array([int(problem.topology[operator.components[0]]) for operator in drawn])
    tasks = np.bincount(problem.topology, problem.tasks, len(problem.topologies))
    ranked = sorted(range(len(problem.topologies)), key=lambda g: (-tasks[g], g))
    flowing = flows(problem, assignment)
    placed = assignment is not None
    room = MOST_BOXES
    drawings: list[Html] = []
    listed: list[int] = []
    for g in ranked:
        members = np.flatnonzero(owner == g).tolist()
        if drawings and (len(drawings) == MOST_TOPOLOGIES or len(members) > room):
            listed.append(g)
            continue
        room -= len(members)
        inside = [flow for flow in flowing if owner[flow.source] == g]
        drawings.append(_drawing(problem, drawn, members, inside, placed=placed))
    core = "; the coloured core is the share that crosses between nodes" if placed else ""
    cycles = " Dashed streams close a cycle." if any(DASHED in d for d in drawings) else ""
    lead = f"Streams are as wide as their tuples per second{core}.{cycles}"
    return join(
        [
            element("p", lead, class_="lead"),
            *drawings,
            _others(problem, listed, np.bincount(owner, minlength=len(tasks)), tasks),
        ]
    )


def _drawing(
    problem: Problem,
    drawn: tuple[Operator, ...],
    members: list[int],
    flowing: list[Flow],
    *,
    placed: bool,
) -> Html:
    """One topology, as much of it as there is room for: what carries most."""
    weight = dict.fromkeys(members, 0.0)
    for flow in flowing:
        weight[flow.source] += flow.tuples_per_s
        weight[flow.target] += flow.tuples_per_s
    kept = sorted(sorted(members, key=lambda o: (-weight[o], o))[:MOST_BOXES])
    between = [f for f in flowing if f.source in kept and f.target in kept]
    widest = sorted(range(len(between)), key=lambda i: (-between[i].tuples_per_s, i))
    index = {operator: i for i, operator in enumerate(kept)}
    name = problem.topologies[problem.topology[drawn[members[0]].components[0]]]
    several = len(problem.topologies) > 1
    boxes = [_box(problem, drawn[o], f"{name}/" if several else "") for o in kept]
    curves = [_curve(drawn, between[i], index, placed) for i in sorted(widest[:MOST_CURVES])]
    components, streams = len(members) - len(kept), len(flowing) - len(curves)
    unused_type_notes = (
        [f"{plural(components, 'component')} with less traffic"] if components else []
    )
    unused_type_notes += [plural(streams, "stream")] if streams else []
    rest = f"Not drawn: {' and '.join(unused_type_notes)}."
    return join(
        [
            element("h3", name) if several else "",
            element("div", draw(boxes, curves, f"Topology {name}"), class_="scroll"),
            element("p", rest, class_="aside") if unused_type_notes else "",
        ]
    )


def _box(problem: Problem, operator: Operator, prefix: str) -> Box:
    members = operator.components
    tasks, rate = int(problem.tasks[members].sum()), float(problem.rate[members].sum())
    spout = bool(problem.spout[members].any())
    detail = plural(tasks, "task") + (f" · {short(rate)}/s" if rate else "")
    memory, state = (
        float(values[members].max()) for values in (problem.demand[:, 1], problem.state_mb)
    )
    facts = [
        f"{operator.letter}: {operator.name}",
        plural(tasks, "task"),
        f"{'emits' if spout else 'processes'} {number(rate)} tuples/s" if rate else "",
        f"{number(memory)} MB per task" if memory else "",
        f"{number(state)} MB of state per task" if state else "",
    ]
    name, tooltip = operator.name.removeprefix(prefix), "\n".join(filter(None, facts))
    return Box(name, operator.letter, operator.colour, detail, tooltip, spout)


def _curve(drawn: tuple[Operator, ...], flow: Flow, index: dict[int, int], placed: bool) -> Curve:
    crossing = flow.inter_node / flow.tuples_per_s if flow.tuples_per_s else 0.0
    ends = f"{drawn[flow.source].name} → {drawn[flow.target].name}"
    facts = (
        flow.label,
        f"{number(flow.tuples_per_s)} tuples/s",
        f"{percent(crossing)} between nodes" if placed else "",
    )
    tooltip = f"{ends}\n{', '.join(filter(None, facts))}"
    return Curve(
        index[flow.source], index[flow.target], flow.label, flow.tuples_per_s, crossing, tooltip
    )


def _others(problem: Problem, listed: list[int], components: Ints, tasks: np.ndarray) -> Html:
    if not listed:
        return Html()
    names = [
        f"{problem.topologies[g]} ({plural(int(components[g]), 'component')}, "
        f"{plural(int(tasks[g]), 'task')})"
        for g in listed[:MOST_BOXES]
    ]
    more = f" and {len(listed) - MOST_BOXES:,} more" if len(listed) > MOST_BOXES else ""
    return element("p", f"Also planned, not drawn: {', '.join(names)}{more}.", class_="aside")
