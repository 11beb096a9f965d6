"""Storm's own numbers of tasks, and the order in which its hash maps list executors."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.place.building_blocks.operators import Operator

FULL = 0.75  # a hash map grows beyond this share of its table
SMALLEST_TABLE = 16


def is_system(name: str) -> bool:
    """Whether a component is Storm's own, as `__acker` is."""
    return name.rsplit("/", 1)[-1].startswith("__")


def number_tasks(graph: Sequence[Operator]) -> dict[int, int]:
    """Storm's number of every task: components by name, from 1."""
    by_name = sorted(graph, key=lambda operator: operator.name)
    tasks = [task for operator in by_name for task in operator.tasks]
    return {task: number for number, task in enumerate(tasks, start=1)}


def hash_order(numbers: Sequence[int], table: int) -> list[int]:
    """Numbers of one-task executors as a Java hash map lists them.

    An executor's hash is its first task + 13 x its last; those that share a bucket keep their
    order. (Buckets never become trees here: no bucket gets more than a few.)
    """

    def bucket(number: int) -> int:
        code = 14 * number
        return (code ^ (code >> 16)) & (table - 1)

    return sorted(numbers, key=bucket)


def table_of_copy(entries: int) -> int:
    """Table size of a Java hash map (until Java 18) that is made from another one."""
    return _power_of_two(int(entries / FULL + 1))


def table_of_set(entries: int) -> int:
    """Table size of a Java hash set that is made from a collection."""
    return _power_of_two(max(int(entries / FULL) + 1, SMALLEST_TABLE))


def table_of_growth(entries: int) -> int:
    """Table size of a Java hash map that got its entries one by one."""
    table = SMALLEST_TABLE
    while entries > FULL * table:
        table *= 2
    return table


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()
