"""Small simulated worlds for the tests of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.control.loop import step
from headrace.control.planning import LoopSettings
from headrace.control.simulated import Simulated
from headrace.control.truth import Truth
from headrace.model.document import FORMAT
from headrace.model.read import Inputs, validated
from headrace.model.simulation_sections import Event
from headrace.model.workload import Workload
from headrace.planner import place


def word_count(rate: float = 4000, **sections: Any) -> Inputs:
    """Word count on four nodes of four cores: 0.6 ms of CPU for a sentence in all."""
    components = {
        "sentence": {"spout": True, "tasks": 2, "rate": rate, "bytes": 60},
        "split": {"tasks": 4, "inputs": {"sentence": "shuffle"}, "selectivity": 7, "bytes": 20},
        "count": {"tasks": 4, "inputs": {"split": {"grouping": "fields"}}, "state_mb": 5},
    }
    node = {"cpu": 400, "cores": 4, "slots": 2, "bandwidth_mbps": 1000}
    costs = {"sentence": 0.05, "split": 0.2, "count": 0.05}
    content = {
        "format": FORMAT,
        "topology": {"name": "word-count", "components": components},
        "cluster": {"nodes": {"n{1..4}": node}},
        "profile": {name: {"*": {"cpu_ms": cost}} for name, cost in costs.items()},
        "arrivals": {"kind": "constant"},
        **sections,
    }
    return validated(content, {})


def world_of(
    inputs: Inputs,
    events: Sequence[Event] = (),
    *,
    seconds: float = 1200.0,
    first: str = "storm-even",
    noise: float = 0.0,
    resizable: bool = False,
) -> Simulated:
    """A world that starts under a scheduler's plan."""
    start = place(Workload(inputs).problem(), first, bounded=False)
    return Simulated(Truth(inputs), start, seconds, events, noise=noise, resizable=resizable)


def run_all(world: Simulated, settings: LoopSettings) -> None:
    """Decide until the world is over."""
    while True:
        step(world, settings)
        if not world.wait(settings.interval_s):
            return
