"""The event log of a Spark application as a headrace/1 document, with a diagnosis.

find_logs(spark, path)          the applications there are
spark_log(spark, path, app)     document, diagnosis and notes of one of them
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput
from headrace.observe.diagnosis import Finding, diagnose
from headrace.observe.spark_log.application import Application
from headrace.observe.spark_log.document import document_of
from headrace.observe.spark_log.files import Log, choose, find_logs, head
from headrace.observe.spark_log.read import read_application

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Imported", "find_logs", "list_applications", "spark_log"]


@dataclass(frozen=True, slots=True)
class Imported:
    """An application as a document, what is wrong with how it runs, and what could not be known."""

    application: Application
    document: dict[str, Any]
    diagnosis: tuple[Finding, ...]
    notes: tuple[str, ...]


def spark_log(spark: SparkSession, path: str, app: str | None = None) -> Imported:
    """Read the event log at a path; `app` chooses where there are several applications."""
    logs = find_logs(spark, path)
    if app is None and len(logs) > 1:
        raise InvalidInput(
            f"{path}: holds the logs of {len(logs)} applications",
            fix=f"--app ID, such as {logs[0].app}",
        )
    application = read_application(spark, choose(logs, app, path) if app is not None else logs[0])
    document, notes = document_of(application)
    return Imported(
        application, document, tuple(diagnose(application)), (*application.notes, *notes)
    )


def list_applications(spark: SparkSession, logs: list[Log]) -> list[dict[str, Any]]:
    """Each application's id, name and start, from the first lines of its log."""
    rows: list[dict[str, Any]] = []
    for log in logs:
        started: dict[str, Any] = {}
        for line in head(spark, log):
            if '"SparkListenerApplicationStart"' in line[:60]:
                with suppress(ValueError):  # cut off: the id from the file's name is all there is
                    started = json.loads(line)
        row = {
            "id": log.app,
            "name": started.get("App Name"),
            "started_ms": started.get("Timestamp"),
            "bytes": log.bytes,
            "in_progress": log.in_progress,
        }
        rows.append(row)
    return rows
