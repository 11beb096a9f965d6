"""Unique visitors: how many different users have seen each page.

    headrace run unique-visitors --batches 5 --option out=visitors

Page views are lines of four fields with tabs between them: the page, the HTTP status, the zip code
and the user, as in the storm-benchmark suite. A view counts if its status is 200. All users of a
page are kept by the task that counts the page.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

FIELDS = 4
VISITS = Keyed(pa.schema([("page", pa.string()), ("user", pa.string())]), ("page",))


def view_numbers(
    view: np.ndarray, pages: int, users: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Page, user and status of generated views; low numbers are frequent, a tenth finds no page."""
    page, user = (
        (most * draw(view, column, seed) ** power).astype(np.int64)
        for column, (most, power) in enumerate(((pages, 3), (users, 2)))
    )
    return page, user, np.where(draw(view, 2, seed) < 0.1, 404, 200)


class Views:
    """Turns numbers into page views."""

    def __init__(self, pages: int, users: int, seed: int) -> None:
        self.pages, self.users, self.seed = pages, users, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        view = table["value"].to_numpy()
        page, user, status = view_numbers(view, self.pages, self.users, self.seed)
        zip_code = (10_000 + 90_000 * draw(view, 3, self.seed)).astype(np.int64)
        rows = zip(page.tolist(), status.tolist(), zip_code.tolist(), user.tolist(), strict=True)
        return pa.table(
            {"value": [f"http://example.com/{p}\t{s}\t{z}\tuser-{u}" for p, s, z, u in rows]}
        )


def read(table: pa.Table) -> pa.Table:
    """Page and user of the views that found their page; lines that are not views are left out."""
    fields = pc.split_pattern(table["value"], "\t")
    fields = fields.filter(pc.equal(pc.list_value_length(fields), FIELDS))
    page, status, user = (pc.list_element(fields, number) for number in (0, 1, 3))
    return pa.table({"page": page, "user": user}).filter(pc.equal(status, "200"))


def unique(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The number of visitors of every page that came, and all visits, each once."""
    every = (
        pa.concat_tables([state, table.select(["page", "user"])])
        .group_by(["page", "user"])
        .aggregate([])
    )
    fresh = every.join(table.select(["page"]), "page", join_type="left semi")
    return fresh.group_by("page").aggregate([("user", "count")]).rename_columns(
        ["page", "visitors"]
    ), every


def topology(
    *,
    views: int = 10_000,
    pages: int = 500,
    users: int = 5000,
    seed: int = 0,
    tasks: int = 4,
    text: str | None = None,
    out: str | None = None,
) -> Topology:
    """Unique visitors over generated views, or over lines of new files in a folder (`text`)."""
    found = Topology("unique-visitors")
    if text is None:
        found = found.spout("view", numbers(views), Views(pages, users, seed), tasks=2)
    else:
        found = found.spout("view", files(text, format="text", schema="value string"), tasks=2)
    found = found.bolt("read", read, inputs={"view": "shuffle"}, tasks=tasks)
    found = found.bolt(
        "unique",
        unique,
        inputs={"read": {"grouping": "fields", "fields": ["page"]}},
        tasks=tasks,
        state=VISITS,
    )
    return found.sink("unique", Console() if out is None else Parquet(out))


def expected(
    batches: int, *, views: int = 10_000, pages: int = 500, users: int = 5000, seed: int = 0
) -> list[dict[str, int]]:
    """After each batch the visitors of the pages seen in it, from the numbers alone."""
    page, user, status = view_numbers(np.arange(batches * views), pages, users, seed)
    found: list[dict[str, int]] = []
    for batch in range(batches):
        end = (batch + 1) * views
        ok = status[:end] == 200
        seen = np.unique(np.stack([page[:end][ok], user[:end][ok]]), axis=1)[0]
        here = np.unique(page[batch * views : end][status[batch * views : end] == 200])
        found.append({f"http://example.com/{p}": int((seen == p).sum()) for p in here.tolist()})
    return found


def result(out: str, batches: int) -> list[dict[str, int]]:
    """What a run has written, in the form of `expected`."""
    found: list[Counter[str]] = []
    for rows in read_batches(out, batches):
        found.append(Counter())
        for row in rows:
            found[-1][row["page"]] += row["visitors"]  # a row that came twice would count twice
    return [dict(counts) for counts in found]
