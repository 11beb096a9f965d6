"""The lab's jobs: each gets a row, a failure stops no other, a run goes on where it ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.errors import InvalidInput
from headrace.lab.families import FAMILIES, case, cases
from headrace.lab.fan_out import fan_out
from headrace.lab.jobs import failed_row, jobs, results, run, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_failure_stands_in_its_place_and_stops_nobody(spark: SparkSession) -> None:
    def inverse(number: int) -> float:
        return 1 / number

    found = fan_out(spark, inverse, [1, 2, 0, 4], partitions=2)
    assert [outcome.result for outcome in found] == [1.0, 0.5, None, 0.25]
    assert found[2].error is not None
    assert found[2].error.startswith("ZeroDivisionError: division by zero (inverse")
    assert fan_out(spark, inverse, []) == []


def test_a_run_is_taken_up_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    wanted = jobs(cases("muhammad")[:3], ["storm-even", "a3-storm"])
    said: list[tuple[int, int]] = []
    run(spark, wanted[:2], tmp_path)
    rows = run(
        spark, wanted, tmp_path, progress=lambda done, total: said.append((done, total)), at_once=3
    )
    assert said == [(2, 6), (5, 6), (6, 6)]
    assert [(row["problem"], row["scheduler"]) for row in rows] == [
        (job.case.name, job.scheduler) for job in wanted
    ]
    assert {row["status"] for row in rows} == {"feasible"}
    assert len(list(tmp_path.glob("*.parquet"))) == 3


def test_a_refusal_is_a_row_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    components = {"source": {"spout": True, "cpu": 900}}
    too_large = case(
        "own",
        "too large",
        {"topology": {"components": components}, "cluster": {"nodes": {"n": {"cpu": 100}}}},
    )
    [row] = run(spark, jobs([too_large], ["headrace"]), tmp_path)
    assert row["status"] == "refused"
    assert "900" in row["reason"]


def test_what_failed_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    [job] = jobs(cases("muhammad")[:1], ["storm-even"])
    write(tmp_path, [failed_row(job, "out of memory")])
    [row] = run(spark, [job], tmp_path)
    assert row["status"] == "feasible"
    assert len(results(tmp_path)) == 1


def test_a_file_that_is_not_ours_is_named(tmp_path: Path) -> None:
    (tmp_path / "results-x.parquet").write_text("not parquet")
    with pytest.raises(InvalidInput, match=r"results-x\.parquet: not results of the lab"):
        results(tmp_path)


def test_every_family_has_problems_of_distinct_names_and_wrong_names_are_told() -> None:
    for family in FAMILIES:
        names = [c.name for c in cases(family)]
        assert names
        assert len(set(names)) == len(names)
    with pytest.raises(InvalidInput, match="did you mean `muhammad`"):
        cases("muhamad")
