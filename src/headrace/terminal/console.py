"""Where tables and sentences are printed, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

MOST_ROWS = 20  # of a table or a list; the rest is counted


def show(*parts: RenderableType) -> None:
    """Print to standard output; wide enough for tables when it is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=140)
    for part in parts:
        console.print(part)


def table(
    *columns: str, title: str | None = None, left: int = 1, words: Iterable[int] = ()
) -> Table:
    """A plain table: the first columns and those of words to the left, figures to the right."""
    grid = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    text = {*range(left), *words}
    for i, column in enumerate(columns):
        grid.add_column(column, justify="left" if i in text else "right", overflow="fold")
    return grid


def count_rest(grid: Table, rows: int, what: str = "") -> None:
    """Say below a table how many of its rows are not shown."""
    if rows > MOST_ROWS:
        grid.caption = f"and {rows - MOST_ROWS:,} more{what}"


def bullets(title: str, lines: Sequence[str], style: str) -> list[RenderableType]:
    """A title with lines below it, the first of them; nothing where there are none."""
    if not lines:
        return []
    rest = len(lines) - MOST_ROWS
    more = [f"and {rest:,} more"] if rest > 0 else []
    shown = [title, *(f"  {line}" for line in (*lines[:MOST_ROWS], *more))]
    return [Text("\n".join(shown), style=style)]


def remarks(notes: Iterable[str]) -> list[RenderableType]:
    """Notes below a table."""
    return [Text(f"  {note}", style="dim") for note in notes]
