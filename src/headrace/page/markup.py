"""HTML and SVG by small functions.

Whatever is not already markup is escaped, so no name from a file can become markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

VOID = frozenset({"meta"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | float | bool | None) -> Html:
    """An element. Attributes: `class_` is class, `_` is `-`; None and False are left out."""
    written = "".join(
        _attribute(key, value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    opening = f"<{tag}{written}>"
    return Html(opening if tag in VOID else f"{opening}{join(children)}</{tag}>")


def join(parts: Iterable[str]) -> Html:
    """Several pieces, one after another."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'
