"""Sessions: clicks of a user that follow each other within a gap, by the time they happened.

    headrace run sessions --batches 5 --option out=visits

Clicks come up to half a minute out of order, and one in fifty two hours late. A session is given
once the watermark has passed its last click by the gap, so nothing that is still accepted can
change it. `out` gets the folders sessions and late.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, numbers

START_S = 1_700_000_000
LATE_S, GAP_S = 60, 300
SHUFFLED_S, STRAGGLER_S = 30, 7200  # how far clicks are out of order, and the few that are late
STAMP = pa.timestamp("us", tz="UTC")
SESSION = pa.struct([("first", STAMP), ("last", STAMP), ("clicks", pa.int64())])
OPEN = Keyed(pa.schema([("user", pa.string()), ("sessions", pa.list_(SESSION))]), ("user",))
CLOSED = pa.schema([("user", pa.string()), *((f.name, f.type) for f in SESSION)])


def click_numbers(
    click: np.ndarray, users: int, every_s: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """User and second of generated clicks; a few users click most."""
    user = (users * draw(click, 0, seed) ** 2).astype(np.int64)
    early_s = SHUFFLED_S * draw(click, 1, seed) + STRAGGLER_S * (draw(click, 2, seed) < 0.02)
    return user, (START_S + STRAGGLER_S + click * every_s - early_s).astype(np.int64)


class Clicks:
    """Turns numbers into clicks."""

    def __init__(self, users: int, every_s: float, seed: int) -> None:
        self.users, self.every_s, self.seed = users, every_s, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        user, at_s = click_numbers(table["value"].to_numpy(), self.users, self.every_s, self.seed)
        names = pa.array([f"user-{n}" for n in user.tolist()])
        return pa.table({"user": names, "at": pa.array(at_s * 1_000_000).cast(STAMP)})


def join(row: dict[str, Any], state: dict[str, Any], timers: Any) -> None:
    """Add a click to the session it belongs to, or to a new one, or between two that it joins."""
    gap, found = timedelta(seconds=GAP_S), {"first": row["at"], "last": row["at"], "clicks": 1}
    held = state.setdefault(row["user"], {"user": row["user"], "sessions": []})
    apart: list[dict[str, Any]] = []
    for other in held["sessions"]:
        if other["first"] - found["last"] >= gap or found["first"] - other["last"] >= gap:
            apart.append(other)
            continue
        found = {
            "first": min(found["first"], other["first"]),
            "last": max(found["last"], other["last"]),
            "clicks": found["clicks"] + other["clicks"],
        }
    held["sessions"] = [*apart, found]
    timers.at(found["last"] + gap)


def close(user: str, time: datetime, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the sessions that are over."""
    if user not in state:
        return
    over = time - timedelta(seconds=GAP_S)
    sessions = sorted(state[user]["sessions"], key=lambda session: session["first"])
    yield from ({"user": user, **session} for session in sessions if session["last"] <= over)
    state[user]["sessions"] = [session for session in sessions if session["last"] > over]
    if not state[user]["sessions"]:
        del state[user]


def topology(
    *,
    clicks: int = 5000,
    users: int = 200,
    every_s: float = 1.0,
    seed: int = 0,
    tasks: int = 4,
    out: str | None = None,
) -> Topology:
    """Sessions of generated clicks, one every `every_s` seconds."""
    found = (
        Topology("sessions")
        .spout("click", numbers(clicks), Clicks(users, every_s, seed), tasks=2)
        .event_time("click", "at", late=LATE_S)
        .bolt("keep", lambda table: table, inputs={"click": "shuffle"}, tasks=tasks)
        .bolt(
            "session",
            join,
            form="tuple",
            inputs={"keep": {"grouping": "fields", "fields": ["user"]}},
            tasks=tasks,
            state=OPEN,
            schema=CLOSED,
            on_timer=close,
        )
    )
    if out is None:
        return found.sink("session", Console())
    return found.sink("session", Parquet(f"{out}/sessions")).sink(
        "click", Parquet(f"{out}/late"), stream="late"
    )


def in_time(at_s: np.ndarray, per_batch: int) -> tuple[np.ndarray, int]:
    """Which clicks came in time, and the watermark of the last batch."""
    batch = np.arange(len(at_s)) // per_batch
    latest = np.maximum.accumulate(at_s)[per_batch - 1 :: per_batch]
    marks = np.array([np.iinfo(np.int64).min, *(latest[:-1] - LATE_S).tolist()])
    return at_s >= marks[batch], int(marks[-1])


Found = tuple[dict[tuple[str, int], tuple[int, int]], int]


def expected(
    batches: int, *, clicks: int = 5000, users: int = 200, every_s: float = 1.0, seed: int = 0
) -> Found:
    """All sessions that are over, (user, first) -> last and clicks, and how many clicks were late.

    From the clicks of each user, sorted by time.
    """
    user, at_s = click_numbers(np.arange(batches * clicks), users, every_s, seed)
    taken, mark = in_time(at_s, clicks)
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for one in np.unique(user[taken]).tolist():
        times = np.sort(at_s[taken & (user == one)])
        for part in np.split(times, np.flatnonzero(np.diff(times) >= GAP_S) + 1):
            if part[-1] + GAP_S <= mark:
                found[f"user-{one}", int(part[0])] = int(part[-1]), len(part)
    return found, int((~taken).sum())


def result(out: str, batches: int) -> Found:
    """What a run has written, in the form of `expected`."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for row in (row for rows in read_batches(f"{out}/sessions", batches) for row in rows):
        first, last = (int(row[name].astimezone(UTC).timestamp()) for name in ("first", "last"))
        before = found.get((row["user"], first), (0, 0))  # one that came twice would count twice
        found[row["user"], first] = last, before[1] + row["clicks"]
    return found, sum(len(rows) for rows in read_batches(f"{out}/late", batches))
