"""Levels of a graph: how far each component is from the spouts, and which edges lead back."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def levels(
    targets: Mapping[Name, Collection[Name]], spouts: Collection[Name]
) -> tuple[dict[Name, int], set[tuple[Name, Name]]]:
    """Each component's level, and the edges of cycles that lead back.

    A level is the length of the longest way from a spout that uses no edge back; at least 1 for a
    bolt.
    """
    back = _back_edges(targets, spouts)
    level = {name: 0 if name in spouts else 1 for name in targets}
    for name in _in_order(targets, back):
        for target in targets[name]:
            if (name, target) not in back:
                level[target] = max(level[target], level[name] + 1)
    return level, back


def _back_edges(
    targets: Mapping[Name, Collection[Name]], spouts: Collection[Name]
) -> set[tuple[Name, Name]]:
    """Edges to a component that a walk, depth first from the spouts in order, has not left yet."""
    state: dict[Name, str] = {}
    back: set[tuple[Name, Name]] = set()
    for root in sorted(targets, key=lambda name: name not in spouts):
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


def _in_order(targets: Mapping[Name, Collection[Name]], back: set[tuple[Name, Name]]) -> list[Name]:
    """The components, each after those that feed it by edges that do not lead back."""
    missing = dict.fromkeys(targets, 0)
    for name, to in targets.items():
        for target in to:
            missing[target] += (name, target) not in back
    ready = [name for name in targets if not missing[name]]
    for name in ready:  # grows while it is walked
        for target in targets[name]:
            if (name, target) not in back:
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
    return ready
