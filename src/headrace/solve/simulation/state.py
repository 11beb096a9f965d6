"""All that a simulation is at one moment, as arrays.

Letters: T tasks, S of them sources, N nodes, R routes, L links, M tuples in memory, J trees in
memory, H bins of a histogram. A tree is a tuple of a source and all that follow from it. Queues are
linked lists over `next`, so a tuple is in one queue at a time and nothing is copied.

A node's busy tasks share its cores. Its clock runs at the speed of a task that has its whole share
of time: 1 while there are cores enough, less when there are not. A task that starts is due at a
reading of that clock, which does not change when others come and go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.model.arrays import Floats, Ints
from headrace.solve.chance import Rng

NOBODY = -1
ACKNOWLEDGED = -2  # instead of a route: the message that a tree of a spout is complete
# What a task does; READY: it may send what it has, BLOCKED: it waits for room to do so.
IDLE, BUSY, SENDING, READY, BLOCKED, PAUSED, DEAD = range(7)
EVEN, EVERY, FIRST, BY_SHARE = range(4)  # how a route chooses its target
CONSTANT, POISSON = range(2)  # how tuples arrive
DONE, FULL = range(2)  # why the kernel came back: the time is over, or memory is
BINS_PER_OCTAVE = 64
BINS = 46 * BINS_PER_OCTAVE  # of latencies, from a microsecond to two years
LEVELS = 3  # between workers, nodes, racks

Bytes = NDArray[np.int8]


class Run(NamedTuple):
    """A simulation between two events."""

    now: Floats  # [1]
    rng: Rng
    counts: Ints  # see the numbers below
    sums: Floats  # [1] milliseconds of latency of all completed trees

    # tasks
    node: Ints  # [T]
    worker: Ints  # [T] numbered over all nodes
    cap: Floats  # [T] cores it takes when busy and alone: 1 less what it always takes
    work_s: Floats  # [T] mean CPU seconds of a tuple
    shape: Floats  # [T] 1 / cv^2 of the service; 0: constant, 1: exponential
    route_first: Ints  # [T + 1] its routes
    status: Bytes  # [T]
    head: Ints  # [T] its queue
    tail: Ints  # [T]
    waiting: Ints  # [T] tuples in its queue or on the way to it
    room: Ints  # [T] the most that may wait
    serving: Ints  # [T] the tuple it works on
    out_head: Ints  # [T] tuples it has made and not yet sent
    out_tail: Ints  # [T]
    waiters_head: Ints  # [T] tasks that wait for room in its queue
    waiters_tail: Ints  # [T]
    next_waiter: Ints  # [T]
    due: Floats  # [T] reading of its node's clock when it is ready
    took: Floats  # [T] CPU seconds used
    served: Ints  # [T] tuples served
    source: Bytes  # [T] 1: a task of a spout
    pending: Ints  # [T] trees it has started that are not complete
    most_pending: Ints  # [T]
    sink: Ints  # [T] number of its sink; NOBODY: not a sink
    zip_first: Ints  # [T] where its counts of waiting partners begin; NOBODY: it joins nothing
    zip_count: Ints  # [T] how many inputs are joined
    partners: Ints  # tuples that wait for partners, by task and input

    # arrivals, at S tasks of spouts
    sources: Ints  # [S] task
    rate: Floats  # [S] tuples/s that arrive now
    arrives: Bytes  # [S] CONSTANT or POISSON

    # routes
    route: Ints  # [R'] route numbers by task, see route_first
    gain: Floats  # [R] tuples per tuple served
    way: Bytes  # [R] how the target is chosen
    target: Ints  # [R] first target task
    targets: Ints  # [R] how many
    table: Ints  # [R] where its choices begin, for BY_SHARE
    megabits: Floats  # [R] of a tuple; 0: not counted
    joins: Ints  # [R] number of the input at a joining target
    accept: Floats  # alias tables: chance to keep the first choice
    choice: Ints  # task, the first choice
    other: Ints  # task, the second
    send_s: Floats  # [2] CPU seconds to send to another worker, to another node

    # nodes
    cores: Floats  # [N] inf: no limit
    busy: Floats  # [N] cores its busy tasks would like
    clock: Floats  # [N] reading
    clock_at: Floats  # [N] when it was read
    speed: Floats  # [N] of the clock
    heap: Ints  # [T] busy tasks of each node, the earliest first
    heap_first: Ints  # [N]
    heap_size: Ints  # [N]
    rack: Ints  # [N]

    # links: out and in of every node, out and in of every rack, one delay per level, and one for
    # acknowledgements
    mbps: Floats  # [L] 0 for delays
    link_head: Ints  # [L]
    link_tail: Ints  # [L]
    link_busy: Floats  # [L] seconds
    delay_s: Floats  # [LEVELS + 1]

    # what happens next: a tournament over nodes, spouts' tasks and links
    leaf: Floats  # [clocks, rounded up to a power of two] time of each
    winner: Ints  # [2 x that] the earliest below each inner node

    # tuples
    next: Ints  # [M]
    tree: Ints  # [M]
    to: Ints  # [M] task
    via: Ints  # [M] route
    level: Bytes  # [M] the highest level that it crosses
    ready: Floats  # [M] when it leaves a delay

    # trees
    born: Floats  # [J] when it arrived
    open: Ints  # [J] tuples that are not finished; NOBODY: free
    spout: Ints  # [J] task
    damaged: Bytes  # [J] 1: a tuple of it was lost
    next_tree: Ints  # [J] free ones

    # latencies
    histogram: Ints  # [1 + sinks, H] of trees, then of tuples at each sink
    sink_ms: Floats  # [sinks] milliseconds, summed

    # tasks to look at before time goes on
    stack: Ints  # [T]
    listed: Bytes  # [T] 1: it is there already


# Positions in `counts`.
ENTERED, COMPLETED, LOST, HOPS, FREE_TUPLE, FREE_TUPLES, FREE_TREE, FREE_TREES = range(8)
STACKED, MOST_OUTPUTS, LOST_TUPLES, TELLS = range(8, 12)
COUNTS = 12
