"""Output: one run per folder, and nothing that no task reported."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import InvalidInput
from headrace.run import Parquet
from headrace.run.batches import Settings
from headrace.run.rehearsal import rehearse
from tests.run.topologies import values, word_count


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
