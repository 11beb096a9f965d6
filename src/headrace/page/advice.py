"""Advice on a Spark application as HTML: the curve, the settings, the findings and a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import headrace
from headrace.figures import NONE, duration, number, plural
from headrace.page.curve import Dot, draw_curve
from headrace.page.fragment import fragment
from headrace.page.markup import Html, element
from headrace.page.parts import footer, scroll_table, tiles
from headrace.page.sheet import sheet
from headrace.page.stage_timeline import draw_timeline

if TYPE_CHECKING:
    from headrace.advise.report import Advice


def advice_page(advice: Advice, *, title: str | None = None, command: str | None = None) -> str:
    """One HTML document; the same advice gives the same bytes."""
    name = title or advice.trace.name
    made = f"headrace {headrace.__version__}, replay within {advice.error:.1%} of the log."
    return sheet(name, *advice_sections(advice, name), footer(made, command))


def advice_fragment(advice: Advice) -> str:
    """The same for a notebook."""
    return fragment(*advice_sections(advice, advice.trace.name))


def advice_sections(advice: Advice, name: str) -> Iterator[Html]:
    """The curve, the settings, the findings, the timeline, one after another."""
    yield _headline(advice, name)
    if len(advice.curve) > 1:
        yield _curve(advice)
    yield _settings(advice)
    yield _findings(advice)
    if advice.streams:
        yield _streams(advice)
    yield draw_timeline(advice)
    yield _unknown(advice)


def _headline(advice: Advice, name: str) -> Html:
    shape, chosen = advice.shape, advice.chosen
    cells = [
        (duration(advice.trace.wall_s), "in the log"),
        (duration(advice.replayed.wall_s), "replayed"),
        (f"{shape.executors} × {shape.cores}", "executors × cores"),
        (f"{chosen.executors} × {chosen.cores}", "advised"),
        (duration(chosen.wall_s), "expected"),
    ]
    lead = f"{advice.trace.id}, Spark {advice.trace.version}."
    return element("section", element("h1", name), element("p", lead, class_="lead"), tiles(cells))


def _curve(advice: Advice) -> Html:
    priced = advice.chosen.cost is not None
    unit = "cost" if priced else "core-hours"
    points = sorted(advice.curve, key=lambda p: (p.spent, p.wall_s))
    best = float("inf")
    dots: list[Dot] = []
    for p in points:
        size = f"{plural(p.executors, 'executor')} of {plural(p.cores, 'core')}"
        words = f"{size}: {duration(p.wall_s)}, "
        beaten = p.wall_s >= best and p != advice.chosen
        best = min(best, p.wall_s)
        spent = f"{number(p.spent)} {unit}"
        dots.append(Dot(p.spent, p.wall_s, words + spent, p == advice.chosen, beaten))
    head = [element("th", word) for word in ("executors", "cores each", "seconds", "core-hours")]
    head += [element("th", "cost")] if priced else []
    rows = (
        element(
            "tr",
            element("th", str(p.executors), scope="row"),
            element("td", str(p.cores)),
            element("td", number(p.wall_s)),
            element("td", number(p.core_hours)),
            element("td", NONE if p.cost is None else number(p.cost)) if priced else "",
            class_="best" if p == advice.chosen else None,
        )
        for p in advice.curve
    )
    return element(
        "section",
        element("h2", "Time against cost"),
        element("p", f"The large point is advised: {advice.why}.", class_="lead"),
        draw_curve(dots, "time against cost", unit, "seconds"),
        scroll_table(head, rows),
    )


def _settings(advice: Advice) -> Html:
    rows = (
        _reason(element("code", f"{s.name} = {s.value}"), element("span", s.reason))
        for s in advice.settings
    )
    return element("section", element("h2", "Settings"), element("dl", *rows, class_="reasons"))


def _findings(advice: Advice) -> Html:
    if not advice.findings:
        return Html()
    rows = (
        _reason(
            element("b", f.kind),
            " ",
            element("small", f"up to {duration(f.seconds)}" if f.seconds else ""),
            element("div", "application" if f.stage is None else f"stage {f.stage}"),
            element("span", f.evidence),
        )
        for f in advice.findings
    )
    return element(
        "section",
        element("h2", "What is slow"),
        element("p", "By the time it could save at most; savings overlap.", class_="lead"),
        element("dl", *rows, class_="reasons"),
    )


def _reason(*parts: Html | str) -> Html:
    """What, and behind it why; below it where the page is narrow."""
    *what, why = parts
    return element("div", element("dt", *what), element("dd", why))


def _streams(advice: Advice) -> Html:
    names = ("query", "batches", "batch s", "every s", "rows/s", "sustains rows/s", "state rows")
    rows = (
        element(
            "tr",
            element("th", s.name, scope="row"),
            element("td", number(s.batches)),
            *(
                element("td", NONE if value is None else number(value))
                for value in (
                    s.batch_s,
                    s.interval_s,
                    s.rows_per_s,
                    s.sustained_rows_per_s,
                    s.state_rows,
                )
            ),
        )
        for s in advice.streams
    )
    return element(
        "section",
        element("h2", "Streaming queries"),
        scroll_table([element("th", name) for name in names], rows),
    )


def _unknown(advice: Advice) -> Html:
    lines = [*advice.unknown, *advice.trace.notes]
    if not lines:
        return Html()
    items = (element("li", line) for line in lines)
    return element("section", element("h2", "What this log cannot tell"), element("ul", *items))
