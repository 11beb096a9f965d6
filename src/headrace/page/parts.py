"""Pieces that several sections and pages are made of."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.page.markup import Html, element


def tiles(cells: Iterable[tuple[str, str]]) -> Html:
    """Values in large type, each with what it is."""
    each = (element("div", element("dt", name), element("dd", value)) for value, name in cells)
    return element("dl", *each, class_="tiles")


def alarm(title: str, lead: str = "", items: Iterable[str] = (), more: str = "") -> Html:
    """A box that nobody overlooks: what is wrong, the reasons, and how many more there are."""
    reasons = [element("li", item) for item in items]
    return element(
        "div",
        element("p", element("strong", title), f" {lead}" if lead else ""),
        element("ul", *reasons) if reasons else "",
        element("p", more) if more else "",
        class_="alarm",
    )


def scroll_table(head: Iterable[Html], rows: Iterable[Html]) -> Html:
    """A table with one line of head cells, which scrolls by itself where it is too wide."""
    top = element("thead", element("tr", *head))
    return element("div", element("table", top, element("tbody", *rows)), class_="scroll")


def footer(made: str, command: str | None) -> Html:
    """What made the page, and the command to repeat it."""
    return element("footer", element("p", made), element("pre", command) if command else "")
