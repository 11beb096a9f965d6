"""Tuples in memory, the trees they belong to, and what is known of them when they end."""

from __future__ import annotations

import math

from headrace.solve.compiled import inlined
from headrace.solve.simulation.clocks import set_clock
from headrace.solve.simulation.state import (
    ACKNOWLEDGED,
    BINS,
    BINS_PER_OCTAVE,
    COMPLETED,
    FREE_TREE,
    FREE_TREES,
    FREE_TUPLE,
    FREE_TUPLES,
    LEVELS,
    LOST,
    LOST_TUPLES,
    NOBODY,
    STACKED,
    TELLS,
    Run,
)


@inlined
def new_tuple(run: Run, tree: int, to: int, via: int) -> int:
    """A tuple on its way to a task."""
    counts = run.counts
    found = counts[FREE_TUPLE]
    counts[FREE_TUPLE] = run.next[found]
    counts[FREE_TUPLES] -= 1
    run.next[found] = NOBODY
    run.tree[found] = tree
    run.to[found] = to
    run.via[found] = via
    return found


@inlined
def free_tuple(run: Run, found: int) -> None:
    """Forget a tuple."""
    counts = run.counts
    run.next[found] = counts[FREE_TUPLE]
    counts[FREE_TUPLE] = found
    counts[FREE_TUPLES] += 1


@inlined
def stack_task(run: Run, task: int) -> None:
    """Look at a task again before time goes on."""
    if not run.listed[task]:
        run.listed[task] = 1
        run.stack[run.counts[STACKED]] = task
        run.counts[STACKED] += 1


@inlined
def record(run: Run, row: int, latency_s: float) -> None:
    """Count a latency."""
    place = int(BINS_PER_OCTAVE * math.log2(1.0 + latency_s * 1e6))
    run.histogram[row, place if place < BINS else BINS - 1] += 1


@inlined
def end_tuple(run: Run, found: int, lost: bool, now: float) -> None:
    """A tuple ends or is lost, and with its last one a tree."""
    tree = run.tree[found]
    free_tuple(run, found)
    if lost:
        run.counts[LOST_TUPLES] += 1
        run.damaged[tree] = 1
    left = run.open[tree] - 1
    run.open[tree] = left
    if left == 0:
        close_tree(run, tree, now)


@inlined
def close_tree(run: Run, tree: int, now: float) -> None:
    """A tree is complete, or what is left of it is: its spout hears of it."""
    counts, spout = run.counts, run.spout[tree]
    if run.damaged[tree]:
        counts[LOST] += 1
    else:
        counts[COMPLETED] += 1
        latency = now - run.born[tree]
        run.sums[0] += latency * 1e3
        record(run, 0, latency)
    run.open[tree] = NOBODY
    run.next_tree[tree] = counts[FREE_TREE]
    counts[FREE_TREE] = tree
    counts[FREE_TREES] += 1
    if spout == NOBODY:
        return
    if counts[TELLS]:
        tell_spout(run, spout, now)
    else:
        run.pending[spout] -= 1
        stack_task(run, spout)


@inlined
def tell_spout(run: Run, spout: int, now: float) -> None:
    """Send an acknowledgement, which takes the latency between two nodes."""
    message = new_tuple(run, NOBODY, spout, ACKNOWLEDGED)
    link = len(run.mbps) - 1
    run.ready[message] = now + run.delay_s[LEVELS]
    if run.link_head[link] == NOBODY:
        run.link_head[link] = message
        set_clock(run, len(run.cores) + len(run.sources) + link, run.ready[message])
    else:
        run.next[run.link_tail[link]] = message
    run.link_tail[link] = message
