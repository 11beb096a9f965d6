"""Whether the slots of a node suffice: a topology packs its tasks' memory into slots, exactly."""

from __future__ import annotations

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import lean
from headrace.solve.packing import fewest_bins


@lean
def slots_fit(
    pattern: Ints, group: Ints, memory: Floats, heap: Floats, slots: int, work: Floats
) -> bool:
    """Whether pattern[i] tasks of memory[i] in topology group[i] need at most `slots` slots.

    `work` is three rows of scratch, each one longer than there are tasks.
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
            free -= fewest_bins(sizes, tasks, heap[g], work[1], work[2])
            if free < 0:
                return False
    return True
