"""In which order a batch runs its components: levels of the graph, and the back edges of its cycles.

All components of a level run at once. An edge of a cycle that leads back delivers in the next batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.document import Component
from headrace.run.topology import subscriptions


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
    targets: dict[str, list[str]] = {name: [] for name in components}
    for source, target, _ in subscriptions(components):
        if target not in targets[source]:
            targets[source].append(target)
    back = _back_edges(components, targets)
    level = {name: 0 if c.spout else 1 for name, c in components.items()}
    for name in _in_order(components, targets, back):
        for target in targets[name]:
            if (name, target) not in back:
                level[target] = max(level[target], level[name] + 1)
    depth = max(level.values()) + 1
    levels = tuple(tuple(name for name in components if level[name] == at) for at in range(depth))
    # What comes over a back edge enters at level 0, where the replay stands.
    edges = [(0 if (s, t) in back else level[s], level[t], t) for s in components for t in targets[s]]
    waiting = tuple(
        tuple(name for name in components if any(t == name and start < at < end for start, end, t in edges))
        for at in range(depth)
    )
    return Stages(levels, frozenset(back), waiting)


def _back_edges(components: Mapping[str, Component], targets: Mapping[str, list[str]]) -> set[tuple[str, str]]:
    """Edges to a component that is still being visited, depth first from the spouts in file order."""
    state: dict[str, str] = {}
    back: set[tuple[str, str]] = set()
    for root in sorted(components, key=lambda name: not components[name].spout):
        if root in state:
            continue
        state[root] = "open"
        stack = [(root, iter(targets[root]))]
        while stack:
            name, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[name] = "done"
                stack.pop()
            elif state.get(target) == "open":
                back.add((name, target))
            elif target not in state:
                state[target] = "open"
                stack.append((target, iter(targets[target])))
    return back


def _in_order(components: Mapping[str, Component], targets: Mapping[str, list[str]], back: set[tuple[str, str]]) -> list[str]:
    """Components so that every forward edge leads ahead."""
    missing = {name: 0 for name in components}
    for name, to in targets.items():
        for target in to:
            missing[target] += (name, target) not in back
    ready = [name for name in components if not missing[name]]
    for name in ready:  # grows while it is walked
        for target in targets[name]:
            if (name, target) not in back:
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
    return ready
