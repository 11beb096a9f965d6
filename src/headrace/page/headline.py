"""The first thing to read: what was planned where, how good the best plan is, what that means."""

from __future__ import annotations

from headrace.figures import NONE, factor, number, percent, plural, short
from headrace.page.markup import Html, element, join
from headrace.page.parts import alarm, tiles
from headrace.page.view import View
from headrace.words import (
    FIGURE_NAMES,
    Plan,
    choices,
    distance,
    first_reason,
    inside_share,
    speed,
    subject,
)

MOST_REASONS = 5


def headline(view: View) -> Html:
    """Title, subject and verdict."""
    best = view.best
    parts = (
        [_no_plan(view)] if best is None else [verdict(best), tiles_of(best), choices_line(best)]
    )
    return element(
        "header",
        element("h1", view.title),
        element("p", subject(view.problem), class_="subject"),
        *parts,
    )


def verdict(plan: Plan) -> Html:
    """What a plan means, in two sentences."""
    report, inside = plan.report, inside_share(plan.report)
    traffic = (
        "has no traffic to carry"
        if inside is None
        else f"keeps {percent(inside)} of the traffic inside nodes"
    )
    nodes = f"{number(report.nodes_used)} of {plural(len(plan.problem.nodes), 'node')}"
    rate = "nothing limits its rate" if report.max_rate is None else f"it sustains {speed(plan)}"
    limit = f"; bottleneck {report.bottleneck}" if report.bottleneck else ""
    meaning = distance(report)[1]
    return element(
        "p",
        element("strong", plan.scheduler),
        f" {traffic} and uses {nodes}; {rate}{limit}. {meaning}",
        class_="verdict",
    )


def tiles_of(plan: Plan) -> Html:
    """The figures that people ask for first."""
    report, inside = plan.report, inside_share(plan.report)
    rate = "no limit"
    if report.max_rate is not None:
        rate = short(report.max_rate) if plan.absolute else factor(report.max_rate)
    unit = "tuples/s over all spouts" if plan.absolute else "the given rates"
    cells = [
        (NONE if inside is None else percent(inside), "of the traffic stays inside nodes"),
        (
            f"{number(report.nodes_used)} of {number(len(plan.problem.nodes))}",
            f"nodes used, {plural(report.workers_used, 'worker')}",
        ),
        (rate, f"{unit}, sustained"),
    ]
    if report.cost is not None:
        cells.append((number(report.cost), "cost per time unit"))
    best_possible = f"distance to the best possible {FIGURE_NAMES[report.bound.of]}"
    cells.append((distance(report)[0], best_possible))
    return tiles(cells)


def choices_line(plan: Plan) -> Html:
    """The counts and machines that were chosen; nothing where both were given."""
    rows = choices(plan)
    if not rows:
        return Html()
    parts = (join([element("b", f"{name}: "), f"{chosen}. "]) for name, chosen in rows)
    return element("p", *parts, class_="aside")


def _no_plan(view: View) -> Html:
    first = view.results[:MOST_REASONS]
    reasons = (
        join([element("b", result.scheduler), f": {first_reason(result) or ''}"])
        for result in first
    )
    rest = len(view.results) - len(first)
    more = f"And {plural(rest, 'more scheduler')}; all reasons are below." if rest else ""
    return alarm("No feasible plan.", "The first reason of each scheduler:", reasons, more)
