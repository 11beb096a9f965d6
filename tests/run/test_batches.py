"""Batches that fail: the bolt is named, the run stops or the batch is put aside."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.run import Parquet, Topology
from headrace.run.batches import BoltFailed, Settings
from headrace.run.rehearsal import rehearse
from headrace.run.sources import numbers
from tests.run.topologies import (
    BY_WORD,
    COUNTS,
    count,
    final_counts,
    numbered,
    sentences,
    settings,
    split,
)


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
        f"component `bolt`, task {error.value.task}, batch 0: ValueError: thirteen "
        f"(test_batches.py:" in error.value.message
    )
    assert came == []


def test_quarantine_keeps_the_batch_aside_and_goes_on(tmp_path: Path) -> None:
    def picky(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        if "gorse" in table["word"].to_pylist():
            raise ValueError("no gorse")
        return count(table, state)

    topology = (
        Topology("t")
        .spout("sentence", numbers(1), sentences)
        .bolt("split", split, inputs={"sentence": "shuffle"})
        .bolt("count", picky, inputs={"split": BY_WORD}, tasks=2, state=COUNTS)
        .sink("count", Parquet(str(tmp_path / "out")))
    )
    inputs = [{"sentence": pa.table({"value": [n]})} for n in (7, 6, 14)]
    done = rehearse(topology, inputs, settings(tmp_path, on_error="quarantine"))
    assert [d.failure is None for d in done] == [True, False, True]
    assert final_counts(tmp_path / "out") == {"amber": 8}
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == [
        "_run",
        "_schema",
        "batch=0",
        "batch=2",
    ]
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
            BoltFailed, match=rf"task b\.1, batch 0: {words} \(test_batches\.py:{line}\)"
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
