"""What a Storm cluster's settings mean for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.document import Grouping
from headrace.model.production import GROUPINGS

NOT_LOAD_AWARE = "topology.disable.loadaware.messaging"


def is_load_aware(conf: Mapping[str, Any]) -> bool:
    """Whether a shuffle prefers near tasks, Storm's default since 2.0."""
    return not conf.get(NOT_LOAD_AWARE)


def grouping_of(name: str, load_aware: bool) -> Grouping:
    """Our name of one of Storm's groupings."""
    if name == "shuffle" and load_aware:
        return "load-aware"
    return GROUPINGS.get(name, "custom")


def knows_resources(conf: Mapping[str, Any]) -> bool:
    """Whether the cluster's scheduler looks at CPU and memory.

    The page says it in `schedulerDisplayResource`, but that is a setting of its own and off unless
    someone turned it on.
    """
    scheduler = str(conf.get("storm.scheduler") or "")
    return "ResourceAware" in scheduler or "headrace" in scheduler
