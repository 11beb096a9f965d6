"""The section that sets the schedulers side by side: bars for the figures people ask for first, a table for all of them."""

from __future__ import annotations

from collections.abc import Callable

from headrace.judge.report import Report
from headrace.page.markup import Html, element
from headrace.page.view import View, state, why
from headrace.page.words import NONE, duration, factor, number, percent, sustained
from headrace.planner import Planned

Figure = Callable[[Planned, Report], float | None]

CHARTS: tuple[tuple[str, str, Figure, Callable[[float], str]], ...] = (
    (
        "Traffic between nodes",
        "tuples/s, less is better",
        lambda _, report: report.inter_node_traffic,
        number,
    ),
    ("Nodes used", "", lambda _, report: report.nodes_used, number),
    (
        "Sustained rate",
        "times the given rates, more is better",
        lambda _, report: report.max_rate,
        factor,
    ),
    ("Time to plan", "", lambda result, _: result.seconds, duration),
)

COLUMNS: tuple[tuple[str, str, Callable[[Planned, Report], str]], ...] = (
    (
        "between nodes",
        "tuples/s between nodes",
        lambda _, report: number(report.inter_node_traffic),
    ),
    (
        "between workers",
        "tuples/s between workers, those between nodes included",
        lambda _, report: number(report.inter_worker_traffic),
    ),
    (
        "network distance",
        "tuples/s times 1 within a node, 2 within a rack, 3 beyond",
        lambda _, report: number(report.network_distance),
    ),
    ("nodes", "nodes used", lambda _, report: number(report.nodes_used)),
    ("workers", "worker processes used", lambda _, report: number(report.workers_used)),
    (
        "max rate",
        "before a node is full: times the given rates, or in tuples/s",
        lambda result, report: sustained(report.max_rate, result.absolute),
    ),
    (
        "batch",
        "time of a micro-batch",
        lambda _, report: NONE if report.batch_seconds is None else duration(report.batch_seconds),
    ),
    (
        "balance",
        "standard deviation of the nodes' CPU utilisation",
        lambda _, report: number(report.balance),
    ),
    ("cost", "price of the nodes used", lambda _, report: number(report.cost)),
    (
        "gap (bound)",
        "at most so far from the best possible, and how that is known",
        lambda _, report: _gap(report),
    ),
    ("time", "to plan", lambda result, _: duration(result.seconds)),
)


def comparison(view: View) -> Html:
    """All results, best first."""
    if len(view.results) == 1:
        return element("section", element("h2", "All figures"), _table(view))
    infeasible = any(r.report is not None and not r.report.feasible for r in view.results)
    return element(
        "section",
        element("h2", "Schedulers compared"),
        element(
            "p",
            "Hatched: the plan breaks a rule or is not complete, so its figures do not count; the table says why.",
            class_="lead",
        )
        if infeasible
        else "",
        element("div", *(_chart(view, *chart) for chart in CHARTS), class_="charts"),
        _table(view),
    )


def _chart(
    view: View, title: str, unit: str, figure: Figure, words: Callable[[float], str]
) -> Html:
    values = [None if r.report is None else figure(r, r.report) for r in view.results]
    largest = max((v for v in values if v is not None), default=0.0) or 1.0
    rows: list[Html] = []
    for result, value in zip(view.results, values, strict=True):
        reason = why(result)
        text = (
            "refused"
            if result.report is None
            else "no limit"
            if value is None and title == "Sustained rate"
            else ""
        )
        classes = " ".join(
            filter(None, ("infeasible" if reason else "", "best" if result is view.best else ""))
        )
        bar = element("i", style=f"width:{100 * (value or 0.0) / largest:.1f}%") if value else ""
        rows.append(
            element(
                "li",
                element("span", result.scheduler, class_="name"),
                element("span", bar, class_="bar"),
                element("span", text or (NONE if value is None else words(value)), class_="figure"),
                class_=classes or None,
                title=None if reason is None else f"{result.scheduler}: {reason}",
            )
        )
    return element(
        "figure",
        element("figcaption", title, element("small", unit)),
        element("ul", *rows, class_="chart"),
    )


def _table(view: View) -> Html:
    figures = (element("th", name, title=meaning) for name, meaning, _ in COLUMNS)
    head = element(
        "tr", element("th", "scheduler"), element("th", "verdict", class_="words"), *figures
    )
    return element(
        "div",
        element(
            "table",
            element("thead", head),
            element("tbody", *(_row(view, r) for r in view.results)),
        ),
        class_="scroll",
    )


def _row(view: View, result: Planned) -> Html:
    report, reason = result.report, why(result)
    name = element("th", result.scheduler, scope="row")
    if report is None:
        fix = (
            f" Fix: {result.refusal.fix}."
            if result.refusal is not None and result.refusal.fix
            else ""
        )
        return element(
            "tr",
            name,
            element(
                "td", f"refused: {reason}.{fix}", colspan=str(len(COLUMNS) + 1), class_="bad words"
            ),
        )
    verdict = (
        element("td", "feasible", class_="good words")
        if reason is None
        else element("td", f"{state(result)}: {reason}", class_="bad words")
    )
    cells = (element("td", words(result, report)) for _, _, words in COLUMNS)
    return element("tr", name, verdict, *cells, class_="best" if result is view.best else None)


def _gap(report: Report) -> str:
    kind = f"{report.bound.kind}{', proven' if report.bound.proven else ''}"
    return NONE if report.gap is None else f"{percent(report.gap)} ({kind})"
