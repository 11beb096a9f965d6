"""Batches without Spark: groupings, reports, cycles, streams."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.model.topology import Form
from headrace.run import Callback, Topology
from headrace.run.batches import Batches
from headrace.run.compiling import compile_batch
from headrace.run.placement import Placement, PlanInForce
from headrace.run.rehearsal import rehearse, rehearse_batch
from headrace.run.seats import Packet
from headrace.run.sources import numbers
from headrace.run.stages import stages
from headrace.run.state import Commit
from headrace.run.task import pack, run_seat
from tests.run.topologies import expected_counts, final_counts, places, settings, values, word_count


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


def test_a_task_sends_the_same_whatever_order_its_input_came_in(tmp_path: Path) -> None:
    topology = (
        Topology("t")
        .spout("n", numbers(1), tasks=3)
        .bolt("keep", lambda t: t, inputs={"n": "shuffle"})
        .bolt("end", lambda t: None, inputs={"keep": "shuffle"}, tasks=2)
    )
    order = stages(topology.components)
    ready = compile_batch(topology, order, None, Commit(-1), batch=0, attempt="a", folder=tmp_path)
    packets = [
        Packet(
            "keep",
            0,
            0,
            sender,
            2,
            pack(pa.table({"value": [sender, 10 + sender]})),
            pickle.dumps([((sender, 0), 2)]),
        )
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
        Topology("t")
        .spout("numbers", numbers(1))
        .bolt("halve", halve, tasks=2, inputs={"numbers": "shuffle", "halve": {"stream": "again"}})
        .sink(
            "halve",
            Callback(lambda batch, table: came.append((batch, sorted(table["value"].to_pylist())))),
        )
    )
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
        Topology("t")
        .spout("n", numbers(1), tasks=3)
        .bolt("here", lambda t: None, inputs={"n": "local-or-shuffle"}, tasks=4)
    )
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
        Topology("t")
        .spout("a", numbers(1), tasks=2)
        .bolt("b", lambda t: t, inputs={"a": "shuffle"}, tasks=3)
        .bolt("c", lambda t: t, inputs={"b": "shuffle"}, tasks=2)
        .bolt("d", mark, inputs={"a": "shuffle", "b": "all", "c": "global"}, tasks=2)
        .sink("d", Callback(lambda batch, table: came.append(table)))
    )
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
        Topology("t")
        .spout("n", numbers(1))
        .bolt("sieve", sieve, inputs={"n": "shuffle"}, form="tuple")
        .bolt("odd", lambda t: t, inputs={"sieve": {"stream": "odd"}})
        .bolt("even", lambda t: t, inputs={"sieve": "shuffle"})
        .sink("odd", keep("odd"))
        .sink("even", keep("even"))
        .sink("sieve", keep("stream"), stream="odd")
    )
    rehearse(topology, [{"n": pa.table({"value": [1, 2, 3, 4]})}], settings(tmp_path))
    assert came == {"odd": [1, 3], "even": [2, 4], "stream": [1, 3]}
