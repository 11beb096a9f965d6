"""Whether the slots of a node suffice: each topology on it packs its tasks' memory into slots of at most its heap, exactly."""

from __future__ import annotations

import math

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import lean


@lean
def slots_fit(
    pattern: Ints, group: Ints, memory: Floats, heap: Floats, slots: int, work: Floats
) -> bool:
    """Whether pattern[i] tasks of memory[i] in topology group[i] need no more than `slots` slots together.

    `work` is three rows of scratch, each as long as there are tasks.
    """
    sizes = work[0]
    free = slots
    for g in range(len(heap)):
        tasks = 0
        for i in range(len(pattern)):
            if group[i] == g:
                for _ in range(pattern[i]):
                    at = tasks
                    while at > 0 and sizes[at - 1] < memory[i]:  # keeps them sorted, largest first
                        sizes[at] = sizes[at - 1]
                        at -= 1
                    sizes[at] = memory[i]
                    tasks += 1
        if tasks > 0:
            free -= bins_needed(sizes, tasks, heap[g], work[1], work[2])
            if free < 0:
                return False
    return True


@lean
def bins_needed(sizes: Floats, tasks: int, heap: float, load: Floats, chosen: Floats) -> int:
    """Fewest bins of size `heap` that hold the first so many sizes, which are sorted, largest first; at least one."""
    total = 0.0
    for i in range(tasks):
        total += sizes[i]
    if total <= heap:
        return 1
    fewest = math.ceil(total / heap * (1 - 1e-12))
    enough = first_fit(sizes, tasks, heap, load)
    while fewest < enough and not packs(sizes, tasks, heap, fewest, load, chosen):
        fewest += 1
    return fewest


@lean
def first_fit(sizes: Floats, tasks: int, heap: float, load: Floats) -> int:
    """Bins that first fit decreasing uses."""
    used = 0
    for i in range(tasks):
        b = 0
        while b < used and load[b] + sizes[i] > heap:
            b += 1
        if b == used:
            load[b] = 0.0
            used += 1
        load[b] += sizes[i]
    return used


@lean
def packs(sizes: Floats, tasks: int, heap: float, bins: int, load: Floats, chosen: Floats) -> bool:
    """Whether the sizes go into so many bins: depth first, never two bins of equal load for one item."""
    for b in range(bins):
        load[b] = 0.0
    chosen[0] = -1
    i = 0
    while i >= 0:
        b = int(chosen[i])
        if b >= 0:
            load[b] -= sizes[i]
            b += 1
        else:
            # Equal items go into bins in order.
            b = int(chosen[i - 1]) if i > 0 and sizes[i] == sizes[i - 1] else 0
        while b < bins:
            seen = False
            for other in range(b):
                if load[other] == load[b]:
                    seen = True
            if not seen and load[b] + sizes[i] <= heap:
                break
            b += 1
        if b == bins:
            i -= 1
            continue
        chosen[i] = b
        load[b] += sizes[i]
        i += 1
        if i == tasks:
            return True
        chosen[i] = -1
    return False
