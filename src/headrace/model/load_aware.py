"""Where tuples of a load-aware shuffle go: it depends on where tasks run.

Storm 2 sends a tuple of a shuffle grouping to a task in the same worker if there is one, else on
the same node, else in the same rack, else anywhere. It goes one level further while the queues of
the tasks that it may choose from are full on average above 0.8, and back when those of the level
below are empty below 0.2 (`topology.localityaware.higher.bound`, `lower.bound`). A queue between
the two never runs dry and never overflows, so over time the near tasks do all they can and the rest
goes further: how much that is does not depend on the two numbers. Among the tasks of a level, those
that are full get less and less, so the others do what they can too.

`settle` works it out for a plan: load-aware streams become traffic between single tasks, and every
task gets the share of its component's tuples that follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Bools, Floats
from headrace.model.problem import (
    CPU,
    MOST_PAIRS,
    THREAD,
    UNPLACED,
    Assignment,
    Pairs,
    Problem,
    Stream,
)

LOAD_AWARE = "load-aware"
ROUNDS = 1000  # at most, until the shares on a cycle have settled
PASSES = 20  # over the tasks of a level that still have room


def is_load_aware(problem: Problem) -> bool:
    """Whether the traffic of a plan depends on where its tasks are, by load-aware streams."""
    return any(s.grouping == LOAD_AWARE for s in problem.streams)


def settle(problem: Problem, assignment: Assignment) -> Problem:
    """The problem as this plan makes it; the same one if nothing in it is load-aware."""
    if not is_load_aware(problem):
        return problem
    aware = [s for s in problem.streams if s.grouping == LOAD_AWARE]
    pairs = sum(int(problem.tasks[s.source] * problem.tasks[s.target]) for s in aware)
    if pairs > MOST_PAIRS:
        raise Unsupported(
            f"load-aware streams have {pairs:,} task pairs; at most {MOST_PAIRS:,} are followed",
            resource="task pairs",
            needed=pairs,
            available=MOST_PAIRS,
            fix="give the streams another grouping, such as shuffle",
        )
    share, routes = follow_streams(problem, assignment)
    found = [_pairs_of(problem, route) for route in routes]
    return replace(
        problem,
        task_share=share,
        streams=tuple(s for s in problem.streams if not any(s is a for a in aware)),
        pairs=Pairs(
            *(
                np.concatenate([getattr(problem.pairs, key), *(getattr(p, key) for p in found)])
                for key in ("source", "target", "tuples_per_s", "bytes_per_s")
            )
        ),
    )


def with_shares(problem: Problem, assignment: Assignment) -> Problem:
    """The problem with the shares of tasks that follow from this plan, and all its streams."""
    if not is_load_aware(problem):
        return problem
    return replace(problem, task_share=follow_streams(problem, assignment)[0])


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A stream, and what each task of its source sends to each of its target, [p, q]."""

    stream: Stream
    tuples_per_s: Floats


def _pairs_of(problem: Problem, route: Route) -> Pairs:
    i, j = np.nonzero(route.tuples_per_s)
    tuples = route.tuples_per_s[i, j]
    stream = route.stream
    return Pairs(
        problem.first[stream.source] + i,
        problem.first[stream.target] + j,
        tuples,
        tuples * stream.bytes,
    )


def follow_streams(problem: Problem, assignment: Assignment) -> tuple[Floats, list[Route]]:
    """Shares of all tasks [T] and the routes of load-aware streams, sources first."""
    order, rounds = _components_in_order(problem)
    into: list[list[Stream]] = [[] for _ in problem.tasks]
    for stream in problem.streams:
        into[stream.target].append(stream)
    measured = np.zeros(problem.task_count)
    np.add.at(measured, problem.pairs.target, problem.pairs.tuples_per_s)
    share = problem.share.copy()
    routes: dict[int, Route] = {}
    for _ in range(rounds):
        before = share.copy()
        for c in order:
            if problem.spout[c] or not any(s.grouping == LOAD_AWARE for s in into[c]):
                _take_shares(problem, c, into[c], measured, share, routes)
                continue
            _take_shares(problem, c, into[c], measured, share, routes, assignment)
        if np.abs(share - before).max(initial=0.0) < 1e-12:
            break
    return share, list(routes.values())


def _take_shares(
    problem: Problem,
    component: int,
    streams: list[Stream],
    measured: Floats,
    share: Floats,
    routes: dict[int, Route],
    assignment: Assignment | None = None,
) -> None:
    """Work out what every task of a component receives; `share` and `routes` get it."""
    if assignment is None:
        return  # its shares are those of its groupings
    tasks = problem.tasks_of(component)
    received = measured[tasks].copy()
    aware = [s for s in streams if s.grouping == LOAD_AWARE]
    for stream in streams:
        if not any(stream is a for a in aware):
            received += stream.tuples_per_s * stream.received(tasks.stop - tasks.start)
    most = thread_capacity(problem, component, assignment)
    for stream in aware:
        sent = stream.tuples_per_s * share[problem.tasks_of(stream.source)]
        tuples = route_tuples(problem, assignment, stream, sent, most - received)
        routes[id(stream)] = Route(stream, tuples)
        received += tuples.sum(axis=0)
    if received.sum() > 0:
        share[tasks] = received / received.sum()


def route_tuples(
    problem: Problem, assignment: Assignment, stream: Stream, sent: Floats, room: Floats
) -> Floats:
    """What each task of the source sends to each of the target, [p, q].

    `sent` is what each source task emits [p], `room` what each target task can still take [q].
    """
    a, b = problem.tasks_of(stream.source), problem.tasks_of(stream.target)
    near = nearness(problem, assignment, a, b)
    tuples = np.zeros(near.shape)
    left, room = sent.copy(), np.maximum(room, 0.0)
    for level in range(4):
        for _ in range(PASSES):  # the full ones get no more, so the rest goes to the others
            choice = (near <= level) & (room > 0)
            wanted = divide_evenly(left, choice)
            arriving = wanted.sum(axis=0)
            wanted *= np.divide(room, arriving, out=np.ones_like(room), where=arriving > room)
            tuples += wanted
            room = np.maximum(room - wanted.sum(axis=0), 0.0)
            left = left - wanted.sum(axis=1)
            left = np.where(left > 1e-12 * sent, left, 0.0)
            if not left.any():
                return tuples
            if not wanted.any():
                break
    return tuples + divide_evenly(left, np.ones(near.shape, dtype=bool))


def divide_evenly(amounts: Floats, choice: Bools) -> Floats:
    """Each row's amount over the columns it may choose, [p, q]."""
    count = choice.sum(axis=1)
    return (amounts / np.maximum(count, 1))[:, None] * choice


def nearness(problem: Problem, assignment: Assignment, a: slice, b: slice) -> Floats:
    """0 in the same worker, 1 on the same node, 2 in the same rack, else 3, [p, q]."""
    node_a, node_b = assignment.node[a][:, None], assignment.node[b][None, :]
    worker = assignment.worker[a][:, None] == assignment.worker[b][None, :]
    node = node_a == node_b
    rack = problem.rack[node_a] == problem.rack[node_b]
    return 3.0 - rack - (rack & node) - (node & worker)


def thread_capacity(problem: Problem, component: int, assignment: Assignment) -> Floats:
    """Tuples/s that each task's one thread can process; inf where no cost is known."""
    tasks = problem.tasks_of(component)
    node = assignment.node[tasks]
    machine = problem.node_type[np.where(node == UNPLACED, 0, node)]
    rate = problem.rate[component]
    each = problem.cpu_rate[component, machine] + problem.demand[component, CPU] * len(node)
    room = np.maximum(THREAD - problem.cpu_fixed[component, machine], 0.0)
    return np.divide(room * rate, each, out=np.full(len(node), np.inf), where=each > 0)


def _components_in_order(problem: Problem) -> tuple[list[int], int]:
    """Components with sources first, and how many rounds it takes: several where there are cycles.

    What goes back to a spout, as acks do, moves nothing.
    """
    feeds: dict[int, set[int]] = {c: set() for c in range(len(problem.tasks))}
    for s in problem.streams:
        if not problem.spout[s.target] and s.source != s.target:
            feeds[s.target].add(s.source)
    try:
        order = list(TopologicalSorter(feeds).static_order())
    except CycleError:
        return list(range(len(problem.tasks))), ROUNDS
    loops = any(s.source == s.target for s in problem.streams)
    return order, ROUNDS if loops else 1
