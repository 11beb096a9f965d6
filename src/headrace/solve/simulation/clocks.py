"""What happens next: a tournament over all clocks, and a heap of busy tasks in every node."""

# An array at a place that is itself an element of an array has no known type.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import math

from headrace.solve.compiled import inlined
from headrace.solve.simulation.state import Run


@inlined
def set_clock(run: Run, clock: int, time: float) -> None:
    """Say when something happens on a clock; inf: nothing will. Ties go to the lower clock."""
    leaf, winner = run.leaf, run.winner
    leaf[clock] = time
    size = len(leaf)
    at = (size + clock) >> 1
    while at >= 1:
        left, right = 2 * at, 2 * at + 1
        a = left - size if left >= size else winner[left]
        b = right - size if right >= size else winner[right]
        best = a if leaf[a] <= leaf[b] else b
        if best == winner[at] and best != clock:
            break
        winner[at] = best
        at >>= 1


@inlined
def read_clock(run: Run, node: int, now: float) -> float:
    """Bring a node's own clock up to date."""
    reading = run.clock[node] + (now - run.clock_at[node]) * run.speed[node]
    run.clock[node] = reading
    run.clock_at[node] = now
    return reading


@inlined
def share_cores(run: Run, node: int, now: float) -> None:
    """Set a node's speed for the tasks that are busy now, and when the first of them is ready."""
    busy, cores = run.busy[node], run.cores[node]
    speed = 1.0 if busy <= cores else cores / busy
    run.speed[node] = speed
    if run.heap_size[node] == 0:
        run.busy[node] = 0.0  # rounding ends here
        set_clock(run, node, math.inf)
    elif speed <= 0.0:
        set_clock(run, node, math.inf)
    else:
        first = run.heap[run.heap_first[node]]
        left = (run.due[first] - run.clock[node]) / speed
        set_clock(run, node, now + (max(0.0, left)))


@inlined
def push_task(run: Run, node: int, task: int) -> None:
    """Put a task that is due into its node's heap."""
    heap, base, due = run.heap, run.heap_first[node], run.due
    at = run.heap_size[node]
    run.heap_size[node] = at + 1
    while at > 0:
        parent = (at - 1) >> 1
        above = heap[base + parent]
        if due[above] <= due[task]:
            break
        heap[base + at] = above
        at = parent
    heap[base + at] = task


@inlined
def pop_task(run: Run, node: int) -> int:
    """Take the task that is due first."""
    heap, base, due = run.heap, run.heap_first[node], run.due
    first = heap[base]
    size = run.heap_size[node] - 1
    run.heap_size[node] = size
    if size > 0:
        task = heap[base + size]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and due[heap[base + child + 1]] < due[heap[base + child]]:
                child += 1
            if due[task] <= due[heap[base + child]]:
                break
            heap[base + at] = heap[base + child]
            at = child
        heap[base + at] = task
    return first
