"""Streaming queries: what their reports say, and the rate that the replay says they sustain."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.advise.report import Advice, advise_on
from tests.advise.builders import LogBook, ms

QUERY = "11111111-2222-3333-4444-555555555555"


def stream_app(
    takes: float, interval: float, rows: int, batches: int = 10, **report: Any
) -> Advice:
    """2 slots; every batch is two tasks of `takes` seconds for `rows` rows, and 0.1 s around."""
    book = LogBook()
    book.executor("1", 2)
    for n in range(batches):
        start = n * max(interval, takes + 0.1)
        properties = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(n)}
        book.job(n, start + 0.05, start + 0.05 + takes, {n: []}, properties)
        span = (start + 0.05, start + 0.05 + takes)
        book.stage(n, *span, [span, span], records=[rows // 2] * 2)
        progress = {
            "id": QUERY,
            "name": "clicks",
            "batchId": n,
            "timestamp": datetime.fromtimestamp(ms(start) / 1000, UTC).isoformat(),
            "durationMs": {"triggerExecution": round(1000 * (takes + 0.1)), "addBatch": 1},
            "sources": [{"numInputRows": rows, "inputRowsPerSecond": "NaN"}],
            "stateOperators": [],
            **{k: v[n] if isinstance(v, list) else v for k, v in report.items()},
        }
        name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
        book.events.append({"Event": name, "progress": progress})
    book.end(batches * max(interval, takes + 0.1))
    return advise_on(book.trace())


def test_rates_come_from_the_reports() -> None:
    (stream,) = stream_app(takes=0.9, interval=2.0, rows=1000).streams
    assert stream.name == "clicks"
    assert stream.batch_s == pytest.approx(1.0)
    assert stream.interval_s == pytest.approx(2.0)
    assert stream.rows_per_s == pytest.approx(500)


def test_the_largest_rate_fills_the_trigger_interval() -> None:
    """0.1 s around, and 0.05 + 0.85 x seconds of work: 2 s hold 1.85 / 0.85 times the rows."""
    (stream,) = stream_app(takes=0.9, interval=2.0, rows=1000).streams
    assert stream.sustained_rows_per_s == pytest.approx(500 * 1.85 / 0.85, rel=0.01)


def test_more_executors_sustain_more_only_with_more_tasks() -> None:
    (stream,) = stream_app(takes=0.9, interval=2.0, rows=1000).streams
    rates = {executors: rate for executors, _, rate in stream.sustained_on}
    assert rates[4] == pytest.approx(rates[1])  # two tasks have their slots already


def test_a_query_that_falls_behind_is_told_and_gets_limits() -> None:
    metrics = [{"avgOffsetsBehindLatest": str(1000 * n)} for n in range(10)]
    sources = [
        [{"numInputRows": 1000, "metrics": m, "endOffset": {"t": {"0": 1}}}] for m in metrics
    ]
    advice = stream_app(takes=1.9, interval=1.0, rows=1000, sources=sources)
    found = {f.kind for f in advice.findings}
    assert "backlog" in found
    assert "trigger" in found
    settings = {s.name: s.value for s in advice.settings}
    assert settings["trigger interval"] == "3 seconds"
    assert int(settings["maxOffsetsPerTrigger"]) > 0
    assert "driver" not in found  # between batches a driver waits for its trigger


def test_committing_state_is_told_by_its_share() -> None:
    state = [{"numRowsTotal": 5000, "memoryUsedBytes": 2 << 30, "commitTimeMs": 2000}]
    state[0]["numShufflePartitions"] = 2
    advice = stream_app(takes=1.9, interval=4.0, rows=1000, stateOperators=[state] * 10)
    (stream,) = advice.streams
    assert stream.commit_share == pytest.approx(0.5)
    assert "state-commit" in {f.kind for f in advice.findings}
    settings = {s.name: s.value for s in advice.settings}
    assert settings["spark.sql.streaming.stateStore.providerClass"].endswith("StateStoreProvider")


def test_a_query_that_keeps_up_back_to_back_is_not_blamed() -> None:
    advice = stream_app(takes=0.3, interval=0.4, rows=100)
    assert "trigger" not in {f.kind for f in advice.findings}
