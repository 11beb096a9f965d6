"""What commands print for people: tables, bars and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from headrace.demo import DemoRun
from headrace.errors import HeadraceError
from headrace.judge.diff import Diff, diff
from headrace.judge.explain import Costly, Explanation, costly_streams, explain_task
from headrace.judge.report import FIGURES, Report
from headrace.move.blocks import Class, Superclass
from headrace.move.change import Arrival
from headrace.move.safe_order import SafeOrder
from headrace.move.steps import Moves
from headrace.planner import Planned, best
from headrace.registry import Entry

MOST_ROWS = 20


def show(*parts: RenderableType) -> None:
    """Print to standard output; wide enough for tables when it is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=140)
    for part in parts:
        console.print(part)


def number(value: object) -> str:
    """A figure as a person reads it; a dash where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def table(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """A plain table: the first columns to the left, figures to the right."""
    grid = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for i, column in enumerate(columns):
        grid.add_column(column, justify="left" if i < left else "right", overflow="fold")
    return grid


def planned(result: Planned) -> RenderableType:
    """A plan: its headline, its nodes, what is wrong with it and what was assumed."""
    assert result.report is not None
    return Group(
        Text(headline(result)),
        node_table(result.report),
        *troubles(result.report),
        *notes(result.report),
    )


def headline(result: Planned) -> str:
    """The plan in a few sentences."""
    r = result.report
    assert r is not None
    inside = 1 - r.inter_node_traffic / r.total_traffic if r.total_traffic else 1.0
    words = [
        f"{result.scheduler}: {'feasible' if r.feasible else 'NOT feasible'}.",
        f"{number(r.inter_node_traffic)} of {number(r.total_traffic)} tuples/s cross between nodes ({inside:.1%} stay inside),",
        f"{number(r.inter_worker_traffic)} between workers.",
        f"{r.nodes_used} of {len(result.problem.nodes)} nodes, {r.workers_used} workers.",
    ]
    if r.max_rate is not None:
        unit = "tuples/s over all spouts" if result.absolute else "x the given rates"
        words.append(f"Sustains {number(r.max_rate)} {unit}; bottleneck {r.bottleneck}.")
    if r.batch_seconds is not None:
        words.append(f"A batch takes {number(r.batch_seconds)} s of work.")
    if result.absolute:
        words.append(f"Tasks: {', '.join(f'{name} {n}' for name, n in counts(result).items())}.")
    if result.machines:
        words.append(
            f"Machines: {', '.join(f'{n} {kind}' for kind, n in result.machines.items())}."
        )
    if r.cost is not None:
        words.append(f"Costs {number(r.cost)} per time unit.")
    if r.gap is not None and r.bound.kind != "trivial":
        words.append(
            f"At most {r.gap:.1%} from the best possible {r.bound.of} ({number(r.bound.value)}, {r.bound.kind})."
        )
    return " ".join(words)


def counts(result: Planned) -> dict[str, int]:
    """Tasks by component."""
    return {
        name: int(n)
        for name, n in zip(result.problem.components, result.problem.tasks.tolist(), strict=True)
    }


def node_table(report: Report) -> RenderableType:
    """The nodes in use, the fullest first."""
    grid = table("node", "tasks", "workers", "cpu", "", "memory MB", "out Mbit/s", "in Mbit/s")
    rows = sorted(report.nodes.items(), key=lambda item: -_filled(item[1]))
    for name, row in rows[:MOST_ROWS]:
        cpu, memory = _of(row, "cpu"), _of(row, "memory_mb")
        grid.add_row(
            escape(name), number(row["tasks"]), f"{row['workers']}/{row['slots']}", cpu, bar(_filled(row)), memory,
            number(row["out_mbps"]), number(row["in_mbps"]),
        )  # fmt: skip
    if len(rows) > MOST_ROWS:
        grid.caption = f"and {len(rows) - MOST_ROWS:,} more nodes"
    return grid


def _of(row: Any, resource: str) -> str:
    used, capacity = row[resource] + row[f"{resource}_taken"], row[f"{resource}_capacity"]
    return f"{number(used)} / {number(capacity) if capacity is not None else 'any'}"


def _filled(row: Any) -> float:
    capacity = row["cpu_capacity"]
    return (row["cpu"] + row["cpu_taken"]) / capacity if capacity else 0.0


def bar(part: float, width: int = 10) -> Text:
    """A bar that turns red above its end."""
    full = min(width, round(part * width))
    return Text("█" * full + "·" * (width - full), style="red" if part > 1 + 1e-9 else "green")


def troubles(report: Report) -> list[RenderableType]:
    """What is broken, and what was refused."""
    lines = [f"  {v.message}" for v in report.violations[:MOST_ROWS]]
    if len(report.violations) > MOST_ROWS:
        lines.append(f"  and {len(report.violations) - MOST_ROWS} more")
    parts: list[RenderableType] = []
    if lines:
        parts.append(Text("Broken rules:\n" + "\n".join(lines), style="red"))
    if report.unplaced:
        why = [
            f"  {name}: {error['message']}" + (f" ({error['fix']})" if error["fix"] else "")
            for name, error in report.unplaced.items()
        ]
        parts.append(Text("Not placed:\n" + "\n".join(why), style="red"))
    return parts


def notes(report: Report) -> list[RenderableType]:
    """Overrides and assumptions."""
    shown = [f"  {note}" for note in report.notes[:MOST_ROWS]]
    if len(report.notes) > MOST_ROWS:
        shown.append(f"  and {len(report.notes) - MOST_ROWS} more")
    return [Text("Notes:\n" + "\n".join(shown), style="dim")] if shown else []


def comparison(results: Sequence[Planned]) -> RenderableType:
    """Many schedulers, one table, and why some of them are out; the ratio is to the best feasible plan."""
    objective = results[0].objective
    figure = FIGURES[objective]
    winner = best(results)
    top = getattr(winner.report, figure) if winner else None
    grid = table(
        "scheduler",
        "feasible",
        figure.replace("_", " "),
        "ratio",
        "inter-worker",
        "nodes",
        "workers",
        "max rate",
        "gap",
        "seconds",
        left=2,
    )
    remarks: list[str] = []
    for result in results:
        r = result.report
        if r is None:
            grid.add_row(result.scheduler, "refused", *["-"] * 8)
            remarks.append(
                f"  {result.scheduler}: {result.refusal.message.splitlines()[0] if result.refusal else ''}"
            )
            continue
        value = getattr(r, figure)
        wrong = [v.message for v in r.violations] + [f"{name} not placed" for name in r.unplaced]
        if wrong:
            remarks.append(
                f"  {result.scheduler}: {wrong[0]}"
                + (f" (+{len(wrong) - 1})" if len(wrong) > 1 else "")
            )
        grid.add_row(
            result.scheduler, "yes" if r.feasible else "no", number(value), _ratio(value, top, objective) if r.feasible else "-",
            number(r.inter_worker_traffic), number(r.nodes_used), number(r.workers_used), number(r.max_rate),
            "-" if r.gap is None or r.bound.kind == "trivial" else f"{r.gap:.1%}", f"{result.seconds:.3f}",
            style="bold" if result is winner else None,
        )  # fmt: skip
    return Group(
        grid,
        *(
            [Text("Refused or breaking a rule:\n" + "\n".join(remarks), style="dim")]
            if remarks
            else []
        ),
    )


def _ratio(value: float | None, top: float | None, objective: str) -> str:
    if value is None or top is None:
        return "-"
    if value == top:
        return "1.00"
    a, b = (top, value) if objective == "rate" else (value, top)
    return f"{a / b:.2f}" if b else "inf"


def explanation(why: Explanation) -> RenderableType:
    """Why a task is where it is."""
    grid = table("other node", "tuples/s with it", "change if moved", "blocked by", left=1)
    grid.columns[3].justify = "left"
    for e in why.elsewhere[:MOST_ROWS]:
        grid.add_row(escape(e.node), number(e.traffic), f"{e.change:+.4g}", escape(e.blocked or ""))
    if len(why.elsewhere) > MOST_ROWS:
        grid.caption = f"and {len(why.elsewhere) - MOST_ROWS:,} more nodes"
    return Group(Text(f"{why.task} is on {why.node}, worker {why.worker}. {why.reason}"), grid)


def costly(streams: Sequence[Costly], most: int = 5) -> RenderableType:
    """The streams that cross most."""
    grid = table(
        "stream",
        "tuples/s",
        "crossing",
        "inside",
        title="Where the traffic between nodes comes from",
    )
    for s in streams[:most]:
        name = f"{s.source} -> {s.target}" + (f" ({s.stream})" if s.stream != "default" else "")
        inside = 1 - s.crossing / s.tuples_per_s if s.tuples_per_s else 1.0
        grid.add_row(escape(name), number(s.tuples_per_s), number(s.crossing), f"{inside:.1%}")
    return grid


def explained(result: Planned, task: str | None) -> list[RenderableType]:
    """Why a plan, or one of its tasks, is as it is."""
    assert result.assignment is not None
    if task is not None:
        return [explanation(explain_task(result.problem, result.assignment, task))]
    return [planned(result), costly(costly_streams(result.problem, result.assignment))]


def what_if(
    before: Sequence[Planned] | HeadraceError, after: Sequence[Planned], words: Sequence[str]
) -> RenderableType:
    """What a change does: every figure without it and with it."""
    title = f"What if {' '.join(words)}"
    if isinstance(before, HeadraceError):
        return Text(f"{title}\nWithout it there is no plan: {before.message}")
    if len(after) == 1 and len(before) == 1:
        return _one_change(before[0], after[0], title)
    figure = FIGURES[after[0].objective]
    grid = table("scheduler", f"{figure} without it", "with it", "change", title=escape(title))
    for a, b in zip(before, after, strict=True):
        values = [getattr(r.report, figure) if r.report is not None else "refused" for r in (a, b)]
        grid.add_row(a.scheduler, number(values[0]), number(values[1]), _delta(*values))
    return grid


def _one_change(before: Planned, after: Planned, title: str) -> RenderableType:
    assert before.report is not None
    assert before.assignment is not None
    assert after.report is not None
    assert after.assignment is not None
    change = diff(
        (before.problem, before.assignment, before.report),
        (after.problem, after.assignment, after.report),
    )
    grid = table("figure", "without it", "with it", "change", title=escape(title))
    rows = {
        name.replace("_", " "): values
        for name, values in change.figures.items()
        if values != (None, None)
    }
    old, new = counts(before), counts(after)
    rows |= {
        f"tasks of {escape(name)}": (old.get(name, 0), n)
        for name, n in new.items()
        if old.get(name, 0) != n
    }
    rented = {**(before.machines or {}), **(after.machines or {})}
    for kind in rented:
        pair = ((before.machines or {}).get(kind, 0), (after.machines or {}).get(kind, 0))
        rows |= {f"machines {escape(kind)}": pair} if pair[0] != pair[1] else {}
    for name, (a, b) in rows.items():
        grid.add_row(name, number(a), number(b), _delta(a, b))
    elsewhere = f"{len(change.moved):,} tasks stand elsewhere, {change.stayed:,} where they were."
    return Group(grid, Text(elsewhere))


def _delta(a: object, b: object) -> str:
    if isinstance(a, bool) or not (isinstance(a, int | float) and isinstance(b, int | float)):
        return "" if a == b else "other"
    if a == b:
        return "same"
    return f"{b - a:+.4g}" + (f" ({(b - a) / abs(a):+.1%})" if a else "")


def difference(change: Diff, transfer: Mapping[str, Any] | None = None) -> RenderableType:
    """What moves, what it costs, what it gains."""
    words = [
        f"{len(change.moved):,} tasks move to another node ({number(change.moved_mb)} MB of state), {change.stayed:,} stay"
    ]
    if change.worker_only:
        words.append(f"{change.worker_only:,} of them in another worker")
    for name, counts in (("new", change.added), ("gone", change.removed)):
        if counts:
            words.append(
                f"{name}: " + ", ".join(f"{n} {component}" for component, n in counts.items())
            )
    if transfer is not None and transfer["mb"]:
        words.append(
            f"headrace move transfers {number(transfer['mb'])} MB in {number(transfer['seconds'])} s"
        )
    figures = table("figure", "before", "after", "change")
    for name, (a, b) in change.figures.items():
        delta = (
            f"{b - a:+.4g}"
            if isinstance(a, int | float) and isinstance(b, int | float) and not isinstance(a, bool)
            else ""
        )
        figures.add_row(name.replace("_", " "), number(a), number(b), delta)
    moves = table("task", "from", "to", "state MB", left=3)
    for m in change.moved[:MOST_ROWS]:
        moves.add_row(escape(m.task), escape(m.source), escape(m.target), number(m.state_mb))
    if len(change.moved) > MOST_ROWS:
        moves.caption = f"and {len(change.moved) - MOST_ROWS:,} more"
    said = [
        Text(f"  {note}", style="dim")
        for note in (transfer["notes"] if transfer is not None else ())
    ]
    return Group(Text("; ".join(words) + "."), figures, *([moves] if change.moved else []), *said)


def moves(found: Moves, gains: Sequence[Arrival] = ()) -> RenderableType:
    """Steps of transfers: who sends to whom, how long it takes, and what is better after each."""
    words = f"{len(found.steps):,} steps, {number(found.units)} {found.unit} in {number(found.makespan)} {found.clock}; "
    words += f"nothing is quicker than {number(found.bound)} {found.clock}."
    if gains:
        words += f" A task stands still for at most {number(max(g.pause_s for g in gains))} s; "
        words += f"traffic between nodes falls by {number(sum(g.gain for g in gains))} tuples/s."
    grid = table("step", f"cost {found.clock}", "transfers", *(["gain"] if gains else []), left=0)
    grid.columns[2].justify = "left"
    for i, step in enumerate(found.steps[:MOST_ROWS]):
        shown = ", ".join(
            f"{t.source} -> {t.target}: {number(t.units)}" for t in step.transfers[:6]
        )
        more = f" and {len(step.transfers) - 6} more" if len(step.transfers) > 6 else ""
        grid.add_row(
            str(i + 1),
            number(step.cost),
            escape(shown + more),
            *([number(gains[i].gain)] if gains else []),
        )
    if len(found.steps) > MOST_ROWS:
        grid.caption = f"and {len(found.steps) - MOST_ROWS:,} more steps"
    return Group(Text(words), grid, *(Text(f"  {note}", style="dim") for note in found.notes))


def class_tables(classes: Sequence[Class], superclasses: Sequence[Superclass]) -> RenderableType:
    """Which node pairs exchange the same, and the chains of classes that targets receive as whole blocks."""
    pairs = table("class", "units of a pair", "pairs", title="Classes", left=0)
    pairs.columns[2].justify = "left"
    for c in classes:
        shown = " ".join(f"({p},{q})" for p, q in c.pairs[:16]) + (
            f" and {len(c.pairs) - 16:,} more" if len(c.pairs) > 16 else ""
        )
        pairs.add_row(str(c.number), str(c.units), shown)
    chains = table("superclass", "offset", "class: units", "units", title="Superclasses", left=0)
    chains.columns[2].justify = "left"
    for s in superclasses:
        chains.add_row(
            str(s.number),
            str(s.offset),
            ", ".join(f"{k}: {u}" for k, u in s.chain),
            str(sum(u for _, u in s.chain)),
        )
    return Group(pairs, chains)


def safe_order(order: SafeOrder) -> RenderableType:
    """Single moves, none of which overloads a node."""
    words = f"{len(order.moves):,} moves, {number(order.mb)} MB, {number(order.seconds)} s of transfers, longest pause {number(order.longest_pause_s)} s"
    words += f"; traffic between nodes {number(order.traffic_before)} -> {number(order.traffic_after)} tuples/s."
    grid = table("move", "task", "from", "to", "worker", "MB", "s", "gain", left=4)
    for i, m in enumerate(order.moves[:MOST_ROWS]):
        grid.add_row(
            f"{i + 1} {m.kind}",
            escape(m.task),
            escape(m.source or "-"),
            escape(m.target),
            str(m.worker),
            number(m.mb),
            number(m.seconds),
            number(m.gain),
        )
    if len(order.moves) > MOST_ROWS:
        grid.caption = f"and {len(order.moves) - MOST_ROWS:,} more"
    return Group(Text(words), grid, *(Text(f"  {note}", style="dim") for note in order.notes))


def live(ran: DemoRun) -> RenderableType:
    """A run before and after its new plan: measured, and predicted before it ran."""
    first, second = ran.plans
    columns = ran.before, ran.predicted, ran.after
    grid = table("per batch, median", first, f"{second}, predicted", f"{second}, measured")
    grid.add_row("seconds", *(number(batch.seconds) for batch in columns))
    grid.add_row("bytes between nodes", *(number(batch.remote_bytes) for batch in columns))
    grid.add_row(
        "  of all bytes",
        *(f"{batch.remote_bytes / max(1, ran.total_bytes):.0%}" for batch in columns),
    )
    for node in sorted({node for batch in columns for node in batch.cpu_ms}):
        grid.add_row(
            f"CPU of {node}, ms",
            *(number(b.cpu_ms[node]) if node in b.cpu_ms else "-" for b in columns),
        )
    words = f"{ran.batches} batches in one run, {ran.misplaced} tasks misplaced. Decision: {ran.decision.reason}."
    return Group(Text(""), grid, Text(words))


def registry(found: Sequence[Entry]) -> RenderableType:
    """What schedulers there are."""
    grid = table("scheduler", "folder", "maturity", "what it does", "source", left=5)
    for e in found:
        grid.add_row(e.name, e.folder, e.maturity, escape(e.summary), escape(e.source))
    return grid
