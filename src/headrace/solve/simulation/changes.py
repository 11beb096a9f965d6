"""Changes from outside while a simulation stands still: tasks stop, die, come back, move."""

# An array at a place that is itself an element of an array has no known type.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import math

from headrace.solve.compiled import inlined, kernel
from headrace.solve.simulation.clocks import push_task, read_clock, set_clock, share_cores
from headrace.solve.simulation.state import (
    BLOCKED,
    BUSY,
    DEAD,
    IDLE,
    NOBODY,
    PAUSED,
    READY,
    SENDING,
    Run,
)
from headrace.solve.simulation.trees import end_tuple, stack_task


@kernel
def seat_tasks(run: Run) -> None:
    """Fill the heaps of all nodes with the tasks that are busy, after some have come or gone."""
    now = run.now[0]
    for node in range(len(run.cores)):
        read_clock(run, node, now)
        run.heap_size[node] = 0
        run.busy[node] = 0.0
    for task in range(len(run.node)):
        if run.status[task] == BUSY or run.status[task] == SENDING:
            push_task(run, run.node[task], task)
            run.busy[run.node[task]] += run.cap[task]
    for node in range(len(run.cores)):
        share_cores(run, node, now)


@kernel
def pause_task(run: Run, task: int) -> None:
    """Stop a task; a tuple it works on goes back to its queue. `seat_tasks` must follow."""
    status = run.status[task]
    if status in (DEAD, PAUSED):
        return
    if status == BLOCKED:
        leave_line(run, task)
    if status == BUSY:
        found = run.serving[task]
        run.serving[task] = NOBODY
        run.next[found] = run.head[task]
        if run.head[task] == NOBODY:
            run.tail[task] = found
        run.head[task] = found
        run.waiting[task] += 1
        if run.source[task]:
            run.pending[task] -= 1
            run.spout[run.tree[found]] = NOBODY
    run.status[task] = PAUSED


@kernel
def resume_task(run: Run, task: int) -> None:
    """Let a stopped or dead task go on; it is looked at when time goes on."""
    if run.status[task] == PAUSED or run.status[task] == DEAD:
        run.status[task] = READY if run.serving[task] != NOBODY else IDLE
        stack_task(run, task)


@kernel
def kill_task(run: Run, task: int) -> None:
    """Lose a task with all that it holds. `seat_tasks` must follow."""
    now = run.now[0]
    if run.status[task] == DEAD:
        return
    if run.status[task] == BLOCKED:
        leave_line(run, task)
    run.status[task] = DEAD
    found = run.serving[task]
    run.serving[task] = NOBODY
    if found != NOBODY:
        end_tuple(run, found, True, now)
    found = run.out_head[task]
    run.out_head[task] = NOBODY
    while found != NOBODY:
        following = run.next[found]
        end_tuple(run, found, True, now)
        found = following
    found = run.head[task]
    run.head[task] = NOBODY
    while found != NOBODY:
        following = run.next[found]
        run.waiting[task] -= 1
        end_tuple(run, found, True, now)
        found = following
    waiter = run.waiters_head[task]
    run.waiters_head[task] = NOBODY
    while waiter != NOBODY:
        following = run.next_waiter[waiter]
        run.next_waiter[waiter] = NOBODY
        run.status[waiter] = READY
        stack_task(run, waiter)
        waiter = following


@kernel
def cut_link(run: Run, link: int) -> None:
    """Lose all that stands in line at a link."""
    now = run.now[0]
    found = run.link_head[link]
    run.link_head[link] = NOBODY
    while found != NOBODY:
        following = run.next[found]
        run.waiting[run.to[found]] -= 1
        end_tuple(run, found, True, now)
        found = following
    set_clock(run, len(run.cores) + len(run.sources) + link, math.inf)


@inlined
def leave_line(run: Run, task: int) -> None:
    """A blocked task no longer waits for room."""
    to = run.to[run.out_head[task]]
    before, found = NOBODY, run.waiters_head[to]
    while found != task:
        before, found = found, run.next_waiter[found]
    following = run.next_waiter[task]
    if before == NOBODY:
        run.waiters_head[to] = following
    else:
        run.next_waiter[before] = following
    if following == NOBODY:
        run.waiters_tail[to] = before
    run.next_waiter[task] = NOBODY
