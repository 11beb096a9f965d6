"""The section that compares schedulers: bars for what people ask first, a table for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.figures import NONE, duration, factor, number, percent, sustained_rate
from headrace.judge.report import Report
from headrace.page.markup import Html, element
from headrace.page.parts import scroll_table
from headrace.page.view import View
from headrace.planner.result import Outcome, Plan
from headrace.words import error_of, first_reason, plan_of, state


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure shown as bars, one per result."""

    title: str
    unit: str
    value: Callable[[Plan], float | None]
    words: Callable[[float], str]
    without: str = NONE  # what to say of a plan that has no such figure


@dataclass(frozen=True, slots=True)
class Column:
    """A figure in the table."""

    name: str
    meaning: str
    words: Callable[[Plan], str]


CHARTS = (
    Chart(
        "Traffic between nodes",
        "tuples/s, less is better",
        lambda plan: plan.report.inter_node_traffic,
        number,
    ),
    Chart("Nodes used", "", lambda plan: plan.report.nodes_used, number),
    Chart(
        "Sustained rate",
        "times the given rates, more is better",
        lambda plan: plan.report.max_rate,
        factor,
        "no limit",
    ),
    Chart("Time to plan", "", lambda plan: plan.seconds, duration),
)

COLUMNS = (
    Column(
        "between nodes",
        "tuples/s between nodes",
        lambda plan: number(plan.report.inter_node_traffic),
    ),
    Column(
        "between workers",
        "tuples/s between workers, those between nodes included",
        lambda plan: number(plan.report.inter_worker_traffic),
    ),
    Column(
        "network distance",
        "tuples/s times 1 within a node, 2 within a rack, 3 beyond",
        lambda plan: number(plan.report.network_distance),
    ),
    Column("nodes", "nodes used", lambda plan: number(plan.report.nodes_used)),
    Column("workers", "worker processes used", lambda plan: number(plan.report.workers_used)),
    Column(
        "max rate",
        "before a node or a task is full: times the given rates, or in tuples/s",
        lambda plan: sustained_rate(plan.report.max_rate, plan.absolute),
    ),
    Column("batch", "time of a micro-batch", lambda plan: _batch(plan.report)),
    Column(
        "balance",
        "standard deviation of the nodes' CPU utilisation",
        lambda plan: number(plan.report.balance),
    ),
    Column("cost", "price of the nodes used", lambda plan: number(plan.report.cost)),
    Column(
        "gap (bound)",
        "at most so far from the best possible, and how that is known",
        lambda plan: _gap(plan.report),
    ),
    Column("time", "to plan", lambda plan: duration(plan.seconds)),
)


def comparison(view: View) -> Html:
    """All results, best first."""
    if len(view.results) == 1:
        return element("section", element("h2", "All figures"), result_table(view))
    hatched = (
        "Hatched: the plan breaks a rule or is not complete, so its figures do not count; "
        "the table says why."
    )
    infeasible = any(not plan.report.feasible for plan in view.plans)
    return element(
        "section",
        element("h2", "Schedulers compared"),
        element("p", hatched, class_="lead") if infeasible else "",
        element("div", *(_chart(view, chart) for chart in CHARTS), class_="charts"),
        result_table(view),
    )


def _chart(view: View, chart: Chart) -> Html:
    largest = max((chart.value(plan) or 0.0 for plan in view.plans), default=0.0) or 1.0
    return element(
        "figure",
        element("figcaption", chart.title, element("small", chart.unit)),
        element("ul", *(_bar(view, chart, r, largest) for r in view.results), class_="chart"),
    )


def _bar(view: View, chart: Chart, result: Outcome, largest: float) -> Html:
    plan, reason = plan_of(result), first_reason(result)
    value = None if plan is None else chart.value(plan)
    text = "refused" if plan is None else chart.without if value is None else chart.words(value)
    bar = element("i", style=f"width:{100 * value / largest:.1f}%") if value else ""
    return element(
        "li",
        element("span", result.scheduler, class_="name"),
        element("span", bar, class_="bar"),
        element("span", text, class_="figure"),
        class_="infeasible" if reason else "best" if result is view.best else None,
        title=None if reason is None else f"{result.scheduler}: {reason}",
    )


def result_table(view: View) -> Html:
    """Every figure of every result, best first."""
    head = [element("th", "scheduler"), element("th", "verdict", class_="words")]
    head += [element("th", column.name, title=column.meaning) for column in COLUMNS]
    return scroll_table(head, (_row(view, result) for result in view.results))


def _row(view: View, result: Outcome) -> Html:
    plan, reason = plan_of(result), first_reason(result)
    name = element("th", result.scheduler, scope="row")
    if plan is None:
        error = error_of(result)
        fix = f" Fix: {error.fix}." if error is not None and error.fix else ""
        span = str(len(COLUMNS) + 1)
        refused = f"refused: {reason}.{fix}"
        return element("tr", name, element("td", refused, colspan=span, class_="bad words"))
    verdict = (
        element("td", "feasible", class_="good words")
        if reason is None
        else element("td", f"{state(result)}: {reason}", class_="bad words")
    )
    cells = (element("td", column.words(plan)) for column in COLUMNS)
    return element("tr", name, verdict, *cells, class_="best" if result is view.best else None)


def _batch(report: Report) -> str:
    return NONE if report.batch_seconds is None else duration(report.batch_seconds)


def _gap(report: Report) -> str:
    kind = f"{report.bound.kind}{', proven' if report.bound.proven else ''}"
    return NONE if report.gap is None else f"{percent(report.gap)} ({kind})"
