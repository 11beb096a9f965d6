"""Where tables and sentences are printed, and what they are made of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from headrace.figures import printable, shorten_middle

MOST_ROWS = 20  # of a table or a list; the rest is counted
WIDTH = 140  # columns where output is not a terminal and nothing says how wide it is
BETWEEN, AROUND = 3, 2  # columns between two columns of a table, and at its edges
PROSE = 24  # columns that words need at least

Cell = str | Text


class PrintableConsole(Console):
    """A console on which no character of a name can do anything but be seen."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def show(*parts: RenderableType) -> None:
    """Print to standard output; wide enough for tables when it is not a terminal."""
    console = PrintableConsole(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console = PrintableConsole(highlight=False, width=WIDTH)
    for part in parts:
        console.print(part, markup=False)


@dataclass(slots=True)
class Grid:
    """A table that leaves columns out where there is no room, and never breaks a figure."""

    columns: Sequence[str]
    left: frozenset[int]  # those that begin at their left edge; figures end at their right one
    prose: frozenset[int]  # those whose cells may be broken between words
    drop: Sequence[str]  # what to leave out first, second ..
    title: str | None = None
    caption: str | None = None
    rows: list[tuple[list[Text], str | None]] = field(
        default_factory=list[tuple[list[Text], str | None]]
    )

    def add_row(self, *cells: Cell, style: str | None = None) -> None:
        """One more row; cells are taken as they are, without markup."""
        texts = [cell if isinstance(cell, Text) else Text(printable(cell)) for cell in cells]
        self.rows.append((texts, style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self._within(options.max_width)
        room = options.max_width - self._least(shown[1:]) - BETWEEN if shown[1:] else None
        grid = Table(box=box.SIMPLE_HEAD, title=self.title, title_justify="left", pad_edge=False)
        grid.caption, grid.caption_justify = self._caption(shown), "left"
        for i in shown:
            side = "left" if i in self.left else "right"
            broken = i in self.prose
            grid.add_column(
                Text(self.columns[i]), justify=side, no_wrap=not broken, overflow="fold"
            )
        for cells, style in self.rows:
            first, *others = (cells[i] for i in shown)
            if room is not None and shown[0] not in self.prose and first.cell_len > room:
                first = Text(shorten_middle(first.plain, max(room, 1)))
            grid.add_row(first, *others, style=style)
        yield grid

    def _within(self, width: int) -> list[int]:
        """The columns that there is room for."""
        shown = list(range(len(self.columns)))
        for name in self.drop:
            if self._least(shown) <= width:
                break
            shown = [i for i in shown if self.columns[i] != name]
        return shown

    def _least(self, shown: Sequence[int]) -> int:
        """The least width of these columns."""
        return sum(map(self._width, shown)) + BETWEEN * (len(shown) - 1) + AROUND

    def _width(self, i: int) -> int:
        cells = [cell_len(self.columns[i]), *(cells[i].cell_len for cells, _ in self.rows)]
        return min(max(cells), PROSE) if i in self.prose else max(cells)

    def _caption(self, shown: Sequence[int]) -> str | None:
        gone = [name for i, name in enumerate(self.columns) if i not in shown and name]
        said = [self.caption] if self.caption else []
        return "; ".join([*said, *([f"no room for: {', '.join(gone)}"] if gone else [])]) or None


def table(
    *columns: str,
    title: str | None = None,
    left: int = 1,
    words: Iterable[int] = (),
    prose: Iterable[int] = (),
    drop: Sequence[str] | None = None,
) -> Grid:
    """A plain table: the first columns and those of words to the left, figures to the right.

    Cells of `prose` may be broken between words. Where there is no room, columns are left out in
    the order of `drop`; absent: from the right, all but the first two.
    """
    broken = frozenset(prose)
    go = tuple(reversed(columns[2:])) if drop is None else drop
    return Grid(columns, frozenset({*range(left), *words, *broken}), broken, go, title)


def count_rest(grid: Grid, rows: int, what: str = "") -> None:
    """Say below a table how many of its rows are not shown."""
    if rows > MOST_ROWS:
        grid.caption = f"and {rows - MOST_ROWS:,} more{what}"


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines of a name and what belongs to it; long lines go on below, whole items at a time."""

    lines: Sequence[tuple[str, Sequence[str]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        longest = max((cell_len(printable(name)) for name, _ in self.lines), default=0)
        width = min(longest, options.max_width // 2)
        for name, items in self.lines:
            label = shorten_middle(printable(name), width)
            head, line = label + " " * (width - cell_len(label)) + "  ", ""
            for i, item in enumerate(map(printable, items)):
                more = item + ("," if i + 1 < len(items) else "")
                if line and cell_len(f"{head}{line} {more}") > options.max_width:
                    yield Text(head + line, no_wrap=True, overflow="ignore")
                    head, line = " " * (width + 2), ""
                line += (" " if line else "") + more
            yield Text(head + line, no_wrap=True, overflow="ignore")


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
