"""Plans, comparisons and problems as notebooks show them: what `_repr_html_` gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from headrace.errors import InvalidInput
from headrace.figures import NONE, number, plural
from headrace.model.problem import CPU, MEMORY, Ints, Problem
from headrace.page.comparison import result_table
from headrace.page.fragment import fragment
from headrace.page.headline import choices_line, tiles_of, verdict
from headrace.page.markup import Html, element
from headrace.page.parts import alarm, scroll_table
from headrace.page.placement import draw_placement, legend
from headrace.page.topology import draw_topologies
from headrace.page.view import View, operators
from headrace.planner.result import Outcome
from headrace.words import plan_of, reasons, subject

MOST_NODES = 12  # of a plan; the fullest
MOST_GROUPS = 30  # of nodes that are alike, in the table of a problem
MOST_REASONS = 5


def plan_fragment(result: Outcome) -> str:
    """A plan: what it means, its figures, its streams and its nodes; or why there is none."""
    plan = plan_of(result)
    if plan is None:
        return fragment(_broken(f"{result.scheduler}: no plan.", result))
    return fragment(
        element("p", subject(plan.problem), class_="subject"),
        verdict(plan)
        if plan.report.feasible
        else _broken(f"{plan.scheduler}: not feasible.", plan),
        tiles_of(plan),
        choices_line(plan),
        element("h3", "Topology"),
        draw_topologies(plan.problem, plan.assignment),
        element("h3", "Placement"),
        legend(operators(plan.problem)),
        draw_placement(plan, MOST_NODES),
    )


def comparison_fragment(results: Sequence[Outcome]) -> str:
    """Many schedulers in one table, best first, with what the best plan means."""
    if not results:
        raise InvalidInput("no result to show: a comparison needs at least one plan or refusal")
    view = View.of(results, "", None)
    none = alarm("No feasible plan.", "The table says why.")
    best = none if view.best is None else verdict(view.best)
    about = element("p", subject(view.problem), class_="subject")
    return fragment(about, best, result_table(view))


def problem_fragment(problem: Problem) -> str:
    """What is to be planned: the topologies drawn, and the nodes, those that are alike together."""
    notes = [element("li", note) for note in problem.notes]
    return fragment(
        element("p", element("strong", subject(problem)), class_="verdict"),
        draw_topologies(problem, None),
        element("h3", plural(len(problem.nodes), "node")),
        _node_table(problem),
        element("ul", *notes, class_="aside") if notes else Html(),
    )


def _broken(title: str, result: Outcome) -> Html:
    why = reasons(result, fixes=True)
    rest = len(why) - MOST_REASONS
    return alarm(title, items=why[:MOST_REASONS], more=f"And {rest:,} more." if rest > 0 else "")


def _node_table(problem: Problem) -> Html:
    names = ("nodes", "", "type", "CPU", "memory MB", "slots", "Mbit/s", "rack")
    groups = list(_alike(problem))
    rows = [_node_row(problem, members) for members in groups[:MOST_GROUPS]]
    rest = len(groups) - MOST_GROUPS
    if rest > 0:
        more = element("th", f"and {rest:,} more kinds of nodes", colspan=str(len(names)))
        rows.append(element("tr", more))
    return scroll_table((element("th", name) for name in names), rows)


def _alike(problem: Problem) -> Iterator[Ints]:
    """Nodes that are of one type and rack and have the same free, in the order of the file."""
    columns = (
        problem.node_type,
        problem.rack,
        problem.free_slots,
        problem.bandwidth_mbps,
        *(problem.capacity - problem.taken).T,
    )
    _, first, group = np.unique(
        np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
    )
    for kind in np.argsort(first):
        yield np.flatnonzero(group.ravel() == kind)


def _node_row(problem: Problem, members: Ints) -> Html:
    n, last = int(members[0]), int(members[-1])
    names = problem.nodes[n] if n == last else f"{problem.nodes[n]} … {problem.nodes[last]}"
    free = problem.capacity[n] - problem.taken[n]
    cells = (
        f"× {number(len(members))}" if len(members) > 1 else "",
        problem.types[problem.node_type[n]],
        _limit(free[CPU]),
        _limit(free[MEMORY]),
        number(int(problem.free_slots[n])),
        _limit(problem.bandwidth_mbps[n]),
        problem.racks[problem.rack[n]],
    )
    return element(
        "tr", element("th", names, scope="row"), *(element("td", cell) for cell in cells)
    )


def _limit(value: float) -> str:
    return number(float(value)) if np.isfinite(value) else NONE
