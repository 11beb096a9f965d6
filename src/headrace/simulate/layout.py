"""From a plan to the arrays that the kernel works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.judge.traffic import Workers
from headrace.judge.use import SendPrice
from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem
from headrace.simulate.routes import routes_of
from headrace.solve.chance import stream
from headrace.solve.simulation import state as at
from headrace.solve.simulation.state import NOBODY, Run

FIRST_TUPLES, FIRST_TREES = 4096, 2048  # in memory to begin with; it doubles when it is full


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """What follows from where tasks run."""

    node: Ints  # [T]
    worker: Ints  # [T] numbered over all nodes
    cap: Floats  # [T] cores that a busy task takes alone
    work_s: Floats  # [T] CPU seconds of a tuple
    cores: Floats  # [N] that busy tasks share


def placed_on(problem: Problem, assignment: Assignment) -> Placed:
    """Work and speed of every task where it runs, and what its node has for all of them."""
    there = assignment.node != UNPLACED
    node = np.where(there, assignment.node, 0)
    worker = Workers.of(assignment).of_task
    c, machine = problem.component_of, problem.node_type[node]
    fixed = problem.cpu_fixed[c, machine] / 100
    rate = problem.rate[c]
    own = rate * problem.share
    by_profile = np.divide(
        problem.cpu_rate[c, machine] / 100, rate, out=np.zeros(len(c)), where=rate > 0
    )
    by_task = np.divide(problem.demand[c, CPU] / 100, own, out=np.zeros(len(c)), where=own > 0)
    free = (problem.capacity[:, CPU] - problem.taken[:, CPU]) / 100
    cores = free - totals(node[there], fixed[there], len(problem.nodes))
    return Placed(
        node=node,
        worker=worker,
        cap=np.maximum(1.0 - fixed, 1e-9),
        work_s=by_profile + by_task,
        cores=np.maximum(cores, 0.0),
    )


def lay_out(problem: Problem, assignment: Assignment, seed: int) -> Run:
    """A plan with empty queues at second 0; nothing arrives yet."""
    # Longer than 60 lines: one line for each array.
    placed = placed_on(problem, assignment)
    routes = routes_of(problem, assignment, placed.worker)
    tasks, nodes, racks = problem.task_count, len(problem.nodes), len(problem.racks)
    dynamics = problem.dynamics
    spout = problem.spout[problem.component_of]
    sources = np.flatnonzero(spout & (assignment.node != UNPLACED))
    sinks = sink_numbers(problem)
    counts = np.zeros(at.COUNTS, np.int64)
    most = int(routes.most_outputs) + tasks + 2
    counts[at.MOST_OUTPUTS] = most
    counts[at.TELLS] = dynamics.max_spout_pending is not None and dynamics.latency_ms[1] > 0
    links = 2 * nodes + 2 * racks + at.LEVELS + 1
    clocks = nodes + len(sources) + links
    leaves = 1 << max(1, (clocks - 1).bit_length())
    unlimited = np.iinfo(np.int64).max
    room = unlimited if dynamics.queue_size is None else dynamics.queue_size
    open_trees = unlimited
    if dynamics.max_spout_pending is not None:
        open_trees = dynamics.max_spout_pending
    delays = np.array(dynamics.latency_ms) / 1e3
    price = SendPrice.of(problem)

    def ints(size: int, value: int = 0) -> Ints:
        return np.full(size, value, np.int64)

    status = np.where(assignment.node == UNPLACED, at.DEAD, at.IDLE).astype(np.int8)
    run = Run(
        now=np.zeros(1),
        rng=stream(seed),
        counts=counts,
        sums=np.zeros(1),
        node=placed.node,
        worker=placed.worker,
        cap=placed.cap,
        work_s=placed.work_s,
        shape=np.full(tasks, 1 / dynamics.cv**2 if dynamics.cv > 0 else 0.0),
        route_first=routes.first,
        status=status,
        head=ints(tasks, NOBODY),
        tail=ints(tasks, NOBODY),
        waiting=ints(tasks),
        room=np.where(spout, unlimited, room),
        serving=ints(tasks, NOBODY),
        out_head=ints(tasks, NOBODY),
        out_tail=ints(tasks, NOBODY),
        waiters_head=ints(tasks, NOBODY),
        waiters_tail=ints(tasks, NOBODY),
        next_waiter=ints(tasks, NOBODY),
        due=np.zeros(tasks),
        took=np.zeros(tasks),
        served=ints(tasks),
        source=spout.astype(np.int8),
        pending=ints(tasks),
        most_pending=ints(tasks, open_trees),
        sink=sinks[problem.component_of],
        zip_first=routes.zip_first,
        zip_count=routes.zip_count,
        partners=ints(max(1, int(routes.partners))),
        sources=sources,
        rate=np.zeros(len(sources)),
        arrives=np.full(
            len(sources),
            at.CONSTANT if dynamics.arrivals == "constant" else at.POISSON,
            np.int8,
        ),
        route=routes.route,
        gain=routes.gain,
        way=routes.way,
        target=routes.target,
        targets=routes.targets,
        table=routes.table,
        megabits=routes.megabits,
        joins=routes.joins,
        accept=routes.accept,
        choice=routes.choice,
        other=routes.other,
        # Here the sender pays for both ends.
        send_s=np.array([price.to_worker_ms, price.to_node_ms + price.from_node_ms]) / 1e3,
        cores=placed.cores,
        busy=np.zeros(nodes),
        clock=np.zeros(nodes),
        clock_at=np.zeros(nodes),
        speed=np.ones(nodes),
        heap=ints(tasks, NOBODY),
        heap_first=heap_places(placed.node, nodes),
        heap_size=ints(nodes),
        rack=problem.rack.astype(np.int64),
        mbps=np.concatenate(
            [
                problem.bandwidth_mbps,
                problem.bandwidth_mbps,
                problem.uplink_mbps,
                problem.uplink_mbps,
                np.zeros(at.LEVELS + 1),
            ]
        ),
        link_head=ints(links, NOBODY),
        link_tail=ints(links, NOBODY),
        link_busy=np.zeros(links),
        delay_s=np.append(delays, delays[1]),
        leaf=np.full(leaves, np.inf),
        winner=first_winners(leaves),
        next=chain(FIRST_TUPLES + most),
        tree=ints(FIRST_TUPLES + most),
        to=ints(FIRST_TUPLES + most),
        via=ints(FIRST_TUPLES + most),
        level=np.zeros(FIRST_TUPLES + most, np.int8),
        ready=np.zeros(FIRST_TUPLES + most),
        born=np.zeros(FIRST_TREES),
        open=ints(FIRST_TREES, NOBODY),
        spout=ints(FIRST_TREES),
        damaged=np.zeros(FIRST_TREES, np.int8),
        next_tree=chain(FIRST_TREES),
        histogram=np.zeros((1 + int(sinks.max(initial=-1)) + 1, at.BINS), np.int64),
        sink_ms=np.zeros(1 + int(sinks.max(initial=-1))),
        stack=ints(tasks),
        listed=np.zeros(tasks, np.int8),
    )
    counts[at.FREE_TUPLES], counts[at.FREE_TREES] = FIRST_TUPLES + most, FIRST_TREES
    return run


def sink_numbers(problem: Problem) -> Ints:
    """Number of each component among those that send nothing, NOBODY for the others, [C]."""
    sends = np.zeros(len(problem.tasks), bool)
    sends[[s.source for s in problem.streams]] = True
    sends[problem.component_of[problem.pairs.source]] = True
    return np.where(sends, NOBODY, np.cumsum(~sends) - 1)


def sink_names(problem: Problem) -> list[str]:
    """The components that send nothing."""
    return [problem.components[c] for c in np.flatnonzero(sink_numbers(problem) >= 0).tolist()]


def heap_places(node: Ints, nodes: int) -> Ints:
    """Where the heap of each node begins, [N]."""
    return np.concatenate([[0], np.cumsum(np.bincount(node, minlength=nodes))[:-1]]).astype(
        np.int64
    )


def chain(size: int, start: int = 0) -> Ints:
    """A list of free places."""
    links = np.arange(start + 1, start + size + 1)
    links[-1] = NOBODY
    return links


def first_winners(leaves: int) -> Ints:
    """The tournament while nothing is due: the first clock wins everywhere, [2 x leaves]."""
    winner = np.zeros(2 * leaves, np.int64)
    winner[leaves:] = np.arange(leaves)
    for i in range(leaves - 1, 0, -1):
        winner[i] = winner[2 * i]
    return winner


def grow(run: Run) -> Run:
    """The same moment with twice the memory for tuples and trees."""
    tuples, trees = len(run.next), len(run.open)
    run = run._replace(
        next=np.concatenate([run.next, chain(tuples, tuples)]),
        tree=np.concatenate([run.tree, run.tree]),
        to=np.concatenate([run.to, run.to]),
        via=np.concatenate([run.via, run.via]),
        level=np.concatenate([run.level, run.level]),
        ready=np.concatenate([run.ready, run.ready]),
        born=np.concatenate([run.born, run.born]),
        open=np.concatenate([run.open, np.full(trees, NOBODY, np.int64)]),
        spout=np.concatenate([run.spout, run.spout]),
        damaged=np.concatenate([run.damaged, run.damaged]),
        next_tree=np.concatenate([run.next_tree, chain(trees, trees)]),
    )
    # The new places go before the old free ones.
    run.next[2 * tuples - 1] = run.counts[at.FREE_TUPLE] if run.counts[at.FREE_TUPLES] else NOBODY
    run.next_tree[2 * trees - 1] = run.counts[at.FREE_TREE] if run.counts[at.FREE_TREES] else NOBODY
    run.counts[at.FREE_TUPLE], run.counts[at.FREE_TREE] = tuples, trees
    run.counts[at.FREE_TUPLES] += tuples
    run.counts[at.FREE_TREES] += trees
    return run
