"""Spark's own progress as a bar on stderr, with rates; where nobody is watching, nothing."""

from __future__ import annotations

import sys
import threading
from typing import Any, Self

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

EVERY_S = 0.5


class Bar:
    """A bar that follows Spark's jobs, and what streaming queries say about themselves."""

    def __init__(self, spark: SparkSession, console: Console | None = None) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rates]}"),
            TimeElapsedColumn(),
        )
        console = console or Console(file=sys.stderr)
        self._progress = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._progress.add_task("starting", total=None, rates="")
        self._ended = threading.Event()
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._rows = 0
        self._seen: set[tuple[str, int]] = set()

    def streaming(self, kind: str, said: dict[str, Any]) -> None:
        """Take in a streaming query's progress: rows so far, and how many a second."""
        if (kind, said["batchId"]) not in self._seen:
            self._seen.add((kind, said["batchId"]))
            self._rows += said["numInputRows"]
        rates = f"{self._rows:,} rows, {said.get('processedRowsPerSecond') or 0:,.0f} rows/s"
        self._progress.update(
            self._task, description=f"{kind}, batch {said['batchId']}", rates=rates
        )

    def __enter__(self) -> Self:
        self._progress.start()
        self._follower.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._follower.join()
        self._progress.stop()

    def _follow(self) -> None:
        while not self._ended.wait(EVERY_S):
            stages = [self._tracker.getStageInfo(i) for i in self._tracker.getActiveStageIds()]
            parts = sum(s.numTasks for s in stages if s)
            done = sum(s.numCompletedTasks for s in stages if s)
            self._progress.update(self._task, total=parts or None, completed=done)
