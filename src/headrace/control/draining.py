"""Nodes that are to be emptied, for maintenance: a file in the run's folder that the loop reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.control.history import Entry, find_plan
from headrace.model.files import write_whole

NAME = "drained.json"


def drained_nodes(store: Path) -> frozenset[str]:
    """The nodes that plans may not use."""
    try:
        return frozenset(json.loads((store / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return frozenset()


def set_drained(store: Path, nodes: frozenset[str]) -> None:
    """Have the loop empty these nodes and no others."""
    write_whole(store / NAME, json.dumps(sorted(nodes)), durable=True)


def nodes_in_use(history: Sequence[Entry]) -> set[str]:
    """The nodes that the plan in force uses, by the last decision."""
    plan = find_plan(history, history[-1].plan) if history else None
    placement: dict[str, list[list[Any]]] = {} if plan is None else plan["placement"]
    return {run[0] for runs in placement.values() for run in runs}
