"""A task at work: it takes a tuple from its queue and shares its node with others."""

from __future__ import annotations

from headrace.solve.compiled import inlined, kernel
from headrace.solve.simulation.clocks import push_task, read_clock, share_cores
from headrace.solve.simulation.draws import draw_service
from headrace.solve.simulation.state import BUSY, DEAD, IDLE, NOBODY, READY, Run
from headrace.solve.simulation.trees import end_tuple, stack_task


@inlined
def occupy(run: Run, task: int, status: int, work_s: float, now: float) -> None:
    """Keep a task busy with so much CPU time."""
    node = run.node[task]
    run.status[task] = status
    run.took[task] += work_s
    run.due[task] = read_clock(run, node, now) + work_s / run.cap[task]
    run.busy[node] += run.cap[task]
    push_task(run, node, task)
    share_cores(run, node, now)


@inlined
def start_next(run: Run, task: int, now: float) -> None:
    """An idle task takes the next tuple of its queue, if there is one and it may."""
    found = run.head[task]
    if found == NOBODY:
        return
    if run.source[task]:
        if run.pending[task] >= run.most_pending[task]:
            return
        run.pending[task] += 1
        run.spout[run.tree[found]] = task
    run.head[task] = run.next[found]
    run.next[found] = NOBODY
    run.waiting[task] -= 1
    run.serving[task] = found
    waiter = run.waiters_head[task]
    if waiter != NOBODY:
        run.waiters_head[task] = run.next_waiter[waiter]
        run.next_waiter[waiter] = NOBODY
        run.status[waiter] = READY
        stack_task(run, waiter)
    occupy(run, task, BUSY, run.work_s[task] * draw_service(run.rng, run.shape[task]), now)


@inlined
def join_queue(run: Run, task: int, found: int) -> None:
    """A tuple waits for a task, which is looked at if it is idle."""
    if run.head[task] == NOBODY:
        run.head[task] = found
    else:
        run.next[run.tail[task]] = found
    run.tail[task] = found
    if run.status[task] == IDLE:
        stack_task(run, task)


@inlined
def arrive(run: Run, found: int, now: float) -> None:
    """A tuple arrives at its task; at one that joins, the last partner carries on for all."""
    task = run.to[found]
    dead = run.status[task] == DEAD
    if dead or (run.zip_first[task] != NOBODY and not find_partners(run, task, found)):
        run.waiting[task] -= 1
        end_tuple(run, found, dead, now)
        return
    join_queue(run, task, found)


@kernel
def find_partners(run: Run, task: int, found: int) -> bool:
    """Whether a tuple completes a join: there is one of every other input."""
    first, count = run.zip_first[task], run.zip_count[task]
    run.partners[first + run.joins[run.via[found]]] += 1
    for i in range(count):
        if run.partners[first + i] == 0:
            return False
    for i in range(count):
        run.partners[first + i] -= 1
    return True
