"""Tuple by tuple: tasks serve, nodes share their cores, links carry, trees complete."""

# An array at a place that is itself an element of an array has no known type.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import math

from headrace.solve.compiled import inlined, kernel
from headrace.solve.simulation.clocks import pop_task, read_clock, set_clock, share_cores
from headrace.solve.simulation.draws import draw_exponential
from headrace.solve.simulation.links import advance_link, dispatch
from headrace.solve.simulation.routing import make_outputs
from headrace.solve.simulation.service import join_queue, occupy, start_next
from headrace.solve.simulation.state import (
    BLOCKED,
    BUSY,
    DEAD,
    DONE,
    ENTERED,
    FREE_TREE,
    FREE_TREES,
    FREE_TUPLES,
    FULL,
    HOPS,
    IDLE,
    MOST_OUTPUTS,
    NOBODY,
    POISSON,
    READY,
    SENDING,
    STACKED,
    Run,
)
from headrace.solve.simulation.trees import end_tuple, new_tuple, record, stack_task


@kernel
def advance(run: Run, until: float) -> int:
    """Simulate up to a moment; comes back early where there is no memory for what comes next."""
    counts, nodes = run.counts, len(run.cores)
    links = nodes + len(run.sources)
    while True:
        while counts[STACKED] > 0:
            counts[STACKED] -= 1
            task = run.stack[counts[STACKED]]
            run.listed[task] = 0
            look_again(run, task, run.now[0])
        clock = run.winner[1]
        now = run.leaf[clock]
        if now > until:
            break
        if counts[FREE_TUPLES] < counts[MOST_OUTPUTS] or counts[FREE_TREES] < 1:
            return FULL
        run.now[0] = now
        if clock < nodes:
            finish_work(run, clock, now)
        elif clock < links:
            arrive_at_source(run, clock - nodes, now)
        else:
            advance_link(run, clock - links, now)
    run.now[0] = until
    return DONE


@inlined
def finish_work(run: Run, node: int, now: float) -> None:
    """The first task of a node is ready: with the tuple, or with sending what follows from it."""
    read_clock(run, node, now)
    task = pop_task(run, node)
    run.clock[node] = run.due[task]  # rounding ends here
    run.busy[node] -= run.cap[task]
    share_cores(run, node, now)
    if run.status[task] == BUSY:
        cost = make_outputs(run, task)
        if cost > 0.0:
            occupy(run, task, SENDING, cost, now)
            return
    run.status[task] = READY
    stack_task(run, task)


@inlined
def look_again(run: Run, task: int, now: float) -> None:
    """A task sends what it can, and takes the next tuple once all is sent."""
    if run.status[task] == READY and send_all(run, task, now):
        found = run.serving[task]
        run.serving[task] = NOBODY
        run.served[task] += 1
        run.counts[HOPS] += 1
        sink = run.sink[task]
        if sink != NOBODY:
            latency = now - run.born[run.tree[found]]
            run.sink_ms[sink] += latency * 1e3
            record(run, sink + 1, latency)
        run.status[task] = IDLE
        end_tuple(run, found, False, now)
    if run.status[task] == IDLE:
        start_next(run, task, now)


@inlined
def send_all(run: Run, task: int, now: float) -> bool:
    """Send what a task has made; false if it has to wait for room."""
    while run.out_head[task] != NOBODY:
        found = run.out_head[task]
        to = run.to[found]
        if run.status[to] != DEAD and to != task and run.waiting[to] >= run.room[to]:
            run.status[task] = BLOCKED
            run.next_waiter[task] = NOBODY
            if run.waiters_head[to] == NOBODY:
                run.waiters_head[to] = task
            else:
                run.next_waiter[run.waiters_tail[to]] = task
            run.waiters_tail[to] = task
            return False
        run.out_head[task] = run.next[found]
        run.next[found] = NOBODY
        run.waiting[to] += 1
        dispatch(run, found, task, now)
    return True


@inlined
def arrive_at_source(run: Run, source: int, now: float) -> None:
    """A tuple arrives before a spout, and the next one is due."""
    counts, task = run.counts, run.sources[source]
    gap = draw_exponential(run.rng) if run.arrives[source] == POISSON else 1.0
    set_clock(run, len(run.cores) + source, now + gap / run.rate[source])
    tree = counts[FREE_TREE]
    counts[FREE_TREE] = run.next_tree[tree]
    counts[FREE_TREES] -= 1
    counts[ENTERED] += 1
    run.born[tree] = now
    run.open[tree] = 1
    run.spout[tree] = NOBODY
    run.damaged[tree] = 0
    found = new_tuple(run, tree, task, NOBODY)
    run.waiting[task] += 1
    if run.status[task] == DEAD:
        run.waiting[task] -= 1
        end_tuple(run, found, True, now)
    else:
        join_queue(run, task, found)


@kernel
def set_rate(run: Run, source: int, rate: float) -> None:
    """Change how many tuples arrive; the time to the next one is stretched or shortened."""
    clock, now = len(run.cores) + source, run.now[0]
    old, due = run.rate[source], run.leaf[clock]
    run.rate[source] = rate
    if rate == 0.0:
        set_clock(run, clock, math.inf)
    elif old == 0.0 or not math.isfinite(due):
        gap = draw_exponential(run.rng) if run.arrives[source] == POISSON else 1.0
        set_clock(run, clock, now + gap / rate)
    else:
        set_clock(run, clock, now + (due - now) * old / rate)
