"""From task to task: links serve one tuple after another, levels add their latency."""

# An array at a place that is itself an element of an array has no known type.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import math

from headrace.solve.compiled import inlined
from headrace.solve.simulation.clocks import set_clock
from headrace.solve.simulation.service import arrive
from headrace.solve.simulation.state import ACKNOWLEDGED, LEVELS, NOBODY, Run
from headrace.solve.simulation.trees import free_tuple, stack_task

OUT, UP, DOWN, IN, LATENCY, ARRIVED = range(6)  # the stretches of a way between nodes


@inlined
def enter_line(run: Run, link: int, found: int) -> bool:
    """Stand in line at a link; says whether nobody was there."""
    run.next[found] = NOBODY
    alone = run.link_head[link] == NOBODY
    if alone:
        run.link_head[link] = found
    else:
        run.next[run.link_tail[link]] = found
    run.link_tail[link] = found
    return alone


@inlined
def travel(run: Run, found: int, stretch: int, source: int, rack: int, now: float) -> None:
    """Go on with a tuple's way between tasks; what has no limit takes no time."""
    nodes, target = len(run.cores), run.node[run.to[found]]
    clocks = nodes + len(run.sources)
    delays = len(run.mbps) - LEVELS - 1
    while stretch < LATENCY:
        link = source
        if stretch == UP:
            link = 2 * nodes + rack
        elif stretch == DOWN:
            link = (2 * nodes + delays) // 2 + run.rack[target]
        elif stretch == IN:
            link = nodes + target
        used = stretch in (OUT, IN) or run.rack[target] != rack
        if used and math.isfinite(run.mbps[link]):
            megabits = run.megabits[run.via[found]]
            if megabits > 0.0:
                if enter_line(run, link, found):
                    set_clock(run, clocks + link, now + megabits / run.mbps[link])
                return
        stretch += 1
    level = run.level[found]
    if stretch == LATENCY and level != NOBODY and run.delay_s[level] > 0.0:
        run.ready[found] = now + run.delay_s[level]
        if enter_line(run, delays + level, found):
            set_clock(run, clocks + delays + level, run.ready[found])
        return
    arrive(run, found, now)


@inlined
def dispatch(run: Run, found: int, sender: int, now: float) -> None:
    """Send a tuple to its task: inside a worker at once, else over what lies between."""
    task = run.to[found]
    a, b = run.node[sender], run.node[task]
    stretch = LATENCY
    if run.worker[sender] == run.worker[task]:
        run.level[found] = NOBODY
    elif a == b:
        run.level[found] = 0
    else:
        run.level[found] = 1 if run.rack[a] == run.rack[b] else 2
        stretch = OUT
    travel(run, found, stretch, a, run.rack[a], now)


@inlined
def advance_link(run: Run, link: int, now: float) -> None:
    """The first tuple in line has passed a link, or its latency is over."""
    nodes = len(run.cores)
    delays = len(run.mbps) - LEVELS - 1
    found = run.link_head[link]
    following = run.next[found]
    run.link_head[link] = following
    run.next[found] = NOBODY
    due = math.inf
    if link < delays:
        run.link_busy[link] += run.megabits[run.via[found]] / run.mbps[link]
    if following != NOBODY:
        due = run.ready[following]
        if link < delays:
            due = now + run.megabits[run.via[following]] / run.mbps[link]
    set_clock(run, nodes + len(run.sources) + link, due)
    if run.via[found] == ACKNOWLEDGED:
        spout = run.to[found]
        free_tuple(run, found)
        run.pending[spout] -= 1
        stack_task(run, spout)
        return
    stretch, rack = ARRIVED, run.rack[run.node[run.to[found]]]
    if link < nodes:
        stretch, rack = UP, run.rack[link]
    elif link < 2 * nodes:
        stretch = LATENCY
    elif link < (2 * nodes + delays) // 2:
        stretch, rack = DOWN, link - 2 * nodes
    elif link < delays:
        stretch = IN
    travel(run, found, stretch, link, rack, now)
