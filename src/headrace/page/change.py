"""Two plans side by side: before and after a move, without and with a what-if."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import HeadraceError
from headrace.figures import amounts, change, figure, number, plural
from headrace.judge.diff import Diff, Moved, diff
from headrace.page.markup import Html, element, join
from headrace.page.node import bar
from headrace.page.parts import alarm, scroll_table
from headrace.page.view import View
from headrace.planner.result import Plan

MOST_NODES, MOST_WAYS, MOST_TASKS = 40, 40, 12
Row = Mapping[str, float | None]


def what_if(view: View) -> Html:
    """What the change does to the plan that is shown; nothing where none was tried."""
    before, shown = view.before, view.shown
    if before is None or shown is None:
        return Html()
    if isinstance(before, HeadraceError):
        refused = alarm("Without the change there is no plan.", before.message)
        return element("section", element("h2", "Without and with it"), refused)
    same = [plan for plan in before if plan.scheduler == shown.scheduler]
    if not same:
        return Html()
    return before_and_after(same[0], shown, "Without and with it", ("without", "with"))


def before_and_after(
    old: Plan,
    new: Plan,
    title: str = "Before and after",
    names: tuple[str, str] = ("before", "after"),
) -> Html:
    """Every figure, every node and every task that moves, in both plans."""
    found = diff(
        (old.problem, old.assignment, old.report), (new.problem, new.assignment, new.report)
    )
    return element(
        "section",
        element("h2", title),
        element("p", _lead(found), class_="lead"),
        _figures(found, names),
        _nodes(old, new, names),
        _moved(found),
    )


def _lead(found: Diff) -> str:
    words = [f"{plural(len(found.moved), 'task is', 'tasks are')} on another node"]
    words.append(f"{number(found.stayed)} stay")
    for word, counts in (("new", found.added), ("gone", found.removed)):
        if counts:
            words.append(f"{word}: {amounts(counts)}")
    return f"{', '.join(words)}; {number(found.moved_mb)} MB of state move."


def _figures(found: Diff, names: tuple[str, str]) -> Html:
    head = (element("th", name) for name in ("figure", *names, "change"))
    rows = (
        element(
            "tr",
            element("th", name.replace("_", " "), scope="row"),
            *(element("td", text) for text in (figure(a), figure(b), change(a, b))),
        )
        for name, (a, b) in found.figures.items()
        if (a, b) != (None, None)
    )
    return scroll_table(head, rows)


def _nodes(old: Plan, new: Plan, names: tuple[str, str]) -> Html:
    """Tasks and CPU of every node that either plan uses, two bars for each."""
    used = list(dict.fromkeys([*old.report.nodes, *new.report.nodes]))
    head = [element("th", "node"), *(element("th", f"tasks {name}") for name in names)]
    head += [element("th", "CPU", class_="words"), element("th", "")]
    rows: list[Html] = []
    for node in used[:MOST_NODES]:
        both = old.report.nodes.get(node), new.report.nodes.get(node)
        cells = (element("td", "–" if row is None else number(row["tasks"])) for row in both)
        loads = [_load(row, name) for row, name in zip(both, names, strict=True)]
        drawn = element("td", *(load for load, _ in loads), class_="bars two")
        said = element("td", f"{loads[0][1]} → {loads[1][1]}")
        rows.append(element("tr", element("th", node, scope="row"), *cells, drawn, said))
    rest = len(used) - MOST_NODES
    more = element("p", f"And {plural(rest, 'more node')}.", class_="aside") if rest > 0 else ""
    return join([element("h3", "Nodes"), scroll_table(head, rows), more])


def _load(row: Row | None, name: str) -> tuple[Html, str]:
    """The bar of a node in one plan, and its CPU in words."""
    if row is None:
        return element("span", class_="bar none"), "idle"
    used, taken, capacity = row["cpu"] or 0.0, row["cpu_taken"] or 0.0, row["cpu_capacity"]
    said = number(float(f"{used + taken:.4g}"))
    if capacity is None:
        return element("span", class_="bar none"), said
    return element("span", bar(used, taken, capacity), title=f"{name}: {said}"), said


def _moved(found: Diff) -> Html:
    """The tasks that move, those that go the same way together."""
    ways: dict[tuple[str, str], list[Moved]] = {}
    for moved in found.moved:
        ways.setdefault((moved.source, moved.target), []).append(moved)
    if not ways:
        return Html()
    items = [element("li", _way(*way, group)) for way, group in [*ways.items()][:MOST_WAYS]]
    rest = len(ways) - MOST_WAYS
    more = [element("li", f"and {number(rest)} more ways")] if rest > 0 else []
    return join([element("h3", "Tasks that move"), element("ul", *items, *more)])


def _way(source: str, target: str, group: list[Moved]) -> str:
    mb = sum(moved.state_mb for moved in group)
    names = ", ".join(moved.task for moved in group[:MOST_TASKS])
    rest = f" and {number(len(group) - MOST_TASKS)} more" if len(group) > MOST_TASKS else ""
    return f"{source} → {target}: {names}{rest}" + (f" ({number(mb)} MB)" if mb else "")
