"""A plan as the live page draws it: the reports' drawings, to be filled in while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.figures import plural
from headrace.model.problem import CPU, MEMORY, Assignment, Problem
from headrace.page.drawing import THINNEST, WIDEST
from headrace.page.markup import Html, element, join
from headrace.page.node import HOT, WARM, Contents, draw_live_node
from headrace.page.placement import LOAD_NAMES, LOADS, legend
from headrace.page.topology import draw_topologies
from headrace.page.view import operators

MOST_CARDS = 60  # of nodes at once; above, there is a map
CARD = 236  # pixels that a card needs
MOST_SQUARES = 120  # tasks of a node shown one by one
MAP_COLUMNS, STEP, SIDE = 25, 14, 11  # squares of a rack beside each other, their step and side


def live_picture(problem: Problem, assignment: Assignment) -> dict[str, Any]:
    """Drawings of a plan, and what a script needs to fill them in."""
    drawn = operators(problem)
    many = len(problem.nodes) > MOST_CARDS
    shown: Sequence[int] = () if many else range(len(problem.nodes))
    return {
        "topology": draw_topologies(problem, assignment),
        "legend": legend(drawn),
        "map": draw_map(problem) if many else "",
        "cards": draw_cards(problem, assignment, shown),
        "letters": {operator.letter: operator.name for operator in drawn},
        "colours": {operator.name: operator.colour for operator in drawn},
        "nodes": {name: _limits(problem, n) for n, name in enumerate(problem.nodes)},
        "tasks": problem.task_count,
        "warm": WARM,
        "hot": HOT,
        "loads": list(LOADS),
        "thinnest": THINNEST,
        "widest": WIDEST,
    }


def draw_cards(problem: Problem, assignment: Assignment, nodes: Sequence[int]) -> Html:
    """Cards of nodes, rack by rack."""
    contents = Contents(problem, assignment)
    racks: dict[int, list[int]] = {}
    for n in nodes:
        racks.setdefault(int(problem.rack[n]), []).append(n)
    groups: list[Html] = []
    for rack, members in sorted(racks.items()):
        title = element("h3", f"Rack {problem.racks[rack]}") if len(problem.racks) > 1 else ""
        cards = (draw_live_node(problem, contents, n, MOST_SQUARES) for n in members)
        count = len(members)  # racks of few nodes go beside each other
        groups.append(
            element(
                "div",
                title,
                element("div", *cards, class_="nodes"),
                class_="group",
                style=f"flex:{count} 1 {CARD * count + 12 * (count - 1)}px",
            )
        )
    return join(groups)


def draw_map(problem: Problem) -> Html:
    """Every node as a square, rack by rack; a script colours them by their CPU."""
    racks = [np.flatnonzero(problem.rack == r).tolist() for r in range(len(problem.racks))]
    figures = (
        _rack(problem, name, members)
        for name, members in zip(problem.racks, racks, strict=True)
        if members
    )
    key = (
        element("span", element("i", class_=f"swatch load{level}"), f" {name} ")
        for level, name in enumerate(LOAD_NAMES)
    )
    caption = f"All {plural(len(problem.nodes), 'node')} by CPU: "
    return join(
        [element("p", caption, *key, class_="lead"), element("div", *figures, class_="racks")]
    )


def _rack(problem: Problem, name: str, members: Sequence[int]) -> Html:
    squares = (
        element(
            "rect",
            element("title", problem.nodes[n]),
            x=STEP * (i % MAP_COLUMNS),
            y=STEP * (i // MAP_COLUMNS),
            width=SIDE,
            height=SIDE,
            rx=2,
            class_="load0",
            data_node=problem.nodes[n],
        )
        for i, n in enumerate(members)
    )
    wide = STEP * min(MAP_COLUMNS, len(members))
    high = STEP * -(-len(members) // MAP_COLUMNS)
    title = f"Rack {name or 'without a name'}"
    words = f"{title}, {plural(len(members), 'node')}"
    picture = element(
        "svg", *squares, viewBox=f"0 0 {wide} {high}", width=wide, height=high, aria_hidden="true"
    )
    return element(
        "button",
        element("b", title),
        element("small", plural(len(members), "node")),
        picture,
        type="button",
        class_="rack",
        data_rack=name,
        aria_label=f"{words}: show them",
    )


def _limits(problem: Problem, n: int) -> dict[str, Any]:
    def known(value: float) -> float | None:
        return value if np.isfinite(value) and value > 0 else None

    return {
        "cpu": known(float(problem.capacity[n, CPU])),
        "memory_mb": known(float(problem.capacity[n, MEMORY])),
        "mbps": known(float(problem.bandwidth_mbps[n])),
        "rack": problem.racks[int(problem.rack[n])],
    }
