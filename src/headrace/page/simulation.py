"""A simulation as a page: lines over time, and one row per node."""

from __future__ import annotations

from collections.abc import Sequence

import headrace
from headrace.figures import number, percent, short
from headrace.page.markup import Html, element
from headrace.page.parts import alarm, footer, scroll_table, tiles
from headrace.page.sheet import sheet
from headrace.simulate.result import Simulation
from headrace.words import simulated

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 520.0, 180.0, 52.0, 14.0, 24.0, 24.0
ROW_WIDTH, ROW_HEIGHT = 420.0, 26.0
MOST_NODES = 60
Values = Sequence[float | None]


def simulation_page(
    found: Sequence[Simulation], *, title: str | None = None, command: str | None = None
) -> str:
    """One HTML document; the same results give the same bytes."""
    first = found[0]
    name = title or f"{', '.join(first.problem.topologies[:3])}, simulated"
    made = f"headrace {headrace.__version__}, seed {first.seed}."
    return sheet(
        name,
        element("header", element("h1", name)),
        *(simulation_section(one) for one in found),
        footer(made, command),
    )


def simulation_section(found: Simulation) -> Html:
    """What one plan did: figures, lines over time and a row per node."""
    latency, rate = found.latency_ms, found.throughput_per_s
    limit = found.bottleneck
    cells = [
        (number(rate.mean), "tuples/s completed"),
        (number(latency["mean"]), "ms latency, mean"),
        (number(latency["p50"]), "ms, half are below"),
        (number(latency["p99"]), "ms, 99 % are below"),
        (number(found.pending), "pending at the end"),
        (number(found.total("lost")), "lost"),
    ]
    if limit is not None:
        cells.append((percent(limit[1]), f"busiest: {limit[0]}"))
    series = found.series
    at = series["at_s"]
    growing = alarm("Unstable.", "More arrives than is completed, so what is pending grows.")
    lines = [("p99", series["latency_ms"].get("p99", ())), ("mean", series["latency_ms"]["mean"])]
    return element(
        "section",
        element("h2", f"{found.scheduler}: {simulated(found)}"),
        "" if found.stable else growing,
        tiles(cells),
        element(
            "div",
            lines_over_time("tuples/s", at, _flows(found)),
            lines_over_time("latency, ms", at, [line for line in lines if len(line[1])]),
            lines_over_time("pending tuples", at, [("pending", series["pending"])]),
            class_="charts",
        ),
        element("h3", "Nodes over time"),
        _node_rows(found),
        *(element("p", note, class_="lead") for note in found.notes),
    )


def _flows(found: Simulation) -> list[tuple[str, Values]]:
    """What arrived and was completed in a second, and what was lost, if anything was."""
    series = found.series
    flows: list[tuple[str, Values]] = [
        ("arrived", series["arrived_per_s"]),
        ("completed", series["throughput_per_s"]),
    ]
    spans = found.tracks[0].spans.tolist()
    lost = [count / span for count, span in zip(series["lost"], spans, strict=True)]
    return [*flows, ("lost", lost)] if any(lost) else flows


def lines_over_time(name: str, at: Sequence[float], lines: Sequence[tuple[str, Values]]) -> Html:
    """Lines of one unit over the simulated seconds."""
    top = max((v for _, values in lines for v in values if v is not None), default=0.0) or 1.0
    end = at[-1]

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / end

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top

    marks = [0.0, top / 2, top]
    labels = [
        (w, f"var(--c{i})" if len(lines) > 1 else "var(--accent)") for i, (w, _) in enumerate(lines)
    ]
    return element(
        "svg",
        element("title", f"{name} over time"),
        *(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y(m), y2=y(m)) for m in marks),
        *(element("text", short(m), x=LEFT - 8, y=y(m) + 4, class_="up") for m in marks),
        *(
            element(
                "text", f"{number(end * i / 4)} s", x=x(end * i / 4), y=HEIGHT - 6, class_="across"
            )
            for i in range(5)
        ),
        element("text", name, x=2.0, y=12.0),
        *(
            element("text", words, x=110.0 + 80 * i, y=12.0, style=f"fill:{colour}")
            for i, (words, colour) in enumerate(labels if len(lines) > 1 else [])
        ),
        *(
            element("path", d=path(at, values, x, y), style=f"stroke:{colour}")
            for (_, values), (_, colour) in zip(lines, labels, strict=True)
        ),
        class_="trade-off",
        role="img",
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
    )


def path(at: Sequence[float], values: Values, x: object, y: object) -> str:
    """The line through the values that there are."""
    drawn, pen = "", "M"
    for moment, value in zip(at, values, strict=True):
        if value is None:
            pen = "M"
            continue
        drawn += f"{pen}{x(moment):.1f} {y(value):.1f}"  # pyright: ignore[reportCallIssue]
        pen = "L"
    return drawn or "M0 0"


def _node_rows(found: Simulation) -> Html:
    """One row per node: its busy cores over time, and figures."""
    series, problem = found.series["nodes"], found.problem
    head = [
        element("th", word, class_="strip" if word == "cores in use" else None)
        for word in ("node", "cores in use", "cpu", "waiting", "most waiting")
    ]
    rows: list[Html] = []
    for name, use in list(found.nodes.items())[:MOST_NODES]:
        n = problem.nodes.index(name)
        cores = series[name]["cores"]
        top = float(problem.capacity[n, 0]) / 100
        top = top if 0 < top < float("inf") else max([*cores, 1e-9])
        cpu = use["cpu"]
        rows.append(
            element(
                "tr",
                element("th", name, scope="row"),
                element("td", _strip(cores, top), class_="strip"),
                element("td", "–" if cpu is None else percent(cpu)),
                element("td", number(use["waiting"])),
                element("td", number(max(series[name]["waiting"]))),
            )
        )
    return scroll_table(head, rows)


def _strip(values: Sequence[float], top: float) -> Html:
    """A node's use as a filled line; the full height is all it has."""
    step = ROW_WIDTH / max(1, len(values))
    points = "".join(
        f"L{(i + 1) * step:.1f} {ROW_HEIGHT * (1 - min(1.0, v / top)):.1f}"
        for i, v in enumerate(values)
    )
    return element(
        "svg",
        element("title", "busy cores over time"),
        element(
            "path", d=f"M0 {ROW_HEIGHT:.0f}{points}V{ROW_HEIGHT:.0f}Z", style="fill:var(--flow)"
        ),
        preserveAspectRatio="none",
        role="img",
        viewBox=f"0 0 {ROW_WIDTH:.0f} {ROW_HEIGHT:.0f}",
    )
