"""Many schedulers: what each of them found, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import DUST, NONE, duration, number, percent, sustained_rate
from headrace.planner import Yardstick, best, standing, yardstick
from headrace.planner.result import Outcome, Plan
from headrace.registry import Entry
from headrace.terminal.console import bullets, table
from headrace.words import FIGURE_NAMES, plan_of, plans_of, reasons

if TYPE_CHECKING:
    from headrace.simulate.result import Simulation

MOST_NAMES = 3  # in a sentence

Cell = Callable[[Plan], str]

COLUMNS: dict[str, Cell] = {  # where the tasks were given
    "inter-worker": lambda plan: number(plan.report.inter_worker_traffic),
    "nodes": lambda plan: number(plan.report.nodes_used),
    "workers": lambda plan: number(plan.report.workers_used),
    "max rate": lambda plan: sustained_rate(plan.report.max_rate, plan.absolute),
    "gap": lambda plan: _gap(plan),
    "time": lambda plan: duration(plan.seconds),
}
COUNTED: dict[str, Cell] = {  # where they were counted
    "max rate": COLUMNS["max rate"],
    "tasks": lambda plan: number(plan.problem.task_count),
    "cost": lambda plan: number(plan.report.cost),
    "nodes": COLUMNS["nodes"],
    "inter-node": lambda plan: number(plan.report.inter_node_traffic),
    "gap": COLUMNS["gap"],
    "time": COLUMNS["time"],
}


SIMULATED: dict[str, Callable[[Simulation], str]] = {
    "tuples/s": lambda found: number(found.throughput_per_s.mean),
    "p50 ms": lambda found: number(found.latency_ms["p50"]),
    "p99 ms": lambda found: number(found.latency_ms["p99"]),
    "stable": lambda found: "yes" if found.stable else "no",
}


def comparison(
    results: Sequence[Outcome],
    by: Yardstick | None = None,
    simulated: Mapping[str, Simulation] | None = None,
) -> RenderableType:
    """One row per scheduler, the best first, why some are out, and who wins at what."""
    chosen = by or yardstick("place", results[0].objective)
    winner = best(results, chosen)
    name = chosen.name.replace("_", " ")
    counted = any(plan.absolute for plan in plans_of(results))
    columns = COUNTED if counted else COLUMNS
    shown = [column for column in columns if not counted or column != name]
    extra = SIMULATED if simulated is not None else {}
    figures = (name, "ratio", *shown, *extra)
    grid = table("scheduler", "feasible", *figures, left=2, drop=_left_out_first(shown, extra))
    out: list[str] = []
    for result in ranked(results, chosen):
        plan = plan_of(result)
        cells = ["refused", *[NONE] * (len(shown) + 2)]
        if plan is not None:
            cells = _first_cells(plan, chosen, winner)
            cells += [columns[column](plan) for column in shown]
        ran = (simulated or {}).get(result.scheduler)
        cells += [NONE if ran is None else words(ran) for words in extra.values()]
        grid.add_row(result.scheduler, *cells, style="bold" if result is winner else None)
        broken = reasons(result)
        if broken:
            more = f" (+{len(broken) - 1})" if len(broken) > 1 else ""
            out.append(f"{result.scheduler}: {broken[0].splitlines()[0]}{more}")
    said = bullets("Refused or breaking a rule:", out, "dim")
    notes = bullets("Notes:", own_notes(plans_of(results)), "dim")
    return Group(grid, *said, *notes, Text(winners(results, chosen), "bold"))


def ranked(results: Sequence[Outcome], by: Yardstick) -> list[Outcome]:
    """The best first: feasible plans, then others, then refusals, each as they were asked."""

    def key(result: Outcome) -> tuple[object, ...]:
        plan = plan_of(result)
        if plan is None or not plan.report.feasible:
            return (2 if plan is None else 1,)
        return (0, *standing(plan, by))

    return sorted(results, key=key)


def winners(results: Iterable[Outcome], by: Yardstick) -> str:
    """Who is best at what, of those whose plans are feasible, in a sentence."""
    plans = [plan for plan in plans_of(results) if plan.report.feasible]
    if not plans:
        return "None has a feasible plan."
    if len(plans) == 1:
        return f"Only {plans[0].scheduler} has a feasible plan."
    contests: dict[str, tuple[str, Callable[[Plan], float | None]]] = {
        by.name: (f"best in {FIGURE_NAMES.get(by.name, by.name)}", by.value),
        "inter_node_traffic": ("least traffic between nodes", _figure("inter_node_traffic")),
        "max_rate": ("highest sustained rate", _figure("max_rate")),
        "nodes_used": ("fewest nodes", _figure("nodes_used")),
    }
    said: list[str] = []
    for name, (words, value) in contests.items():
        more = by.more if name == by.name else name == "max_rate"
        known = [(p, v) for p in plans if (v := value(p)) is not None]
        if not known:
            continue
        top = (max if more else min)(v for _, v in known)
        first = [p for p, v in known if abs(v - top) <= DUST * max(abs(top), 1.0)]
        if len(first) == len(plans):
            continue  # all are equal: nobody wins
        shown = _name_some([p.scheduler for p in first])
        figure = sustained_rate(top, first[0].absolute) if name == "max_rate" else number(top)
        said.append(f"{words}: {shown} ({figure})")
    sentence = "; ".join(said) or "all feasible plans are equally good"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _figure(name: str) -> Callable[[Plan], float | None]:
    return lambda plan: getattr(plan.report, name)


def _name_some(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def own_notes(plans: Sequence[Plan]) -> list[str]:
    """What schedulers remark on their plans, each remark once."""
    by_note: dict[str, list[str]] = {}
    for plan in plans:
        for note in plan.assignment.notes:
            by_note.setdefault(note, []).append(plan.scheduler)
    return [f"{', '.join(names)}: {note}" for note, names in by_note.items()]


def _left_out_first(shown: Sequence[str], extra: Mapping[str, object]) -> list[str]:
    """Columns that are left out where there is no room, in this order."""
    first = [name for name in ("workers", "inter-worker", "time") if name in shown]
    rest = [name for name in (*extra, *shown) if name not in first]
    return [*first, *reversed(rest)]


def _first_cells(plan: Plan, by: Yardstick, winner: Plan | None) -> list[str]:
    feasible = plan.report.feasible
    ratio = by.ratio(plan, winner) if winner is not None and feasible else None
    said = NONE if ratio is None else f"{ratio:.2f}"
    return ["yes" if feasible else "no", number(by.value(plan)), said]


def _gap(plan: Plan) -> str:
    gap = plan.report.gap if plan.report.bound.kind != "trivial" else None
    return NONE if gap is None else percent(gap)


def scheduler_list(found: Sequence[Entry]) -> RenderableType:
    """What schedulers there are."""
    columns = ("scheduler", "folder", "maturity", "what it does", "source")
    grid = table(*columns, left=5, prose=(3, 4), drop=("source", "folder", "maturity"))
    for e in found:
        grid.add_row(e.name, e.folder, e.maturity, e.summary, e.source)
    return grid
