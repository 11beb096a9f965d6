"""Settings: what is advised, and what is left alone since the log cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.advise.report import Advice, advise_on
from headrace.advise.submit import executor_pod, spark_settings
from headrace.errors import Unsupported
from tests.advise.builders import LogBook, event, two_stage_app, waves

GB = 1 << 30


def values(advice: Advice) -> dict[str, str]:
    return {s.name: s.value for s in advice.settings}


def with_peaks(book: LogBook, **peaks: int) -> LogBook:
    fields: dict[str, Any] = {"Executor ID": "1", "Executor Metrics": peaks}
    book.events.append(event("StageExecutorMetrics", **fields))
    return book


def test_memory_is_lowered_to_what_the_peaks_need() -> None:
    book = with_peaks(
        two_stage_app({"spark.executor.memory": "16g"}),
        OnHeapUnifiedMemory=2 * GB,
        JVMHeapMemory=5 * GB,
    )
    # 2 GB x 1.2 / 0.6 + 300 MB = 4,396 MB; 5 GB x 1.1 = 5,632 MB, a multiple of 256 already.
    assert values(advise_on(book.trace()))["spark.executor.memory"] == "5632m"


def test_without_peaks_nothing_is_said_about_memory() -> None:
    advice = advise_on(two_stage_app({"spark.executor.memory": "16g"}).trace())
    assert "spark.executor.memory" not in values(advice)
    assert any(line.startswith("memory: the log has no peaks") for line in advice.unknown)


def test_memory_is_not_lowered_where_tasks_spill() -> None:
    book = LogBook(settings={"spark.executor.memory": "16g"})
    book.executor("1", 2)
    book.job(0, 0, 4, {0: []})
    book.stage(0, 0, 4, waves(8, 2, 1, 0), metrics={"Disk Bytes Spilled": 10**9})
    book.end(4)
    advice = advise_on(with_peaks(book, OnHeapUnifiedMemory=GB, JVMHeapMemory=GB).trace())
    assert "spark.executor.memory" not in values(advice)
    assert any("spilled" in line for line in advice.unknown)


def test_overhead_is_raised_where_the_jvm_held_more() -> None:
    book = with_peaks(two_stage_app({"spark.executor.memory": "1g"}), JVMOffHeapMemory=GB)
    assert values(advise_on(book.trace()))["spark.executor.memoryOverhead"] == "1280m"


def test_dynamic_allocation_gets_a_limit_not_a_count() -> None:
    found = values(advise_on(two_stage_app({"spark.dynamicAllocation.enabled": "true"}).trace()))
    assert "spark.dynamicAllocation.maxExecutors" in found
    assert "spark.executor.instances" not in found


def test_dynamic_allocation_does_not_start_with_more_than_its_limit() -> None:
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "9",
        "spark.executor.instances": "50",
    }
    found = values(advise_on(two_stage_app(settings).trace()))
    most = found["spark.dynamicAllocation.maxExecutors"]
    assert found["spark.dynamicAllocation.initialExecutors"] == most
    assert found["spark.executor.instances"] == most
    assert "spark.dynamicAllocation.minExecutors" not in found


def test_a_local_application_is_advised_on_its_cores() -> None:
    book = LogBook(settings={"spark.master": "local[2]"})
    book.executor("driver", 2)
    book.job(0, 0, 8, {0: []})
    book.stage(0, 0, 8, waves(8, 2, 2, 0), executor="driver")
    book.end(8)
    advice = advise_on(book.trace())
    assert values(advice)["spark.master"].startswith("local[")
    with pytest.raises(Unsupported, match="local mode"):
        executor_pod(advice)


def test_fewer_partitions_where_tasks_are_mostly_overhead() -> None:
    book = LogBook(
        settings={"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "200"}
    )
    book.executor("1", 2)
    book.job(0, 0, 12, {0: [], 1: [0]})
    book.stage(0, 0, 2, waves(4, 2, 1, 0))
    sizes = [1 + i % 3 for i in range(200)]
    spans = waves(200, 2, 0.1, 2)
    metrics = {"Executor Run Time": 10}
    book.stage(1, 2, 12, spans, parents=[0], records=sizes, metrics=metrics)
    book.end(12)
    advice = advise_on(book.trace())
    (setting,) = (s for s in advice.settings if s.name == "spark.sql.shuffle.partitions")
    assert int(setting.value) <= 6
    assert "expected" in setting.reason


def test_what_is_not_known_is_not_exported() -> None:
    advice = advise_on(two_stage_app().trace())
    exported = spark_settings(advice)
    assert "spark.executor.memory" not in exported["conf"]
    assert any("memory" in note for note in exported["notes"])
    pod = executor_pod(advice)
    assert "affinity" not in pod["spec"]
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"


def test_an_old_log_says_that_cpu_is_not_counted() -> None:
    book = LogBook(version="1.4.0")
    book.executor("1", 2)
    book.job(0, 0, 4, {0: []})
    book.stage(0, 0, 4, waves(8, 2, 1, 0), metrics={"Executor CPU Time": None})
    book.end(4)
    assert any(line.startswith("CPU:") for line in advise_on(book.trace()).unknown)
