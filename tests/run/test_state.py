"""State between batches follows its keys; a batch run again starts from the state before."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.run import Callback, Keyed, Topology
from headrace.run.batches import Batches, BoltFailed
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse, rehearse_batch
from headrace.run.sources import numbers
from headrace.run.state import Store
from headrace.run.state_files import read_state
from tests.run.topologies import (
    BY_WORD,
    COUNTS,
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

    def power_cut(*_: Any) -> None:
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


def test_old_state_is_removed(tmp_path: Path) -> None:
    rehearse(word_count(), [values(n, n + 20) for n in range(0, 200, 20)], settings(tmp_path))
    assert sorted(f.name for f in (tmp_path / "run" / "commits").iterdir()) == ["8.json", "9.json"]
    assert sorted(f.name for f in (tmp_path / "run" / "batches").iterdir()) == ["8", "9"]


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
