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

if TYPE_CHECKING:
    from headrace.advise.report import Advice

WIDTH, ROW, LEFT = 760.0, 9.0, 8.0
MOST_ROWS = 80  # stages of a timeline; the longest are kept


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
    yield _timeline(advice)
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
        words = f"{p.executors} executors of {p.cores} cores: {duration(p.wall_s)}, "
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
    head = [element("th", word, class_="words") for word in ("setting", "value", "why")]
    rows = (
        element(
            "tr",
            element("th", element("code", s.name), scope="row", class_="words"),
            element("td", element("code", s.value), class_="words"),
            element("td", s.reason, class_="words"),
        )
        for s in advice.settings
    )
    return element("section", element("h2", "Settings"), scroll_table(head, rows))


def _findings(advice: Advice) -> Html:
    if not advice.findings:
        return Html()
    head = [element("th", "seconds to save, at most")]
    head += [element("th", word, class_="words") for word in ("what", "where", "evidence")]
    rows = (
        element(
            "tr",
            element("td", NONE if f.seconds is None else number(f.seconds)),
            element("th", f.kind, scope="row", class_="words"),
            element("td", f.stage or "application", class_="words"),
            element("td", f.evidence, class_="words"),
        )
        for f in advice.findings
    )
    return element("section", element("h2", "What is slow"), scroll_table(head, rows))


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


def _timeline(advice: Advice) -> Html:
    """Stages over time: in the log above, replayed below it."""
    runs = {(run.id, run.attempt): run for run in advice.trace.stages}
    start, wall_s = advice.trace.start_ms, max(advice.trace.wall_s, advice.replayed.wall_s, 1e-3)
    stages = list(zip(advice.work.stages, advice.replayed.stages, strict=True))
    stages.sort(key=lambda pair: -(pair[1][1] - pair[1][0]))
    kept = sorted(stages[:MOST_ROWS], key=lambda pair: pair[1])
    height = ROW * 2.4 * len(kept) + 24

    def x(seconds: float) -> float:
        return LEFT + (WIDTH - 2 * LEFT) * min(max(seconds, 0.0), wall_s) / wall_s

    bars: list[Html] = []
    for row, (stage, (first, last)) in enumerate(kept):
        run = runs[(stage.id, stage.attempt)]
        began = (run.submitted_ms - start) / 1000
        ended = ((run.completed_ms or run.submitted_ms) - start) / 1000
        top = row * ROW * 2.4
        for offset, (a, b), colour, word in (
            (0.0, (began, ended), "c0", "log"),
            (ROW, (first, last), "c1", "replay"),
        ):
            text = f"stage {stage.id} ({run.name}), {word}: {duration(a)} to {duration(b)}"
            shape = {"x": x(a), "y": top + offset, "width": max(x(b) - x(a), 1.0), "height": ROW}
            bars.append(
                element("rect", element("title", text), **shape, style=f"fill: var(--{colour})")
            )
    label = element("text", f"0 to {duration(wall_s)}", x=LEFT, y=height - 6)
    left_out = len(stages) - len(kept)
    words = "Each stage in the log and, below it, replayed."
    if left_out:
        words += f" The {plural(left_out, 'shortest stage')} are left out."
    return element(
        "section",
        element("h2", "Timeline"),
        element("p", words, class_="lead"),
        element(
            "svg",
            element("title", "stages over time"),
            *bars,
            label,
            class_="trade-off",
            role="img",
            viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        ),
    )


def _unknown(advice: Advice) -> Html:
    lines = [*advice.unknown, *advice.trace.notes]
    if not lines:
        return Html()
    items = (element("li", line) for line in lines)
    return element("section", element("h2", "What this log cannot tell"), element("ul", *items))
