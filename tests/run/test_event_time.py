"""Event time: watermarks, timers, a time to live, late rows, and calls without rows."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import InvalidInput
from headrace.run import Callback, Keyed, Topology
from headrace.run.batches import BoltFailed
from headrace.run.rehearsal import rehearse
from headrace.run.sources import numbers
from tests.run.applications import app, numbered, run
from tests.run.topologies import settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STAMP = pa.timestamp("us", tz="UTC")
LAST = Keyed(pa.schema([("key", pa.string()), ("at", STAMP)]), ("key",))
BY_KEY = {"grouping": "fields", "fields": ["key"]}
COUNTS = ((1,), (2,), (3,), (7,), (3, 1, 7))


def events(*rows: tuple[str, float]) -> pa.Table:
    """Keys, and the minutes after noon at which they came."""
    times = [NOON + timedelta(minutes=minute) for _, minute in rows]
    return pa.table({"key": [key for key, _ in rows], "at": pa.array(times, STAMP)})


@pytest.mark.parametrize("counts", [*(((n,),) for n in (1, 2, 3, 7)), COUNTS], ids=str)
@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("sessions", {"clicks": 700, "users": 25, "every_s": 5.0}, {}),
        ("windows", {"views": 600, "pages": 9, "every_s": 0.5}, {}),
        ("windows", {"views": 600, "pages": 9, "every_s": 0.5}, {"slide_s": 25}),
    ],
    ids=["sessions", "tumbling", "sliding"],
)
def test_sessions_and_windows_equal_their_batch_computation(
    name: str, options: dict[str, Any], shape: dict[str, Any], counts: Sequence[Sequence[int]],
    tmp_path: Path,
) -> None:  # fmt: skip
    module, topology = app(name, tmp_path, **options, **shape, seed=6)
    inputs = numbered(topology, 6, options.get("clicks") or options["views"])
    out = run(topology, inputs, tmp_path, counts)
    for batches in (1, 2, 4, 6):
        found = module.result(out, batches, **shape)
        assert found == module.expected(batches, **options, **shape, seed=6)
    assert len(found[0]) > 30
    assert found[1] > 20  # late


def remember(row: dict[str, Any], state: dict[str, Any], timers: Any) -> None:
    state[row["key"]] = {"key": row["key"], "at": row["at"]}
    timers.at(row["at"] + timedelta(minutes=10))


def tell(key: str, time: datetime, state: dict[str, Any], batch: int) -> Iterator[dict[str, Any]]:
    yield {"batch": batch, "key": key, "time": time, "held": key in state}


def timed(came: list[Any], **others: Any) -> Topology:
    bolt: dict[str, Any] = {"on_timer": tell, "form": "tuple", "state": LAST, "tasks": 3, **others}
    return (
        Topology("t")
        .spout("event", numbers(1))
        .event_time("event", "at", late="1 minute")
        .bolt("remember", remember, inputs={"event": BY_KEY}, **bolt)
        .sink("remember", Callback(lambda batch, table: came.extend(table.to_pylist())))
    )


def test_a_timer_fires_once_the_watermark_has_passed_also_where_no_row_comes(
    tmp_path: Path,
) -> None:
    came: list[Any] = []
    inputs = [
        events(("a", 0), ("b", 5), ("c", 5)),  # watermark then: 12:04
        events(("d", 10)),  # 12:09
        events(("d", 16)),  # 12:15: those of a, b and c have passed, and only d has rows
        events(("d", 16)),
        events(("d", 16)),
    ]
    rehearse(timed(came), [{"event": table} for table in inputs], settings(tmp_path))
    fired = [(row["batch"], row["key"], (row["time"] - NOON).seconds // 60) for row in came]
    assert sorted(fired) == [(3, "a", 10), (3, "b", 15), (3, "c", 15)]
    assert all(row["held"] for row in came)


def test_rows_older_than_the_watermark_leave_by_a_stream_of_their_own(tmp_path: Path) -> None:
    late: list[tuple[int, str]] = []
    topology = timed([]).sink(
        "event",
        Callback(lambda batch, table: late.extend((batch, k) for k in table["key"].to_pylist())),
        stream="late",
    )
    inputs = [events(("a", 9)), events(("b", 7.9), ("c", 8), ("d", 20)), events(("e", 18))]
    done = rehearse(topology, [{"event": table} for table in inputs], settings(tmp_path))
    assert late == [(1, "b"), (2, "e")]
    taken = [sum(r.tuples_in for r in d.reports if r.component == "remember") for d in done]
    assert taken == [1, 2, 0]


def test_the_watermark_is_that_of_the_slowest_spout(tmp_path: Path) -> None:
    marks: list[Any] = []

    def look(table: pa.Table, watermark: Any) -> None:
        marks.append(watermark)

    topology = (
        Topology("t")
        .spout("one", numbers(1))
        .spout("two", numbers(1))
        .event_time("one", "at", late="0 s")
        .event_time("two", "at", late="1 hour")
        .bolt("look", look, inputs={"one": "global"})
    )
    inputs = [
        {"one": events(("a", 30))},
        {"one": events(("a", 31)), "two": events(("a", 60))},
        {"one": events(("a", 70)), "two": events(("a", 95))},
        {"one": events(("a", 70))},
    ]
    rehearse(topology, inputs, settings(tmp_path))
    assert marks == [None, None, NOON, NOON + timedelta(minutes=35)]


def test_state_with_a_time_to_live_is_forgotten(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    def look(row: dict[str, Any], state: dict[str, Any]) -> None:
        seen.append((row["key"], row["key"] in state))
        state[row["key"]] = {"key": row["key"], "at": row["at"]}

    state = Keyed(LAST.schema, ("key",), ttl="30 minutes")
    topology = (
        Topology("t")
        .spout("event", numbers(1))
        .event_time("event", "at", late="0 s")
        .bolt("look", look, inputs={"event": BY_KEY}, form="tuple", state=state, tasks=2)
    )
    keys = [[("a", 0), ("b", 0)], [("a", 20)], [("a", 45)], [("b", 50), ("a", 50)], [("b", 60)]]
    rehearse(topology, [{"event": events(*rows)} for rows in keys], settings(tmp_path))
    # Before the fourth batch the watermark is 45 minutes, and nobody had touched b since 0.
    assert seen[2:4] == [("a", True), ("a", True)]
    assert sorted(seen[4:6]) == [("a", True), ("b", False)]
    assert seen[6] == ("b", True)


@pytest.mark.parametrize("form", ["arrow", "tuple", "pandas"])
def test_a_bolt_can_be_called_in_each_batch(form: Any, tmp_path: Path) -> None:
    came: list[tuple[int, int, int]] = []

    def look(rows: Any, batch: int, task: int) -> Any:
        came.append((batch, task, 0 if rows is None else len(rows)))

    topology = (
        Topology("t")
        .spout("event", numbers(1))
        .bolt("look", look, inputs={"event": "global"}, tasks=2, each_batch=True, form=form)
    )
    rehearse(topology, [{"event": events(("a", 1))}, {"event": events()}], settings(tmp_path))
    width = 2 if form == "tuple" else 1  # a dict of two columns
    assert came == [(0, 1, width), (0, 1, 0), (0, 2, 0), (1, 1, 0), (1, 2, 0)]


def test_timers_without_event_time_or_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="`remember`: timers need event time, and the topology"):
        Topology("t").spout("e", numbers(1)).bolt(
            "remember", remember, inputs={"e": BY_KEY}, state=LAST, on_timer=tell
        ).check_runnable()
    with pytest.raises(InvalidInput, match="timers need keyed state"):
        Topology("t").spout("e", numbers(1)).event_time("e", "at").bolt(
            "b", remember, inputs={"e": BY_KEY}, on_timer=tell
        ).check_runnable()
    whole = Keyed(LAST.schema, ("key",), ttl="1 hour", whole=True)
    with pytest.raises(InvalidInput, match="state with a time to live is touched key by key"):
        Topology("t").spout("e", numbers(1)).event_time("e", "at").bolt(
            "b", remember, inputs={"e": BY_KEY}, state=whole
        ).check_runnable()
    topology = Topology("t").spout("e", numbers(1)).event_time("e", "when")
    with pytest.raises(BoltFailed, match="no column `when` with the event time; there are key, at"):
        rehearse(topology, [{"e": events(("a", 1))}], settings(tmp_path))
