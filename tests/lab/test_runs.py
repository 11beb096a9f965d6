"""Runs spread over processes and over Spark: the same bytes as one after another."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import headrace as hr
from headrace.errors import Unsupported
from headrace.lab.runs import over_cores, over_spark
from headrace.simulate.simulating import Spread, one_by_one, simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = hr.example("quickstart.yaml")


def result(spread: Spread, detail: str = "tuple") -> dict[str, object]:
    plan = hr.place(QUICK, by="storm-even")
    found = simulate(
        plan.problem, plan.assignment, seconds=0.5, runs=5, seed=7, detail=detail, spread=spread
    )
    return found.to_json()


@pytest.mark.parametrize("detail", ["tuple", "batch"])
def test_the_number_of_workers_changes_no_byte(detail: str) -> None:
    alone = result(one_by_one, detail)
    assert alone == result(over_cores(1), detail)
    assert alone == result(over_cores(2), detail)
    assert alone == result(over_cores(4), detail)


def test_spark_changes_no_byte(spark: SparkSession) -> None:
    assert result(one_by_one) == result(over_spark(spark))


def process_of(seed: int) -> Any:
    """Which process does the run of a seed."""
    return seed, os.getpid()


def test_runs_are_done_by_other_processes_in_the_order_of_their_seeds() -> None:
    found: list[Any] = over_cores(3)(process_of, range(6))
    assert [seed for seed, _ in found] == list(range(6))
    assert found[0][1] == os.getpid()
    assert all(process != os.getpid() for _, process in found[1:])


def test_a_refusal_in_a_worker_is_the_callers(spark: SparkSession) -> None:
    def refuse(seed: int) -> Any:
        if seed == 3:
            raise Unsupported("too much is pending", fix="fewer seconds")
        return seed

    with pytest.raises(Unsupported, match="too much is pending") as refused:
        over_cores(2)(refuse, range(5))
    assert refused.value.fix == "fewer seconds"
    with pytest.raises(Unsupported, match="too much is pending"):
        over_spark(spark)(refuse, range(5))


def test_without_a_worker_nothing_runs() -> None:
    with pytest.raises(hr.InvalidInput, match="0 workers: at least 1 is needed"):
        hr.simulate(hr.place(QUICK, by="storm-even"), runs=2, workers=0)
