"""State between batches follows its keys; a batch run again starts from the state before."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.keys import GROUPS
from headrace.run import Callback, Keyed, Topology
from headrace.run.batches import Batches, BoltFailed, Settings
from headrace.run.merging import MANY, Job, put_together
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse, rehearse_batch
from headrace.run.routing import key_hashes
from headrace.run.sources import numbers
from headrace.run.state import Store
from headrace.run.state_files import StateFile, find_rows, pack_state, read_state
from headrace.run.storage import write_table
from tests.run.topologies import (
    BY_WORD,
    COUNTS,
    count,
    expected_counts,
    final_counts,
    plan,
    sentences,
    settings,
    split,
    values,
    word_count,
)


def test_state_follows_when_the_number_of_tasks_changes(tmp_path: Path) -> None:
    topology = word_count(tmp_path / "out")
    in_force = PlanInForce(topology, plan())
    batches = Batches(topology, in_force, settings(tmp_path))
    for batch, tasks in enumerate((2, 5, 1, 3, 3)):
        in_force.set(plan(f"with {tasks}", count=tasks, split=tasks + 1))
        done = rehearse_batch(
            batches, batch, values(batch * 30, batch * 30 + (30 if batch != 1 else 1))
        )
        assert done is not None
        assert done.plan == f"with {tasks}"
    expected = expected_counts(150)
    for n in range(31, 60):
        for word in str(sentences(pa.table({"value": [n]}))["sentence"][0]).split():
            expected[word] -= 1
    assert final_counts(tmp_path / "out") == expected


def test_tasks_without_input_keep_their_state_through_a_change_of_counts(tmp_path: Path) -> None:
    topology = word_count(tmp_path / "out")
    in_force = PlanInForce(topology, plan(count=1))
    batches = Batches(topology, in_force, settings(tmp_path))
    rehearse_batch(batches, 0, values(0, 70))
    for batch in (
        1,
        2,
        3,
    ):  # sentence 7 has one word only, so all tasks but one are left without input
        in_force.set(plan(count=batch + 1))
        rehearse_batch(batches, batch, {"sentence": pa.table({"value": [7]})})
    expected = expected_counts(70)
    expected["amber"] += 3 * 4
    commit = Store(tmp_path / "run").last()
    rows = read_state(commit.state, tmp_path / "run", COUNTS).to_pylist()
    assert len(rows) == len(expected)
    assert {row["word"]: row["count"] for row in rows} == expected


@pytest.mark.parametrize("where", ["in the tasks", "in a sink", "at the commit"])
def test_a_batch_that_is_run_again_starts_from_the_state_before(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = word_count(tmp_path / "out")
    rehearse(topology, [values(0, 50)], settings(tmp_path))

    def power_cut(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        target = {
            "in the tasks": "headrace.run.keeping.check_state",
            "in a sink": "headrace.run.sinks.Parquet.deliver",
        }
        broken.setattr(target.get(where, "headrace.run.state.Store.commit"), power_cut)
        with pytest.raises(KeyboardInterrupt):
            rehearse(topology, [values(0, 50), values(50, 80)], settings(tmp_path))
    done = rehearse(topology, [values(0, 50), values(50, 80)], settings(tmp_path))
    assert [d.batch for d in done] == [1]
    assert final_counts(tmp_path / "out") == expected_counts(80)
    assert not list((tmp_path / "out").glob(".*"))


def test_a_committed_batch_is_passed_over(tmp_path: Path) -> None:
    topology = word_count(tmp_path / "out")
    rehearse(topology, [values(0, 50)], settings(tmp_path))
    assert rehearse(topology, [values(0, 50)], settings(tmp_path)) == []
    assert final_counts(tmp_path / "out") == expected_counts(50)


def test_files_of_state_are_put_together_and_old_ones_removed(tmp_path: Path) -> None:
    topology = word_count(tmp_path / "out")
    batches = Batches(topology, PlanInForce(topology), settings(tmp_path))
    folder, files, there = tmp_path / "run", tuple[StateFile, ...](), set[str]()
    for batch in range(30):
        rehearse_batch(batches, batch, values(batch * 20, batch * 20 + 20))
        batches.wait()
        files = Store(folder).last().state
        assert len(files) <= 2 * (MANY + 1)
        there = {str(f.relative_to(folder)) for f in folder.rglob("*.arrow")}
        assert there >= {entry.file for entry in files}
    assert len(there) < 50
    assert sorted(f.name for f in (folder / "commits").iterdir()) == ["28.json", "29.json"]
    assert final_counts(tmp_path / "out") == expected_counts(600)
    rows = read_state(files, folder, COUNTS).to_pylist()
    assert {row["word"]: row["count"] for row in rows} == expected_counts(600)


def test_a_merged_file_is_dropped_if_a_plan_has_divided_its_range(tmp_path: Path) -> None:
    topology = word_count(tmp_path / "out")
    in_force = PlanInForce(topology, plan())
    batches = Batches(topology, in_force, settings(tmp_path))
    for batch in range(40):
        if batch % 9 == 8:  # while files are being put together
            in_force.set(plan(f"plan {batch}", count=2 + batch % 5))
        rehearse_batch(batches, batch, values(batch * 10, batch * 10 + 10))
    assert final_counts(tmp_path / "out") == expected_counts(400)


def test_a_merged_file_survives_a_batch_that_is_put_aside(tmp_path: Path) -> None:
    def picky(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        if "gorse" in table["word"].to_pylist():
            raise ValueError("no gorse")
        return count(table, state)

    topology = (
        Topology("t")
        .spout("sentence", numbers(1), sentences)
        .bolt("split", split, inputs={"sentence": "shuffle"})
        .bolt("count", picky, inputs={"split": BY_WORD}, state=COUNTS)
    )
    batches = Batches(topology, PlanInForce(topology), settings(tmp_path, on_error="quarantine"))
    for batch in range(3 * MANY):
        bad = batch % MANY == MANY - 1  # just when files have been put together
        rehearse_batch(batches, batch, {"sentence": pa.table({"value": [6 if bad else 7]})})
        batches.wait()
    (row,) = read_state(Store(tmp_path / "run").last().state, tmp_path / "run", COUNTS).to_pylist()
    assert row == {"word": "amber", "count": 4 * (3 * MANY - 3)}


KEYS = Keyed(pa.schema([("key", pa.int64()), ("n", pa.int64())]), ("key",))


def files_of(folder: Path, *tables: tuple[list[int], list[int]]) -> list[StateFile]:
    """Files in which the keys have their number in the list of files, or are gone."""
    found: list[StateFile] = []
    for n, (keys, gone) in enumerate(tables):
        rows = pa.table({"key": pa.array(keys, pa.int64()), "n": [n] * len(keys)})
        lost = key_hashes(pa.table({"key": pa.array(gone, pa.int64())}), ["key"])
        write_table(folder / f"{n}.arrow", pack_state(rows, KEYS, gone=lost, seen=None))
        found.append(StateFile("b", 0, GROUPS, f"{n}.arrow", rows=len(keys)))
    return found


@given(
    touched=st.lists(
        st.tuples(st.lists(st.integers(0, 20), unique=True), st.lists(st.integers(0, 20))),
        min_size=1, max_size=6,
    ),
    wanted=st.sets(st.integers(0, 25)),
)  # fmt: skip
def test_the_last_word_about_a_key_counts(
    touched: list[tuple[list[int], list[int]]], wanted: set[int]
) -> None:
    held: dict[int, int] = {}
    tables: list[tuple[list[int], list[int]]] = []
    for n, (keys, gone) in enumerate(touched):
        lost = sorted(set(gone) - set(keys))
        tables.append((keys, lost))
        held = {k: v for k, v in held.items() if k not in lost} | dict.fromkeys(keys, n)
    with tempfile.TemporaryDirectory() as name:
        files = files_of(Path(name), *tables)
        hashes = np.sort(
            key_hashes(pa.table({"key": pa.array(sorted(wanted), pa.int64())}), ["key"])
        )
        some = find_rows(files, Path(name), KEYS, hashes).to_pylist()
        assert {r["key"]: r["n"] for r in some} == {k: v for k, v in held.items() if k in wanted}
        every = read_state(files, Path(name), KEYS).to_pylist()
        assert {r["key"]: r["n"] for r in every} == held
        if len(files) > 1:
            later = Job(tuple(files[1:]), (0, GROUPS), False, KEYS, None)
            both = [files[0], put_together(later, Path(name), "merged/x.arrow")]
            merged = read_state(both, Path(name), KEYS).to_pylist()
            assert {r["key"]: r["n"] for r in merged} == held


def test_a_call_sees_the_keys_that_came_or_with_whole_all(tmp_path: Path) -> None:
    seen: dict[bool, list[list[int]]] = {True: [], False: []}
    for whole, states in seen.items():

        def look(
            table: pa.Table, state: pa.Table, states: list[list[int]] = states
        ) -> tuple[None, pa.Table]:
            states.append(sorted(state["key"].to_pylist()))
            fresh = pa.table({"key": table["key"], "n": table["key"]})
            other = state.join(fresh.select(["key"]), "key", join_type="left anti")
            return None, pa.concat_tables([other.select(["key", "n"]), fresh])

        topology = (
            Topology("t")
            .spout("k", numbers(1))
            .bolt(
                "look", look, inputs={"k": {"grouping": "fields", "fields": ["key"]}},
                state=Keyed(KEYS.schema, ("key",), whole=whole),
            )
        )  # fmt: skip
        inputs = [{"k": pa.table({"key": keys})} for keys in ([1, 2], [2, 3], [1])]
        rehearse(topology, inputs, Settings(tmp_path / str(whole)))
    assert seen == {False: [[], [2], [1]], True: [[], [1, 2], [1, 2, 3]]}


def test_keys_with_the_same_hash_do_not_touch_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coarse(table: pa.Table, fields: Any) -> Any:
        return table[fields[0]].to_numpy().astype(np.uint64) // np.uint64(4)

    monkeypatch.setattr("headrace.run.keeping.key_hashes", coarse)
    monkeypatch.setattr("headrace.run.state_files.key_hashes", coarse)
    counted: dict[int, int] = {}

    def count(row: dict[str, int], state: dict[int, dict[str, int]]) -> None:
        held = state.setdefault(row["key"], {"key": row["key"], "n": 0})
        held["n"] += 1
        counted[row["key"]] = held["n"]
        if held["n"] == 3:
            del state[row["key"]]

    by_key = {"grouping": "fields", "fields": ["key"]}
    topology = (
        Topology("t")
        .spout("k", numbers(1))
        .bolt("count", count, form="tuple", inputs={"k": by_key}, state=KEYS)
    )
    keys = [[0, 1, 2], [1], [1, 3], [0, 2], [1, 2]]
    rehearse(topology, [{"k": pa.table({"key": k})} for k in keys], settings(tmp_path))
    assert counted == {0: 2, 1: 1, 2: 3, 3: 1}


def test_a_key_that_did_not_come_is_refused(tmp_path: Path) -> None:
    def wander(row: dict[str, int], state: dict[int, dict[str, int]]) -> None:
        state[row["key"] + 1] = {"key": row["key"] + 1, "n": 0}

    by_key = {"grouping": "fields", "fields": ["key"]}
    topology = (
        Topology("t")
        .spout("k", numbers(1))
        .bolt("b", wander, form="tuple", inputs={"k": by_key}, state=KEYS)
    )
    with pytest.raises(BoltFailed, match="holds the key 6, which did not come in this batch"):
        rehearse(topology, [{"k": pa.table({"key": [5]})}], settings(tmp_path))


def test_state_under_another_key_is_refused(tmp_path: Path) -> None:
    def backwards(table: pa.Table, state: pa.Table) -> tuple[None, pa.Table]:
        return None, pa.table(
            {
                "word": [word[::-1] for word in table["word"].to_pylist()],
                "count": [1] * table.num_rows,
            }
        )

    topology = (
        Topology("t")
        .spout("sentence", numbers(1), sentences)
        .bolt("split", split, inputs={"sentence": "shuffle"})
        .bolt("count", backwards, inputs={"split": BY_WORD}, tasks=2, state=COUNTS)
    )
    with pytest.raises(BoltFailed, match="keys of other tasks"):
        rehearse(topology, [values(0, 20)], settings(tmp_path))


def test_state_behind_a_global_grouping_is_held_by_the_first_task(tmp_path: Path) -> None:
    came: list[Any] = []
    total = Keyed(pa.schema([("key", pa.string()), ("sum", pa.int64())]), ("key",))

    def add(table: pa.Table, state: pa.Table, task: int) -> tuple[pa.Table, pa.Table]:
        before = sum(state["sum"].to_pylist())
        new = pa.table({"key": ["all"], "sum": [before + sum(table["value"].to_pylist())]})
        return new.append_column("task", pa.array([task])), new

    topology = (
        Topology("t")
        .spout("n", numbers(1), tasks=3)
        .bolt("add", add, inputs={"n": "global"}, tasks=3, state=total)
        .sink("add", Callback(lambda batch, table: came.extend(table.to_pylist())))
    )
    rehearse(
        topology,
        [{"n": pa.table({"value": [1, 2, 3]})}, {"n": pa.table({"value": [10]})}],
        settings(tmp_path),
    )
    assert came == [{"key": "all", "sum": 6, "task": 1}, {"key": "all", "sum": 16, "task": 1}]
