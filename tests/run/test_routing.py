"""Groupings on whole tables."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidInput
from headrace.model.document import Input
from headrace.model.keys import GROUPS, groups_owned_by, owner_of
from headrace.run.routing import even_slices, key_groups, route

KEYS = st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=60)


def routed(table: pa.Table, tasks: int, **how: Any) -> dict[int, list[dict[str, Any]]]:
    beside = how.pop("beside", ())
    return {
        task: rows.to_pylist()
        for task, rows, _ in route(
            table, Input(**how), tasks, sender=how.pop("sender", 0), beside=beside
        )
    }


@given(rows=st.integers(1, 50), tasks=st.integers(1, 9), start=st.integers(0, 20))
def test_shuffle_is_even_and_loses_nothing(rows: int, tasks: int, start: int) -> None:
    parts = list(even_slices(rows, tasks, start=start))
    sizes = [end - first for _, first, end in parts]
    assert [n for _, first, end in parts for n in range(first, end)] == list(range(rows))
    assert len({task for task, _, _ in parts}) == len(parts) == min(rows, tasks)
    least = 0 if rows < tasks else min(sizes)
    assert max(sizes) - least <= 1


@given(keys=KEYS, tasks=st.integers(1, 9))
def test_a_key_always_goes_to_the_task_that_owns_it(keys: list[str | None], tasks: int) -> None:
    table = pa.table({"key": pa.array(keys, pa.string()), "n": list(range(len(keys)))})
    parts = routed(table, tasks, grouping="fields", fields=("key",))
    assert sorted(row["n"] for rows in parts.values() for row in rows) == list(range(len(keys)))
    for task, rows in parts.items():
        first, end = groups_owned_by(task, tasks)
        groups = key_groups(pa.Table.from_pylist(rows, schema=table.schema), ["key"])
        assert ((groups >= first) & (groups < end)).all()
        assert {row["key"] for row in rows}.isdisjoint(
            row["key"] for other, r in parts.items() if other != task for row in r
        )


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 100, GROUPS])
def test_every_key_group_has_one_owner(tasks: int) -> None:
    owners = owner_of(np.arange(GROUPS), tasks)
    for task in {0, tasks // 2, tasks - 1}:
        first, end = groups_owned_by(task, tasks)
        assert (owners[first:end] == task).all()
        assert end - first == (owners == task).sum()


def test_key_groups_are_the_same_in_every_version() -> None:
    """State files rely on these numbers: if they change, earlier state can no longer be divided."""
    table = pa.table(
        {"word": ["amber", "birch", None], "n": pa.array([1, 2**40, None], pa.int64())}
    )
    assert key_groups(table, ["word"]).tolist() == [30781, 17787, 0]
    assert key_groups(table, ["n"]).tolist() == [2560, 13552, 0]
    assert key_groups(table, ["word", "n"]).tolist() == [28202, 11859, 0]


def test_a_null_among_numbers_does_not_change_the_others_group() -> None:
    alone, mixed = pa.table({"n": [5, 6]}), pa.table({"n": pa.array([5, None, 6], pa.int32())})
    assert key_groups(alone, ["n"]).tolist() == key_groups(mixed, ["n"])[[0, 2]].tolist()


def test_keys_are_spread_over_all_tasks() -> None:
    groups = key_groups(pa.table({"k": [f"key-{i}" for i in range(10_000)]}), ["k"])
    sizes = np.bincount(owner_of(groups, 10), minlength=10)
    assert sizes.min() > 900
    assert sizes.max() < 1100


def test_global_goes_to_the_first_and_all_to_every_task() -> None:
    table = pa.table({"n": [1, 2]})
    assert routed(table, 3, grouping="global") == {0: table.to_pylist()}
    assert routed(table, 3, grouping="all") == dict.fromkeys(range(3), table.to_pylist())


def test_direct_goes_where_the_sender_says() -> None:
    table = pa.table({"n": [1, 2, 3], "_task": [3, 1, 3]})
    assert routed(table, 3, grouping="direct") == {0: [{"n": 2}], 2: [{"n": 1}, {"n": 3}]}
    with pytest.raises(
        InvalidInput, match="names a task from 1 to 3; the receiver has tasks 1 to 2"
    ):
        routed(table, 2, grouping="direct")
    with pytest.raises(InvalidInput, match="`_task`; there is none"):
        routed(pa.table({"n": [1]}), 2, grouping="direct")


def test_local_or_shuffle_stays_in_the_worker_if_it_can() -> None:
    table = pa.table({"n": list(range(4))})
    assert set(routed(table, 4, grouping="local-or-shuffle", beside=(1, 3))) == {1, 3}
    assert set(routed(table, 4, grouping="local-or-shuffle")) == {0, 1, 2, 3}


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InvalidInput, match="no column `word` to group by; there are n"):
        routed(pa.table({"n": [1]}), 2, grouping="fields", fields=("word",))
