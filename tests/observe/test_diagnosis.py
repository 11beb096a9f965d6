"""What is wrong with an application: the executor by name, and the numbers."""

from __future__ import annotations

from dataclasses import replace

from headrace.observe.diagnosis import diagnose
from headrace.observe.spark_log.application import (
    Application,
    ComponentFigures,
    Executor,
    Run,
    TaskTotals,
)
from headrace.observe.spark_log.components import Component


def measured(name: str, on: dict[str, TaskTotals], run: Run) -> ComponentFigures:
    total = TaskTotals()
    for work in on.values():
        total += work
    component = Component(name, (0,), ("source",), 4, True, (), None)
    return ComponentFigures(component, total, on, (run,), ())


def test_the_diagnosis_names_the_executor_and_the_numbers() -> None:
    even = Run(0, 10_000, 4, 1000, 900, 25, 100)
    work = {
        "1": TaskTotals(
            succeeded=2,
            run_ms=19_000,
            cpu_ms=8000,
            gc_ms=4000,
            remote_bytes=3e6,
            local_bytes=1e6,
            spilled_disk=5e6,
            spilled_memory=9e6,
        ),
        "2": TaskTotals(succeeded=2, failed=1, error="ValueError", wasted_ms=500, run_ms=1000),
    }
    executors = (
        Executor("1", "a", 2, 1024, 0),
        Executor("2", "b", 2, 1024, 0, removed_ms=8000, removed_reason="heartbeat"),
    )
    application = Application(
        "x", "x", "4", True, executors, (measured("s", work, even),), 10.0, ()
    )
    said = {f"{finding.kind} {finding.where}": finding for finding in diagnose(application)}
    assert set(said) == {
        "stage s", "waiting s", "remote application", "remote s", "spill s", "failed s",
        "gc executor-1", "lost executor-2", "idle executor-2",
        "overloaded executor-1",
    }  # fmt: skip
    assert said["remote s"].numbers["share"] == 0.75
    assert said["waiting s"].numbers["share"] == 0.6
    assert said["overloaded executor-1"].numbers["busy"] == 0.95
    assert said["idle executor-2"].numbers["busy"] == 1500 / 16000
    assert (
        said["failed s"].message == "1 of 5 task attempts failed (ValueError), 0.5 s of work lost"
    )
    assert "heartbeat" in said["lost executor-2"].message


def test_an_even_stage_is_not_called_skewed() -> None:
    executors = (Executor("1", "a", 2, 1024, 0),)
    on = {"1": TaskTotals(succeeded=4, run_ms=15_000, cpu_ms=12_000)}

    def kinds(run: Run) -> set[str]:
        return {
            finding.kind
            for finding in diagnose(
                Application("x", "x", "4", True, executors, (measured("s", on, run),), 10.0, ())
            )
        }

    even = Run(0, 10_000, 4, 1000, 900, 25, 100)
    assert kinds(even) == {"stage"}
    assert kinds(replace(even, slowest_ms=2000, slowest_records=70)) == {"stage", "skew"}
    assert kinds(replace(even, slowest_ms=99, median_ms=9)) == {"stage"}  # nobody would feel it


def found(*, work: TaskTotals, executors: tuple[Executor, ...], run: Run) -> dict[str, float]:
    application = Application(
        "x", "x", "4", True, executors, (measured("s", {"1": work}, run),), 10.0, ()
    )
    return {
        f"{finding.kind} {name}": number
        for finding in diagnose(application)
        for name, number in finding.numbers.items()
    }


EVEN = Run(0, 10_000, 4, 1000, 900, 25, 100)


def test_a_slow_task_that_reads_no_more_than_others_is_no_skew() -> None:
    one = (Executor("1", "a", 2, 1024, 0),)
    work = TaskTotals(succeeded=4, run_ms=15_000, cpu_ms=12_000)
    said = found(work=work, executors=one, run=replace(EVEN, slowest_ms=5000))
    assert "straggler ratio" in said
    assert "skew ratio" not in said


def test_an_executor_that_dynamic_allocation_removed_is_not_lost() -> None:
    work = TaskTotals(succeeded=4, run_ms=15_000, cpu_ms=12_000)
    for reason, lost in (
        ("Executor killed by driver.", False),
        ("Container c_2 exited from explicit termination request.", False),
        ("worker lost", True),
    ):
        gone = Executor("2", "b", 2, 1024, 0, removed_ms=8000, removed_reason=reason)
        executors = (Executor("1", "a", 2, 1024, 0), gone)
        assert ("lost after_s" in found(work=work, executors=executors, run=EVEN)) == lost


def test_no_share_is_above_one_and_cpu_that_is_not_counted_is_unknown() -> None:
    short = (Executor("1", "a", 1, 1024, 9000),)  # a clock that is not the driver's
    work = TaskTotals(succeeded=4, run_ms=15_000, gc_ms=40_000, fetch_wait_ms=99_000)
    said = found(work=work, executors=short, run=EVEN)
    assert said["overloaded busy"] == 1.0
    assert said["gc share"] == 1.0
    assert "waiting share" not in said


def test_cpu_and_time_are_compared_of_the_same() -> None:
    """1 s of CPU in 1 s of running is all of it, though 3 s more were spent on deserialization."""
    one = (Executor("1", "a", 2, 1024, 0),)
    work = TaskTotals(succeeded=4, run_ms=4000, deserialize_ms=12_000, cpu_ms=6000)
    said = found(work=work, executors=one, run=EVEN)
    assert said["waiting share"] == 1 - 6 / 16
