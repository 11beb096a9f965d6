"""The progress reports of streaming queries, from an event or from a listener's JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headrace.observe.spark_log.trace import QueryProgress


def progress_of(report: Mapping[str, Any]) -> QueryProgress:
    """A report as Spark writes it; the totals are those of its sources where it leaves them out."""
    sources = tuple(report.get("sources") or ())
    rows = report.get("numInputRows")
    if rows is None:
        rows = sum(float(source.get("numInputRows") or 0) for source in sources)
    moment = datetime.fromisoformat(str(report["timestamp"]))
    return QueryProgress(
        query=str(report.get("id") or report.get("runId")),
        name=report.get("name"),
        batch=int(report.get("batchId") or 0),
        at_ms=int(moment.timestamp() * 1000),
        input_rows=number(rows) or 0.0,
        input_per_s=_rate(report, sources, "inputRowsPerSecond"),
        processed_per_s=_rate(report, sources, "processedRowsPerSecond"),
        duration_ms={
            k: took
            for k, v in (report.get("durationMs") or {}).items()
            if (took := number(v)) is not None
        },
        state=tuple(report.get("stateOperators") or ()),
        sources=sources,
        sink=(report.get("sink") or {}).get("description"),
    )


def _rate(report: Mapping[str, Any], sources: tuple[Any, ...], name: str) -> float | None:
    if (whole := number(report.get(name))) is not None:
        return whole
    found = [number(source.get(name)) for source in sources]
    known = [rate for rate in found if rate is not None]
    return sum(known) if known else None


def number(value: Any) -> float | None:
    """A finite number; Spark writes NaN and Infinity as words where nothing was counted."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None
