"""Time, machines and memory of an application."""

from __future__ import annotations

from headrace.observe.spark_log.application import (
    Executor,
    Run,
    executors_at_peak,
    memory_in_mb,
    observed_seconds,
)


def test_time_is_what_a_batch_worked_and_what_a_stream_lasted() -> None:
    runs = [
        Run(0, 1000, 1, 1, 1, 0, 0),
        Run(500, 2000, 1, 1, 1, 0, 0),
        Run(10000, 11000, 1, 1, 1, 0, 0),
    ]
    assert observed_seconds(runs, streaming=False) == 3.0
    assert observed_seconds(runs, streaming=True) == 11.0


def test_the_cluster_is_as_large_as_it_was_at_one_moment() -> None:
    a, b, c = (
        Executor("1", "h", 2, 1024, 0, removed_ms=50),
        Executor("2", "h", 2, 1024, 10),
        Executor("3", "h", 2, 1024, 60),
    )
    assert executors_at_peak([a, b, c]) == (a, b)


def test_memory_settings_are_read() -> None:
    assert [memory_in_mb(text) for text in ("4g", "512m", "1GB", "2t", "700", None, "lots")] == [
        4096,
        512,
        1024,
        2097152,
        700,
        None,
        None,
    ]
