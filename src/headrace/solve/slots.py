"""Whether the slots of a node suffice: each topology on it packs its tasks' memory into slots of at most its heap, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

from headrace.solve.instance import Floats, Ints

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code, kept on disk between runs; what it computes and its types stay the same."""
    return cast(Callable[P, R], numba.njit(cache=True, error_model="numpy")(function))


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a function that makes no arrays of its own: nothing is spent on counting references."""
    return cast(Callable[P, R], numba.njit(cache=True, error_model="numpy", _nrt=False)(function))  # pyright: ignore[reportCallIssue]


@compiled
def slots_fit(pattern: Ints, group: Ints, memory: Floats, heap: Floats, slots: int) -> bool:
    """Whether pattern[i] tasks of memory[i] in topology group[i] need no more than `slots` slots together."""
    free = slots
    for g in range(len(heap)):
        tasks = 0
        for i in range(len(pattern)):
            if group[i] == g:
                tasks += pattern[i]
        if tasks == 0:
            continue
        sizes = np.empty(tasks)
        filled = 0
        for i in range(len(pattern)):
            if group[i] == g:
                for _ in range(pattern[i]):
                    sizes[filled] = memory[i]
                    filled += 1
        free -= bins_needed(np.sort(sizes)[::-1], heap[g])
        if free < 0:
            return False
    return True


@compiled
def bins_needed(sizes: Floats, heap: float) -> int:
    """Fewest bins of size `heap` that hold the sizes, which are given largest first; at least one."""
    total = sizes.sum()
    if total <= heap:
        return 1
    fewest = math.ceil(total / heap * (1 - 1e-12))
    enough = first_fit(sizes, heap)
    while fewest < enough and not packs(sizes, heap, fewest):
        fewest += 1
    return fewest


@compiled
def first_fit(sizes: Floats, heap: float) -> int:
    """Bins that first fit decreasing uses."""
    load = np.zeros(len(sizes))
    used = 0
    for size in sizes:
        b = 0
        while load[b] + size > heap:
            b += 1
        load[b] += size
        used = max(used, b + 1)
    return used


@compiled
def packs(sizes: Floats, heap: float, bins: int) -> bool:
    """Whether the sizes, largest first, go into so many bins: depth first, never two bins of equal load for one item."""
    items = len(sizes)
    load = np.zeros(bins)
    at = np.full(items, -1, np.int64)
    i = 0
    while i >= 0:
        b = at[i]
        if b >= 0:
            load[b] -= sizes[i]
        b += 1
        if at[i] < 0 and i > 0 and sizes[i] == sizes[i - 1]:
            b = at[i - 1]  # equal items in the order of their bins
        while b < bins:
            seen = False
            for other in range(b):
                if load[other] == load[b]:
                    seen = True
            if not seen and load[b] + sizes[i] <= heap:
                break
            b += 1
        if b == bins:
            at[i] = -1
            i -= 1
            continue
        at[i] = b
        load[b] += sizes[i]
        if i + 1 == items:
            return True
        i += 1
    return False
