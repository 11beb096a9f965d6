"""What a Spark job would do elsewhere: from its event log, a server, or the running session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.advise.live import Attached
from headrace.advise.live import attach as attach_to
from headrace.advise.report import Advice, advise_on
from headrace.advise.sources import read_source
from headrace.errors import InvalidInput
from headrace.library.case import Source, as_case
from headrace.model.spans import in_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Advice", "Attached", "advise", "attach"]


def advise(
    log: str | Path,
    *,
    app: str | None = None,
    deadline: float | str | None = None,
    budget: float | None = None,
    catalog: Source | None = None,
) -> Advice:
    """Replay an event log and say what to change.

    `log` is a file, a folder, or the address of a history server or a driver. With a deadline
    (seconds, or `10m`) the cheapest settings that keep it, with a budget the fastest, else the knee
    of the curve. The budget is in core-hours, or in the money of the `catalog`, whose prices are
    per hour.
    """
    deadline_s = in_seconds(deadline) if isinstance(deadline, str) else deadline
    if isinstance(deadline, str) and deadline_s is None:
        raise InvalidInput(f"`{deadline}` is no time; give seconds, or such as 10m")
    return advise_on(
        read_source(str(log), app),
        deadline_s=deadline_s,
        budget=budget,
        catalog=prices(catalog),
    )


def prices(catalog: Source | None) -> Mapping[str, Any] | None:
    """The machine types of a catalog; None: no prices."""
    return None if catalog is None else as_case(catalog).inputs.document.catalog


def attach(spark: SparkSession, folder: str | Path | None = None) -> Attached:
    """Listen to a running session: `attached.advice()` says what its log would say until now.

    The log and our telemetry go to the folder; absent, to a temporary one.
    """
    return attach_to(spark, folder)
