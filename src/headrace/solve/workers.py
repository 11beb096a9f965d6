"""Tasks of one node into worker processes: few bins, little traffic between them.

A node holds few tasks, so they are taken one by one: fillings grown by traffic, each improved by
moves and swaps until none helps.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.solve.chance import Rng, pick, stream
from headrace.solve.compiled import kernel
from headrace.solve.packing import few_bins, first_fit

STARTS = 12  # fillings that are tried and improved
MANY_PAIRS = 12_000  # of tasks, over all fillings: with more tasks to a node, fewer are tried
PASSES = 50  # over all tasks; improvements end long before
LOOKS = 200_000  # into bins, to find out whether fewer are enough


def split_tasks(memory: Floats, pull: Floats, heap_mb: float, seed: int = 0) -> Ints:
    """The bin of each task: as few bins of the heap as there can be, as far as `LOOKS` show, [K].

    pull[K, K] is what two tasks exchange. A task that is larger than the heap has a bin of its own.
    """
    most_mb = heap_mb * (1 + TOLERANCE)
    tasks = len(memory)
    if memory.sum() <= most_mb:
        return np.zeros(tasks, dtype=np.int64)
    order = np.argsort(-memory, kind="stable")
    load, bin_of = np.zeros(tasks + 1), np.zeros(tasks + 1)
    sizes = np.minimum(memory[order], most_mb)
    bins = int(few_bins(sizes, tasks, most_mb, load, bin_of, LOOKS))
    if bins == tasks:
        return np.arange(tasks)
    if first_fit(sizes, tasks, most_mb, load, bin_of) > bins:
        few_bins(sizes, tasks, most_mb, load, bin_of, LOOKS)  # leaves the filling it found
    part = np.empty(tasks, dtype=np.int64)
    part[order] = bin_of[:tasks].astype(np.int64)
    if pull.any():
        least_cut(
            np.minimum(memory, most_mb),
            pull,
            most_mb,
            bins,
            part,
            stream(seed),
            np.empty((2, tasks), dtype=np.int64),
            np.empty((tasks + 1, bins)),
        )
    return part


@kernel
def least_cut(
    memory: Floats,
    pull: Floats,
    heap: float,
    bins: int,
    best: Ints,
    rng: Rng,
    parts: Ints,
    scratch: Floats,
) -> None:
    """Better bins than the filling in `best`, in the same place."""
    part, load, tie = parts[0], scratch[-1], scratch[:-1]
    least = np.inf
    for start in range(min(STARTS, 1 + MANY_PAIRS // memory.shape[0] ** 2) + 1):
        if start == 0:
            copy_bins(best, part)
        elif not grow_bins(memory, pull, heap, bins, part, rng, start == 1, load, parts[1]):
            continue
        sum_up(memory, pull, part, load, tie)
        improve_bins(memory, pull, heap, part, load, tie)
        cut = 0.0
        for i in range(memory.shape[0]):
            for b in range(bins):
                if b != part[i]:
                    cut += tie[i, b]
        if cut < least * (1 - 1e-12):
            least = cut
            copy_bins(part, best)


@kernel
def copy_bins(source: Ints, target: Ints) -> None:
    """An array assignment would need memory of its own."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel
def grow_bins(
    memory: Floats,
    pull: Floats,
    heap: float,
    bins: int,
    part: Ints,
    rng: Rng,
    largest_first: bool,
    load: Floats,
    open_tasks: Ints,
) -> bool:
    """Fill bin after bin with whatever exchanges most with it; False if tasks are left over."""
    tasks = memory.shape[0]
    part[:] = -1
    left = tasks
    for b in range(bins):
        load[b] = 0.0
        while left > 0:
            count = 0
            for i in range(tasks):
                if part[i] < 0 and load[b] + memory[i] <= heap:
                    open_tasks[count] = i
                    count += 1
            if count == 0:
                break
            chosen = open_tasks[0 if largest_first else pick(rng, count)]
            if load[b] > 0.0 or largest_first:
                chosen = most_wanted(memory, pull, part, b, open_tasks, count)
            part[chosen] = b
            load[b] += memory[chosen]
            left -= 1
    return left == 0


@kernel
def most_wanted(
    memory: Floats, pull: Floats, part: Ints, b: int, open_tasks: Ints, count: int
) -> int:
    """The task that exchanges most with a bin, of equals the largest."""
    chosen, most = open_tasks[0], -1.0
    for k in range(count):
        i = open_tasks[k]
        wanted = 0.0
        for j in range(part.shape[0]):
            if part[j] == b:
                wanted += pull[i, j]
        if wanted > most or (wanted == most and memory[i] > memory[chosen]):
            chosen, most = i, wanted
    return chosen


@kernel
def sum_up(memory: Floats, pull: Floats, part: Ints, load: Floats, tie: Floats) -> None:
    """What is in each bin, and what each task exchanges with it."""
    load[:] = 0.0
    tie[:] = 0.0
    for i in range(part.shape[0]):
        load[part[i]] += memory[i]
        for j in range(part.shape[0]):
            if i != j:
                tie[i, part[j]] += pull[i, j]


@kernel
def improve_bins(
    memory: Floats, pull: Floats, heap: float, part: Ints, load: Floats, tie: Floats
) -> None:
    """Move tasks and swap two of them as long as less is cut."""
    tasks = part.shape[0]
    for _ in range(PASSES):
        better = False
        for i in range(tasks):
            for b in range(load.shape[0]):
                if tie[i, b] > tie[i, part[i]] * (1 + 1e-9) and load[b] + memory[i] <= heap:
                    put_task(memory, pull, part, load, tie, i, b)
                    better = True
            for j in range(i):
                a, b = part[i], part[j]
                if (
                    a != b
                    and load[a] - memory[i] + memory[j] <= heap
                    and load[b] - memory[j] + memory[i] <= heap
                ):
                    after = tie[i, b] + tie[j, a] - 2.0 * pull[i, j]
                    if after > (tie[i, a] + tie[j, b]) * (1 + 1e-9):
                        put_task(memory, pull, part, load, tie, i, b)
                        put_task(memory, pull, part, load, tie, j, a)
                        better = True
        if not better:
            break


@kernel
def put_task(
    memory: Floats, pull: Floats, part: Ints, load: Floats, tie: Floats, i: int, b: int
) -> None:
    """Put a task into another bin."""
    a = part[i]
    part[i] = b
    load[a] -= memory[i]
    load[b] += memory[i]
    for j in range(part.shape[0]):
        if j != i:
            tie[j, a] -= pull[i, j]
            tie[j, b] += pull[i, j]
