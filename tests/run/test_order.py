"""Each key's rows reach a keyed bolt in the order in which they were read."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidInput
from headrace.run import Callback, Keyed, Topology
from headrace.run.order import Run, cut, in_order, pick
from headrace.run.placement import Placement, PlanInForce
from headrace.run.rehearsal import rehearse
from headrace.run.sources import draw, numbers
from tests.run.topologies import places, settings

GAP_S = 30
SESSION = Keyed(
    pa.schema([("user", pa.int64()), ("last", pa.int64()), ("n", pa.int64())]), ("user",)
)
BY_USER = {"grouping": "fields", "fields": ["user"]}
BY_TIME = {"grouping": "fields", "fields": ["at"]}


def clicks(batches: int, partitions: int, rows: int = 240) -> list[list[pa.Table]]:
    """Batches of source partitions; times rise in each partition, and every user is in all."""
    number = np.arange(batches * partitions * rows)
    user = (12 * draw(number, 0, seed=3)).astype(np.int64)
    at = number + (300 * (draw(number, 1, seed=3) < 0.05)).astype(np.int64).cumsum()
    whole = pa.table({"user": user, "at": at})
    slices = [whole.slice(i * rows, rows) for i in range(batches * partitions)]
    return [slices[i : i + partitions] for i in range(0, len(slices), partitions)]


def count(row: dict[str, int], state: dict[int, dict[str, int]]) -> Iterator[dict[str, int]]:
    """Number the sessions of a user; a click that is not later than the last begins one, too."""
    held = state.setdefault(row["user"], {"user": row["user"], "last": -GAP_S, "n": 0})
    if not held["last"] <= row["at"] < held["last"] + GAP_S:
        held["n"] += 1
        yield dict(held)
    held["last"] = row["at"]


def sessions(batches: Sequence[Sequence[pa.Table]]) -> dict[int, int]:
    """How many sessions each user has, from all rows in their order."""
    state: dict[int, dict[str, int]] = {}
    for row in (row for parts in batches for part in parts for row in part.to_pylist()):
        list(count(row, state))
    return {user: held["n"] for user, held in state.items()}


def same(table: pa.Table) -> pa.Table:
    return pa.table({name: table[name] for name in table.column_names})


def double_at_a_run(table: pa.Table) -> pa.Table:
    """More rows out than in: each row, and every tenth once more after itself."""
    index = np.repeat(np.arange(table.num_rows), 1 + (table["at"].to_numpy() % 10 == 0))
    return table.take(pa.array(index))


def each(row: dict[str, int]) -> Iterator[dict[str, int]]:
    yield row


WAYS: dict[str, list[tuple[Any, dict[str, Any]]]] = {
    "at once": [],
    "shuffled": [(same, {"inputs": "shuffle"})],
    "shuffled three times": [(same, {"inputs": "shuffle"})] * 3,
    "more rows": [(double_at_a_run, {"inputs": "shuffle"}), (same, {"inputs": "shuffle"})],
    "tuple by tuple": [(each, {"inputs": "shuffle", "form": "tuple"})] * 2,
    "spread by another key": [(each, {"inputs": BY_TIME, "form": "tuple"})],
    "spread, as a table": [(same, {"inputs": BY_TIME}), (same, {"inputs": "shuffle"})],
    "local": [(same, {"inputs": "local-or-shuffle"})],
    "through one": [(same, {"inputs": "global"}), (same, {"inputs": "shuffle"})],
}


def chain(way: str, came: list[dict[str, int]]) -> Topology:
    topology, last = Topology("t").spout("click", numbers(1)), "click"
    for i, (function, facts) in enumerate(WAYS[way]):
        inputs = {last: facts["inputs"]}
        last = f"b{i}"
        topology = topology.bolt(last, function, inputs=inputs, form=facts.get("form", "arrow"))
    return topology.bolt("count", count, inputs={last: BY_USER}, state=SESSION, form="tuple").sink(
        "count", Callback(lambda batch, table: came.extend(table.to_pylist()))
    )


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
@pytest.mark.parametrize("way", WAYS)
def test_sessions_are_right_whatever_is_between(
    way: str, tasks: int, partitions: int, tmp_path: Path
) -> None:
    batches, came = clicks(3, partitions, 160), list[dict[str, int]]()
    topology = chain(way, came)
    counts = dict.fromkeys(topology.components, tasks)
    plan = PlanInForce(topology, Placement("p", counts, places(counts, ("a", "b"))))
    rehearse(topology, [{"click": parts} for parts in batches], settings(tmp_path), plan)
    found = {user: max(r["n"] for r in came if r["user"] == user) for user in range(12)}
    assert found == sessions(batches)
    assert len(came) == sum(found.values())


def test_order_sorts_a_batch_by_event_time(tmp_path: Path) -> None:
    came: list[list[int]] = []

    def look(table: pa.Table) -> None:
        for user in range(12):
            came.append(table.filter(pc.equal(table["user"], user))["at"].to_pylist())

    (parts,) = clicks(1, 3)
    mixed = [table.take(pa.array(np.random.default_rng(1).permutation(240))) for table in parts]
    topology = (
        Topology("t")
        .spout("click", numbers(1), tasks=2)
        .bolt("look", look, inputs={"click": {**BY_USER, "order": ["at"]}}, tasks=3)
    )
    rehearse(topology, [{"click": mixed}], settings(tmp_path))
    assert sum(map(len, came)) == 720
    assert all(times == sorted(times) for times in came)
    with pytest.raises(InvalidInput, match="`order` sorts the rows of a fields grouping"):
        Topology("t").spout("s", numbers(1)).bolt(
            "b", same, inputs={"s": {"grouping": "shuffle", "order": ["at"]}}
        ).check_runnable()


def test_a_function_may_say_which_row_its_rows_come_from(tmp_path: Path) -> None:
    """Behind another key, a table with other rows than came has no order of its own."""

    def longest(table: pa.Table) -> pa.Table:
        kept = np.flatnonzero(table["at"].to_numpy() % 3 > 0)
        return table.take(pa.array(kept)).append_column("_row", pa.array(kept))

    (parts,) = clicks(1, 2)
    seen: list[dict[str, Any]] = []
    topology = (
        Topology("t")
        .spout("click", numbers(1), tasks=2)
        .bolt("longest", longest, inputs={"click": BY_TIME}, tasks=4)
        .bolt("look", lambda table: table, inputs={"longest": BY_USER}, tasks=2)
        .sink("look", Callback(lambda batch, table: seen.extend(table.to_pylist())))
    )
    rehearse(topology, [{"click": parts}], settings(tmp_path))
    rows = [row for part in parts for row in part.to_pylist() if row["at"] % 3 > 0]
    for user in range(12):
        assert [r for r in seen if r["user"] == user] == [r for r in rows if r["user"] == user]


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=6),
)
def test_runs_that_were_cut_come_back_in_order(sizes: list[int], cuts: list[int]) -> None:
    runs: list[Run] = [((i,), rows) for i, rows in enumerate(sizes)]
    table = pa.table({"n": list(range(sum(sizes)))})
    bounds = [0, *sorted(min(c, sum(sizes)) for c in cuts), sum(sizes)]
    parts = [
        (table.slice(first, end - first), cut(runs, first, end))
        for first, end in pairwise(bounds)
        if first < end
    ]
    whole, _ = in_order(parts[::-1])
    assert whole["n"].to_pylist() == list(range(sum(sizes)))
    halves = [np.arange(start, sum(sizes), 2) for start in (0, 1) if start < sum(sizes)]
    spread = [(table.take(pa.array(half)), pick(runs, half, rowwise=True)) for half in halves]
    assert in_order(spread[::-1])[0]["n"].to_pylist() == list(range(sum(sizes)))
