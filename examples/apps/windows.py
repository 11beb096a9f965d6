"""Windows: how often each page was seen per minute, by the time it was seen.

    headrace run windows --batches 5 --option out=views                      # tumbling
    headrace run windows --batches 5 --option out=views --option slide_s=20  # sliding

Every view counts in each window that it falls into: one, or with a shorter slide several. A window
is given once the watermark has passed its end. `out` gets the folders windows and late.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, numbers

START_S = 1_700_000_000
LATE_S, SHUFFLED_S, STRAGGLER_S = 30, 20, 600  # accepted, usual, and of one view in fifty
STAMP = pa.timestamp("us", tz="UTC")
WINDOW = ("page", "start")
COUNTS = Keyed(pa.schema([("page", pa.string()), ("start", STAMP), ("views", pa.int64())]), WINDOW)


def view_numbers(
    view: np.ndarray, pages: int, every_s: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Page and second of generated views."""
    page = (pages * draw(view, 0, seed) ** 2).astype(np.int64)
    early_s = SHUFFLED_S * draw(view, 1, seed) + STRAGGLER_S * (draw(view, 2, seed) < 0.02)
    return page, (START_S + STRAGGLER_S + view * every_s - early_s).astype(np.int64)


class Views:
    """Turns numbers into views."""

    def __init__(self, pages: int, every_s: float, seed: int) -> None:
        self.pages, self.every_s, self.seed = pages, every_s, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        page, at_s = view_numbers(table["value"].to_numpy(), self.pages, self.every_s, self.seed)
        names = pa.array([f"/page/{n}" for n in page.tolist()])
        return pa.table({"page": names, "at": pa.array(at_s * 1_000_000).cast(STAMP)})


class Assign:
    """Gives each view once for every window that it falls into."""

    def __init__(self, size_s: int, slide_s: int) -> None:
        self.size_s, self.slide_s = size_s, slide_s

    def __call__(self, table: pa.Table) -> pa.Table:
        at_s = table["at"].cast(pa.int64()).to_numpy() // 1_000_000
        row, start_s = windows_of(at_s, self.size_s, self.slide_s)
        pages = table["page"].take(pa.array(row))
        return pa.table({"page": pages, "start": pa.array(start_s * 1_000_000).cast(STAMP)})


def windows_of(at_s: np.ndarray, size_s: int, slide_s: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of (row, start of a window that it falls into), row after row."""
    back = np.arange(-(-size_s // slide_s)) * slide_s
    start_s = (at_s // slide_s * slide_s)[:, None] - back
    row, _ = inside = np.nonzero(start_s + size_s > at_s[:, None])
    return row, start_s[inside]


class Count:
    """Counts views per page and window, and has each window end at its time."""

    def __init__(self, size_s: int) -> None:
        self.size_s = size_s

    def __call__(self, table: pa.Table, state: pa.Table, timers: Any) -> tuple[None, pa.Table]:
        fresh = table.group_by(list(WINDOW)).aggregate([("page", "count")])
        fresh = fresh.select([*WINDOW, "page_count"]).rename_columns([*WINDOW, "views"])
        length = pa.scalar(self.size_s * 1_000_000, pa.duration("us"))
        timers.at_rows(fresh.append_column("end", pc.add(fresh["start"], length)), "end")
        both = pa.concat_tables([state, fresh]).group_by(list(WINDOW))
        return None, both.aggregate([("views", "sum")]).rename_columns([*WINDOW, "views"])


def close(due: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Give the windows that are over, and forget them."""
    over = due.select(list(WINDOW))
    return tuple(
        state.join(over, list(WINDOW), join_type=kind).select(state.column_names)
        for kind in ("left semi", "left anti")
    )  # pyright: ignore[reportReturnType]


def topology(
    *,
    views: int = 5000,
    pages: int = 50,
    every_s: float = 0.1,
    size_s: int = 60,
    slide_s: int = 60,
    seed: int = 0,
    tasks: int = 4,
    out: str | None = None,
) -> Topology:
    """Counts of generated views, one every `every_s` seconds."""
    found = (
        Topology("windows")
        .spout("view", numbers(views), Views(pages, every_s, seed), tasks=2)
        .event_time("view", "at", late=LATE_S)
        .bolt("assign", Assign(size_s, slide_s), inputs={"view": "shuffle"}, tasks=tasks)
        .bolt(
            "count",
            Count(size_s),
            inputs={"assign": {"grouping": "fields", "fields": list(WINDOW)}},
            tasks=tasks,
            state=COUNTS,
            on_timer=close,
        )
    )
    if out is None:
        return found.sink("count", Console())
    return found.sink("count", Parquet(f"{out}/windows")).sink(
        "view", Parquet(f"{out}/late"), stream="late"
    )


Found = tuple[dict[tuple[str, int], int], int]


def expected(
    batches: int,
    *,
    views: int = 5000,
    pages: int = 50,
    every_s: float = 0.1,
    size_s: int = 60,
    slide_s: int = 60,
    seed: int = 0,
) -> Found:
    """All windows that are over, (page, start) -> views, and how many views were late."""
    page, at_s = view_numbers(np.arange(batches * views), pages, every_s, seed)
    latest = np.maximum.accumulate(at_s)[views - 1 :: views]
    marks = [np.iinfo(np.int64).min, *(latest[:-1] - LATE_S).tolist()]
    taken = at_s >= np.repeat(marks, views)
    found: Counter[tuple[str, int]] = Counter()
    for one, at in zip(page[taken].tolist(), at_s[taken].tolist(), strict=True):
        for start in range(at // slide_s * slide_s, at - size_s, -slide_s):
            if start + size_s <= marks[-1]:
                found[f"/page/{one}", start] += 1
    return dict(found), int((~taken).sum())


def result(out: str, batches: int, *, slide_s: int = 60) -> Found:
    """What a run has written, in the form of `expected`."""
    found: Counter[tuple[str, int]] = Counter()
    for row in (row for rows in read_batches(f"{out}/windows", batches) for row in rows):
        # A window that came twice would count twice.
        found[row["page"], int(row["start"].astimezone(UTC).timestamp())] += row["views"]
    return dict(found), sum(len(rows) for rows in read_batches(f"{out}/late", batches))
