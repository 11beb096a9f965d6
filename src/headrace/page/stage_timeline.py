"""The stages of a Spark application over time: in the log, and replayed below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.figures import duration, plural, short
from headrace.page.curve import round_ticks
from headrace.page.markup import Html, element

if TYPE_CHECKING:
    from headrace.advise.report import Advice

WIDTH, LEFT, RIGHT, TOP = 760.0, 64.0, 24.0, 26.0
BAR, ROW = 7.0, 18.0  # a stage has two bars, and some room to the next
MOST_ROWS = 60  # stages that are shown; the longest are kept
LEAST_SHARE = 0.003  # of the time: what takes less is not to be seen
COLOURS = (("c0", "in the log"), ("c1", "replayed"))


def draw_timeline(advice: Advice) -> Html:
    """A section with a row per stage, in the order they began."""
    stages = list(zip(advice.work.stages, advice.replayed.stages, strict=True))
    stages.sort(key=lambda pair: pair[1][0] - pair[1][1])
    seen_s = LEAST_SHARE * advice.replayed.wall_s
    long = [pair for pair in stages if pair[1][1] - pair[1][0] >= seen_s] or stages
    kept = sorted(long[:MOST_ROWS], key=lambda pair: pair[1])
    words = "Driver time is where no stage runs."
    if left_out := len(stages) - len(kept):
        words += f" {plural(left_out, 'short stage')} left out."
    named = (
        element("li", element("i", class_="swatch", style=f"color: var(--{colour})"), f" {word}")
        for colour, word in COLOURS
    )
    height = TOP + ROW * len(kept) + 8
    ticks = round_ticks(max(advice.trace.wall_s, advice.replayed.wall_s, 1e-3))

    def x(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(seconds, 0.0), ticks[-1]) / ticks[-1]

    drawn: list[Html] = []
    for tick in ticks:
        drawn.append(element("line", x1=x(tick), x2=x(tick), y1=TOP - 6, y2=height))
        drawn.append(element("text", short(tick), x=x(tick), y=TOP - 12, class_="across"))
    runs = {(run.id, run.attempt): run for run in advice.trace.stages}
    start = advice.trace.start_ms
    for row, (stage, replayed) in enumerate(kept):
        run, top = runs[(stage.id, stage.attempt)], TOP + row * ROW
        ended_ms = run.submitted_ms if run.completed_ms is None else run.completed_ms
        spans = (((run.submitted_ms - start) / 1000, (ended_ms - start) / 1000), replayed)
        again = f".{stage.attempt}" if stage.attempt else ""
        drawn.append(
            element("text", f"{stage.id}{again}", x=LEFT - 10, y=top + BAR + 4, class_="up")
        )
        for bar, ((colour, word), (first, last)) in enumerate(zip(COLOURS, spans, strict=True)):
            text = f"stage {stage.id}{again} ({run.name}), {word}: " + (
                f"{duration(first)} to {duration(last)}"
            )
            place = {"x": x(first), "y": top + bar * BAR}
            size = {"width": max(x(last) - x(first), 1.0), "height": BAR}
            drawn.append(
                element(
                    "rect", element("title", text), **place, **size, style=f"fill: var(--{colour})"
                )
            )
    return element(
        "section",
        element("h2", "Timeline"),
        element("p", f"Stages by their number over seconds. {words}", class_="lead"),
        element("ul", *named, class_="legend"),
        element(
            "svg",
            element("title", "stages over time"),
            *drawn,
            class_="trade-off",
            role="img",
            viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        ),
    )
