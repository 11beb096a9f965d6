"""Key groups: how keyed state is divided over tasks, for the engine and the planner alike.

Keys fall into a fixed number of groups, and each task of a component owns a range of them. With
another number of tasks the ranges are others, so state can be divided again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headrace.model.arrays import Ints

if TYPE_CHECKING:
    from headrace.model.document import Component

GROUPS = 1 << 15
KEYED_BY = ("fields", "global", "all")  # groupings that bring a key to the same task every time

# Who holds a component's state: its tasks, each a range of the keys; its first task alone, since
# all tuples go there; or every task its own, which no other task can take over.
Holding = Literal["keys", "first", "task"]


def holding_of(component: Component) -> Holding:
    """Who holds the state of a component."""
    groupings = [one.grouping for inputs in component.inputs.values() for one in inputs]
    if not groupings or any(grouping not in KEYED_BY for grouping in groupings):
        return "task"
    return "first" if "global" in groupings else "keys"


def owner_of(groups: Ints, tasks: int) -> Ints:
    """The task (from 0) that owns each key group."""
    return groups * tasks // GROUPS


def groups_owned_by(task: int, tasks: int) -> tuple[int, int]:
    """The key groups [first, end) of a task (from 0)."""
    return -(-task * GROUPS // tasks), -(-(task + 1) * GROUPS // tasks)
