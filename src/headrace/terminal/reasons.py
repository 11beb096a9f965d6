"""Why a plan, or one of its tasks, is as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import factor, number, percent, plural, signed
from headrace.judge.explain import Costly, Explanation, costly_streams, explain_task
from headrace.planner.result import Plan
from headrace.planner.suggesting import Suggestions
from headrace.terminal.console import MOST_ROWS, count_rest, table
from headrace.terminal.plans import plan

MOST_STREAMS = 5


def explanation(shown: Plan, task: str | None) -> RenderableType:
    """Why a plan, or one of its tasks, is as it is."""
    if task is not None:
        return _task(explain_task(shown.problem, shown.assignment, task))
    return Group(plan(shown), stream_table(costly_streams(shown.problem, shown.assignment)))


def _task(why: Explanation) -> RenderableType:
    grid = table(
        "other node",
        "tuples/s with it",
        "change if moved",
        "blocked by",
        words=[3],
        prose=[3],
        drop=("tuples/s with it",),
    )
    for e in why.elsewhere[:MOST_ROWS]:
        grid.add_row(e.node, number(e.traffic), signed(e.change), e.blocked or "")
    count_rest(grid, len(why.elsewhere), " nodes")
    return Group(Text(f"{why.task} is on {why.node}, worker {why.worker}. {why.reason}"), grid)


def stream_table(streams: Sequence[Costly]) -> RenderableType:
    """The streams that cross most."""
    title = "Where the traffic between nodes comes from"
    grid = table("stream", "tuples/s", "crossing", "inside", title=title)
    for s in streams[:MOST_STREAMS]:
        name = f"{s.source} -> {s.target}" + (f" ({s.stream})" if s.stream != "default" else "")
        inside = max(0.0, 1 - s.crossing / s.tuples_per_s) if s.tuples_per_s else 1.0
        grid.add_row(name, number(s.tuples_per_s), number(s.crossing), percent(inside))
    return grid


def suggestions(found: Suggestions, plan: Plan) -> RenderableType:
    """What would help: changes that were tried, and what the bound says of more machines."""
    if not found.asked:
        many = f"{plan.problem.task_count:,} tasks"
        return Text(f"No change was tried: {many} are too many for that.")
    columns = ("what would help", "between nodes", "sustained")
    grid = table(*columns, drop=("sustained",))
    for one in found.tried[:MOST_ROWS]:
        traffic = f"{number(one.traffic)} ({signed(one.traffic_change)})"
        faster = "" if one.rate_change is None else f" ({signed(one.rate_change)})"
        grid.add_row(one.change, traffic, factor(one.max_rate) + faster)
    said = [grid] if found.tried else []
    none = "none helps" if not found.tried else f"{len(found.tried)} of them help"
    words = f"{plural(found.asked, 'change was', 'changes were')} tried, {none}."
    return Group(*said, Text(f"{words} {price_words(found.prices)}".rstrip()))


def price_words(prices: Mapping[str, float]) -> str:
    """What the bound says of one more machine."""
    if not prices:
        return ""
    saves = {kind: price for kind, price in prices.items() if number(price) != "0"}
    if not saves:
        return "By the bound's prices, one more machine makes no better plan possible."
    each = ", ".join(f"{kind or 'machine'} {number(price)}" for kind, price in saves.items())
    return f"By the bound's prices, one more machine lowers the bound by about (tuples/s): {each}."
