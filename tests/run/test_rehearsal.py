"""Batches without Spark: groupings, state, retries, new plans, cycles, sinks and failures."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import inspect
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import HeadraceError, Infeasible, InvalidInput
from headrace.model.topology import Form
from headrace.run import Callback, Keyed, Parquet, Topology
from headrace.run.batches import Batches, BoltFailed, Settings
from headrace.run.compiling import compile_batch
from headrace.run.placement import Placement, PlanInForce, check_cores
from headrace.run.rehearsal import rehearse, rehearse_batch
from headrace.run.sources import numbers
from headrace.run.stages import stages
from headrace.run.state import Commit, Store, read_state
from headrace.run.task import Packet, pack, run_seat, where_am_i
from tests.run.topologies import (
    BY_WORD,
    COUNTS,
    count,
    expected_counts,
    final_counts,
    places,
    sentences,
    split,
    values,
    word_count,
)


def settings(folder: Path, **others: Any) -> Settings:
    return Settings(folder / "run", **others)


def plan(name: str = "plan", nodes: tuple[str, ...] = ("a", "b"), **tasks: int) -> Placement:
    counts = {"sentence": 2, "split": 3, "count": 2, **tasks}
    return Placement(name, counts, places(counts, nodes))


def numbered(
    folder: Path, function: Callable[..., Any], inputs: Any, tasks: int = 3
) -> tuple[Topology, list[pa.Table]]:
    """One spout of two tasks, one bolt, and what the bolt emits."""
    came: list[pa.Table] = []
    topology = (
        Topology("t").spout("numbers", numbers(1), tasks=2).bolt("bolt", function, inputs=inputs, tasks=tasks)
        .sink("bolt", Callback(lambda batch, table: came.append(table)))
    )  # fmt: skip
    return topology, came


@pytest.mark.parametrize("form", ["arrow", "pandas", "tuple"])
def test_word_count_equals_the_batch_computation(form: Form, tmp_path: Path) -> None:
    done = rehearse(
        word_count(tmp_path / "out", form=form),
        [values(0, 50), values(50, 90), values(90, 200)],
        settings(tmp_path),
    )
    assert final_counts(tmp_path / "out") == expected_counts(200)
    assert [d.tuples for d in done] == [50, 40, 110]


def test_every_task_reports_what_it_did(tmp_path: Path) -> None:
    (done,) = rehearse(word_count(), [values(0, 60)], settings(tmp_path))
    reports = {r.task: r for r in done.reports}
    assert sorted(reports) == [
        "count.1",
        "count.2",
        "sentence.1",
        "sentence.2",
        "split.1",
        "split.2",
        "split.3",
    ]
    assert sum(reports[f"split.{n}"].tuples_in for n in (1, 2, 3)) == 60
    assert sum(reports[f"split.{n}"].tuples_out for n in (1, 2, 3)) == 240
    into_count = [edge for n in (1, 2, 3) for edge in reports[f"split.{n}"].edges]
    assert (
        sum(tuples for _, _, tuples, _ in into_count)
        == 240
        == sum(reports[f"count.{n}"].tuples_in for n in (1, 2))
    )
    assert all(size > tuples * 4 for _, _, tuples, size in into_count)
    assert all(r.cpu_ms > 0 for r in reports.values())


def test_telemetry_is_written_once_per_batch(tmp_path: Path) -> None:
    rehearse(
        word_count(),
        [values(0, 60), values(60, 90)],
        settings(tmp_path, telemetry=tmp_path / "telemetry"),
    )
    tasks, edges = (
        pq.read_table(tmp_path / "telemetry" / kind).to_pylist() for kind in ("tasks", "edges")
    )
    assert len(tasks) == 2 * 7
    assert sum(row["tuples_in"] for row in tasks if row["component"] == "split") == 90
    assert sum(row["tuples"] for row in edges if row["to_task"].startswith("count.")) == 360
    assert {row["topology"] for row in (*tasks, *edges)} == {"word-count"}


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
    held: dict[str, int] = {}
    for entry in commit.state:
        for row in read_state([entry], tmp_path / "run", COUNTS).to_pylist():
            assert row["word"] not in held, f"two files hold {row['word']}"
            held[row["word"]] = row["count"]
    assert held == expected


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
            "in the tasks": "headrace.run.task.check_state",
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


def test_a_task_sends_the_same_whatever_order_its_input_came_in(tmp_path: Path) -> None:
    topology = (
        Topology("t").spout("n", numbers(1), tasks=3).bolt("keep", lambda t: t, inputs={"n": "shuffle"})
        .bolt("end", lambda t: None, inputs={"keep": "shuffle"}, tasks=2)
    )  # fmt: skip
    order = stages(topology.components)
    ready = compile_batch(topology, order, None, Commit(-1), batch=0, attempt="a", folder=tmp_path)
    packets = [
        Packet("keep", 0, 0, sender, 2, pack(pa.table({"value": [sender, 10 + sender]})))
        for sender in range(3)
    ]

    def leaving(arrived: list[Packet]) -> list[tuple[int, bytes]]:
        chunks = [pickle.dumps([packet]) for packet in arrived]
        return [
            (at, packet.block)
            for at, packet in run_seat(ready.stages[1], 0, chunks, lambda reports: None)
        ]

    assert len(leaving(packets)) == 2
    assert leaving(packets) == leaving(packets[::-1])


def test_tasks_that_ran_elsewhere_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where_am_i.cache_clear()
    monkeypatch.setenv("HEADRACE_NODE", "b")
    in_force = PlanInForce(word_count(), plan(nodes=("a", "b")))
    hosts = {"a": "127.0.0.2", "b": "127.0.0.3"}
    (done,) = rehearse(
        word_count(),
        [values(0, 60)],
        settings(tmp_path, hosts=hosts, telemetry=tmp_path / "telemetry"),
        in_force,
    )
    where_am_i.cache_clear()
    assert done.misplaced == (
        "sentence.1",
        "split.1",
        "split.3",
        "count.2",
    )  # every other task is planned on a
    assert done.remote_bytes == 0
    assert set(pq.read_table(tmp_path / "telemetry" / "tasks")["node"].to_pylist()) == {"b"}


def test_old_state_is_removed(tmp_path: Path) -> None:
    rehearse(word_count(), [values(n, n + 20) for n in range(0, 200, 20)], settings(tmp_path))
    assert sorted(f.name for f in (tmp_path / "run" / "commits").iterdir()) == ["8.json", "9.json"]
    assert sorted(f.name for f in (tmp_path / "run" / "batches").iterdir()) == ["8", "9"]


def test_output_of_another_run_is_not_mixed_in(tmp_path: Path) -> None:
    rehearse(word_count(tmp_path / "out"), [values(0, 50)], Settings(tmp_path / "one"))
    with pytest.raises(InvalidInput, match="holds the output of another run"):
        rehearse(word_count(tmp_path / "out"), [values(0, 50)], Settings(tmp_path / "two"))


def test_only_what_reports_name_reaches_the_parquet_output(tmp_path: Path) -> None:
    sink, rows = Parquet(str(tmp_path / "out")), pa.table({"value": [1]})
    sink.open("run")
    parts = sink.parts(0, "attempt", tmp_path)
    parts.mkdir()
    named, unnamed = (
        parts / "b.1-aaaaaaaa.arrow",
        parts / "b.1-bbbbbbbb.arrow",
    )  # the second by a task whose executor was killed
    for file in (named, unnamed):
        sink.writer()(file, rows)
    sink.deliver(0, parts, [named])
    assert [file.name for file in (tmp_path / "out").rglob("*.parquet")] == ["b.1-aaaaaaaa.parquet"]
    with pytest.raises(
        InvalidInput, match=r"b\.1-aaaaaaaa\.parquet was written by a task and is not there"
    ):
        sink.deliver(1, sink.parts(1, "attempt", tmp_path), [named])
    assert sorted(file.name for file in (tmp_path / "out").glob("batch=*")) == ["batch=0"]


def test_a_bolt_that_raises_is_named(tmp_path: Path) -> None:
    def pick(table: pa.Table) -> pa.Table:
        if 13 in table["value"].to_pylist():
            raise ValueError("thirteen")
        return table

    topology, came = numbered(
        tmp_path, pick, {"numbers": {"grouping": "fields", "fields": ["value"]}}
    )
    with pytest.raises(BoltFailed) as error:
        rehearse(topology, [{"numbers": pa.table({"value": [1, 2, 13]})}], settings(tmp_path))
    assert error.value.task is not None
    assert error.value.task.startswith("bolt.")
    assert (
        f"component `bolt`, task {error.value.task}, batch 0: ValueError: thirteen (test_rehearsal.py:"
        in error.value.message
    )
    assert came == []


def test_quarantine_keeps_the_batch_aside_and_goes_on(tmp_path: Path) -> None:
    def picky(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        if "gorse" in table["word"].to_pylist():
            raise ValueError("no gorse")
        return count(table, state)

    topology = (
        Topology("t").spout("sentence", numbers(1), sentences).bolt("split", split, inputs={"sentence": "shuffle"})
        .bolt("count", picky, inputs={"split": BY_WORD}, tasks=2, state=COUNTS).sink("count", Parquet(str(tmp_path / "out")))
    )  # fmt: skip
    inputs = [{"sentence": pa.table({"value": [n]})} for n in (7, 6, 14)]
    done = rehearse(topology, inputs, settings(tmp_path, on_error="quarantine"))
    assert [d.failure is None for d in done] == [True, False, True]
    assert final_counts(tmp_path / "out") == {"amber": 8}
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == ["_run", "batch=0", "batch=2"]
    aside = tmp_path / "run" / "quarantine" / "batch=1"
    assert pq.read_table(aside / "input" / "sentence.parquet").to_pylist() == [{"value": 6}]
    told = json.loads((aside / "error.json").read_text())
    assert told["component"] == "count"
    assert "no gorse" in told["error"]


def test_an_error_is_told_with_the_line_of_the_component_and_not_of_a_library(
    tmp_path: Path,
) -> None:
    def look(table: pa.Table) -> pa.Table:
        return table.select(["no", "such", "column"])  # raised inside pyarrow

    def leave(table: pa.Table) -> pa.Table:
        sys.exit("enough\nof this")

    for function, words in ((look, "KeyError: .*no.*"), (leave, "SystemExit: enough of this")):
        topology = (
            Topology("t")
            .spout("numbers", numbers(1))
            .bolt("b", function, inputs={"numbers": "shuffle"})
        )
        line = inspect.getsourcelines(function)[1] + 1
        with pytest.raises(
            BoltFailed, match=rf"task b\.1, batch 0: {words} \(test_rehearsal\.py:{line}\)"
        ):
            rehearse(
                topology,
                [{"numbers": pa.table({"value": [1]})}],
                Settings(tmp_path / function.__name__),
            )


def test_wrong_results_of_a_bolt_are_its_failure(tmp_path: Path) -> None:
    for function, message in (
        (lambda table: [1], "gave list"),
        (lambda table: table.rename_columns(["x"]), ""),
    ):
        topology, _ = numbered(tmp_path, function, {"numbers": "shuffle"})
        topology = topology.bolt(
            "next", lambda t: t, inputs={"bolt": {"grouping": "fields", "fields": ["value"]}}
        )
        with pytest.raises(BoltFailed) as error:
            rehearse(topology, [{"numbers": pa.table({"value": [1]})}], settings(tmp_path))
        assert (message or "no column `value` to group by") in error.value.message


def test_state_under_another_key_is_refused(tmp_path: Path) -> None:
    def backwards(table: pa.Table, state: pa.Table) -> tuple[None, pa.Table]:
        return None, pa.table(
            {
                "word": [word[::-1] for word in table["word"].to_pylist()],
                "count": [1] * table.num_rows,
            }
        )

    topology = (
        Topology("t").spout("sentence", numbers(1), sentences).bolt("split", split, inputs={"sentence": "shuffle"})
        .bolt("count", backwards, inputs={"split": BY_WORD}, tasks=2, state=COUNTS)
    )  # fmt: skip
    with pytest.raises(BoltFailed, match="keys of other tasks"):
        rehearse(topology, [values(0, 20)], settings(tmp_path))


def test_a_back_edge_delivers_in_the_next_batch(tmp_path: Path) -> None:
    def halve(table: pa.Table) -> dict[str, pa.Table]:
        done = [n for n in table["value"].to_pylist() if n <= 1]
        again = [n // 2 for n in table["value"].to_pylist() if n > 1]
        return {
            "default": pa.table({"value": pa.array(done, pa.int64())}),
            "again": pa.table({"value": pa.array(again, pa.int64())}),
        }

    came: list[tuple[int, list[int]]] = []
    topology = (
        Topology("t").spout("numbers", numbers(1)).bolt("halve", halve, tasks=2, inputs={"numbers": "shuffle", "halve": {"stream": "again"}})
        .sink("halve", Callback(lambda batch, table: came.append((batch, sorted(table["value"].to_pylist())))))
    )  # fmt: skip
    in_force = PlanInForce(topology)
    batches = Batches(topology, in_force, settings(tmp_path))
    for batch, value in enumerate((8, 0, 0, 0, 0)):
        tasks = {
            "numbers": 1,
            "halve": 3 - batch % 3,
        }  # what three tasks carried over is sent by two, then by one
        in_force.set(Placement("p", tasks, places(tasks, ("a",))))
        rehearse_batch(batches, batch, {"numbers": pa.table({"value": [value] * 6})})
    assert came == [(1, [0] * 6), (2, [0] * 6), (3, [0] * 6 + [1] * 6), (4, [0] * 6)]


def test_local_or_shuffle_stays_in_the_worker_of_the_plan(tmp_path: Path) -> None:
    topology = (
        Topology("t").spout("n", numbers(1), tasks=3).bolt("here", lambda t: None, inputs={"n": "local-or-shuffle"}, tasks=4)
    )  # fmt: skip
    where = [("a", 0), ("b", 0), ("c", 0), ("a", 0), ("a", 0), ("a", 1), ("b", 0)]
    every = [("n", 0), ("n", 1), ("n", 2), ("here", 0), ("here", 1), ("here", 2), ("here", 3)]
    in_force = PlanInForce(
        topology, Placement("p", {"n": 3, "here": 4}, dict(zip(every, where, strict=True)))
    )
    (done,) = rehearse(
        topology, [{"n": pa.table({"value": list(range(24))})}], settings(tmp_path), in_force
    )
    sent = {
        r.task: {number for _, number, _, _ in r.edges} for r in done.reports if r.component == "n"
    }
    assert sent == {"n.1": {0, 1}, "n.2": {3}, "n.3": {0, 1, 2, 3}}  # c has none of its own: to all


def test_input_from_an_earlier_level_waits_at_its_place(tmp_path: Path) -> None:
    def mark(table: pa.Table, source: str) -> pa.Table:
        return table.append_column("source", pa.array([source] * table.num_rows))

    came: list[pa.Table] = []
    topology = (
        Topology("t").spout("a", numbers(1), tasks=2).bolt("b", lambda t: t, inputs={"a": "shuffle"}, tasks=3)
        .bolt("c", lambda t: t, inputs={"b": "shuffle"}, tasks=2).bolt("d", mark, inputs={"a": "shuffle", "b": "all", "c": "global"}, tasks=2)
        .sink("d", Callback(lambda batch, table: came.append(table)))
    )  # fmt: skip
    rehearse(topology, [{"a": pa.table({"value": list(range(10))})}], settings(tmp_path))
    rows = came[0].to_pylist()
    for source, times in (("a", 1), ("b", 2), ("c", 1)):
        assert sorted(row["value"] for row in rows if row["source"] == source) == sorted(
            list(range(10)) * times
        )


def test_streams_have_their_own_subscribers(tmp_path: Path) -> None:
    def sieve(row: dict[str, int]) -> Iterator[Any]:
        yield ("odd", row) if row["value"] % 2 else row

    came: dict[str, list[int]] = {}

    def keep(name: str) -> Callback:
        return Callback(
            lambda batch, table: came.__setitem__(name, sorted(table["value"].to_pylist()))
        )

    topology = (
        Topology("t").spout("n", numbers(1)).bolt("sieve", sieve, inputs={"n": "shuffle"}, form="tuple")
        .bolt("odd", lambda t: t, inputs={"sieve": {"stream": "odd"}}).bolt("even", lambda t: t, inputs={"sieve": "shuffle"})
        .sink("odd", keep("odd")).sink("even", keep("even")).sink("sieve", keep("stream"), stream="odd")
    )  # fmt: skip
    rehearse(topology, [{"n": pa.table({"value": [1, 2, 3, 4]})}], settings(tmp_path))
    assert came == {"odd": [1, 3], "even": [2, 4], "stream": [1, 3]}


def test_state_behind_a_global_grouping_is_held_by_the_first_task(tmp_path: Path) -> None:
    came: list[Any] = []
    total = Keyed(pa.schema([("key", pa.string()), ("sum", pa.int64())]), ("key",))

    def add(table: pa.Table, state: pa.Table, task: int) -> tuple[pa.Table, pa.Table]:
        before = sum(state["sum"].to_pylist())
        new = pa.table({"key": ["all"], "sum": [before + sum(table["value"].to_pylist())]})
        return new.append_column("task", pa.array([task])), new

    topology = (
        Topology("t").spout("n", numbers(1), tasks=3).bolt("add", add, inputs={"n": "global"}, tasks=3, state=total)
        .sink("add", Callback(lambda batch, table: came.extend(table.to_pylist())))
    )  # fmt: skip
    rehearse(
        topology,
        [{"n": pa.table({"value": [1, 2, 3]})}, {"n": pa.table({"value": [10]})}],
        settings(tmp_path),
    )
    assert came == [{"key": "all", "sum": 6, "task": 1}, {"key": "all", "sum": 16, "task": 1}]


def test_a_changed_plan_file_is_the_new_plan_and_a_bad_one_is_refused(tmp_path: Path) -> None:
    topology, file, said = word_count(), tmp_path / "plan.json", list[str]()

    def write(node: str, count: int) -> None:
        tasks = {"sentence": 2, "split": 3, "count": count}
        runs = {name: [[node, 0, 1, n]] for name, n in tasks.items()}
        file.write_text(
            json.dumps(
                {
                    "format": "headrace/1",
                    "plan": {"placement": runs, "tasks": tasks},
                    "version": node * count,
                }
            )
        )

    write("a", 2)
    in_force = PlanInForce(topology, file=file, say=said.append)
    assert (now := in_force.current()) is not None
    assert now.node(("count", 1)) == "a"
    write("b", 4)
    assert (now := in_force.current()) is not None
    assert (now.node(("count", 3)), now.tasks["count"]) == ("b", 4)
    file.write_text("{")
    assert in_force.current() is now
    assert "a new plan" in said[0]
    assert "is refused" in said[1]


def test_a_plan_without_cores_is_refused_before_the_start() -> None:
    topology, one_node = word_count(), plan(nodes=("a",))
    check_cores(topology, one_node, {"a": 3})
    with pytest.raises(Infeasible) as refusal:
        check_cores(topology, one_node, {"a": 2})
    assert (refusal.value.needed, refusal.value.available, refusal.value.task) == (3, 2, "split.3")
    assert (
        "3 tasks at once on node a (split.1, split.2, split.3), which has 2 cores"
        in refusal.value.message
    )
    with pytest.raises(
        Infeasible, match=r"puts sentence\.1 on node a, which is not there; there are: b"
    ):
        check_cores(topology, one_node, {"b": 9})
    with pytest.raises(HeadraceError):
        PlanInForce(topology, one_node, check=lambda p: check_cores(topology, p, {"a": 2}))
