"""Make it so: topologies in Python that run on Spark under a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.model.topology import Keyed, Topology
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.run.sinks import Callback, Console, Parquet

__all__ = ["Callback", "Console", "Keyed", "Parquet", "Topology"]

SINKS = ("Callback", "Console", "Parquet")  # on demand: they need pyarrow


def __getattr__(name: str) -> Any:
    if name not in SINKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_spark(f"headrace.run.{name}")
    from headrace.run import sinks

    return getattr(sinks, name)
