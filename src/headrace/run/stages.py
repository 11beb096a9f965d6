"""In which order a batch runs its components: levels of the graph, back edges of its cycles.

All components of a level run at once. An edge of a cycle that leads back delivers in the next
batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.document import Component
from headrace.model.levels import levels
from headrace.model.topology import subscriptions


@dataclass(frozen=True, slots=True)
class Stages:
    """Components level by level; spouts are level 0."""

    levels: tuple[tuple[str, ...], ...]
    back_edges: frozenset[tuple[str, str]]  # (from, to)
    waiting: tuple[tuple[str, ...], ...]  # per level: later components whose input is on the way

    @property
    def replaying(self) -> tuple[str, ...]:
        """Components whose output of the batch before is delivered at the start of this one."""
        return tuple(sorted({source for source, _ in self.back_edges}))


def stages(components: Mapping[str, Component]) -> Stages:
    """Levels by the longest way from a spout, without the edges that lead back."""
    targets: dict[str, dict[str, None]] = {name: {} for name in components}
    for source, target, _ in subscriptions(components):
        targets[source][target] = None
    level, back = levels(targets, {name for name, c in components.items() if c.spout})
    depth = max(level.values()) + 1
    rows = tuple(tuple(name for name in components if level[name] == at) for at in range(depth))
    # What comes over a back edge enters at level 0, where it is replayed.
    edges = [
        (0 if (s, t) in back else level[s], level[t], t) for s in components for t in targets[s]
    ]
    waiting = tuple(
        tuple(
            name
            for name in components
            if any(t == name and start < at < end for start, end, t in edges)
        )
        for at in range(depth)
    )
    return Stages(rows, frozenset(back), waiting)
