"""The document of an application: every source emits, and streams bring state and batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import headrace as hr
from headrace.observe.spark_log.application import (
    Application,
    ComponentFigures,
    Executor,
    Run,
    TaskTotals,
)
from headrace.observe.spark_log.components import Component
from headrace.observe.spark_log.document import document_of
from headrace.observe.spark_log.trace import QueryProgress

RUN = Run(0, 10_000, 4, 1000, 900, 25, 100)
NONE = TaskTotals(succeeded=20, cpu_ms=4000, run_ms=5000)


def figures(
    name: str, work: TaskTotals, *inputs: str, query: str | None = None
) -> ComponentFigures:
    operators = ("StateStoreRDD",) if inputs else ("Scan",)
    component = Component(name, (0,), inputs, 4, True, operators, query)
    return ComponentFigures(component, work, {"1": work}, (RUN,), ())


def application(*components: ComponentFigures, **more: Any) -> Application:
    executors = (Executor("1", "a", 4, 4096, 0),)
    return Application("x", "x", "4", True, executors, components, 10.0, (), **more)


def report(batch: int) -> QueryProgress:
    return QueryProgress(
        query="q",
        name="clicks",
        batch=batch,
        at_ms=2000 * batch,
        input_rows=100,
        input_per_s=None,
        processed_per_s=None,
        duration_ms={"triggerExecution": 900.0, "addBatch": 600.0},
        state=({"memoryUsedBytes": 8 << 20},),
        sources=(),
        sink=None,
    )


def test_a_source_that_counts_no_records_emits_its_tasks() -> None:
    document, notes = document_of(application(figures("scan", NONE)))
    assert document["topology"]["components"]["scan"]["rate"] == 2.0
    assert any("scan: Spark counted no records" in note for note in notes)
    assert hr.place(hr.case(document)).report.feasible


def test_a_source_that_counts_records_emits_them() -> None:
    work = replace(NONE, source_records=500.0)
    document, notes = document_of(application(figures("scan", work)))
    assert document["topology"]["components"]["scan"]["rate"] == 50.0
    assert not any("counted no records" in note for note in notes)


def test_a_stream_brings_its_state_and_its_batches() -> None:
    source = figures("read", replace(NONE, source_records=500.0), query="q")
    keyed = figures("count", replace(NONE, shuffle_records=500.0), "read", query="q")
    reports = tuple(report(batch) for batch in range(6))
    document, _ = document_of(application(source, keyed, progress=reports))
    components = document["topology"]["components"]
    assert components["count"]["state_mb"] == 2.0
    assert "state_mb" not in components["read"]
    judge = document["options"]["judge"]
    assert judge == {"batch_interval_s": 2.0, "batch_overhead_s": 0.3}
    plan = hr.place(hr.case(document), objective="batch")
    assert plan.report.batch_seconds is not None
    assert plan.report.batch_seconds > 0.3
