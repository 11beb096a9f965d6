"""Make it so: topologies in Python that run on Spark under a plan."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headrace.model.topology import Keyed, Topology
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.run.batches import Settings
    from headrace.run.rehearsal import rehearse
    from headrace.run.sinks import Callback, Console, Parquet

__all__ = ["Callback", "Console", "Keyed", "Parquet", "Settings", "Topology", "rehearse"]

# On demand: they need pyarrow.
HOMES = {
    "Callback": "sinks",
    "Console": "sinks",
    "Parquet": "sinks",
    "Settings": "batches",
    "rehearse": "rehearsal",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_spark(f"headrace.run.{name}")
    return getattr(importlib.import_module(f"headrace.run.{HOMES[name]}"), name)
