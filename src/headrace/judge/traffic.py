"""Who talks to whom across workers, nodes and racks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.load_aware import LOAD_AWARE, follow_streams, nearness, settle
from headrace.model.problem import UNPLACED, Assignment, Problem, Stream


@dataclass(frozen=True, eq=False)
class Workers:
    """The workers a plan uses, numbered in the order of their nodes and slots; W of them."""

    of_task: Ints  # [T] worker, UNPLACED for tasks that are not placed
    node: Ints  # [W]
    slot: Ints  # [W]

    @staticmethod
    def of(assignment: Assignment) -> Workers:
        """Number the (node, slot) pairs in use."""
        widest = int(assignment.worker.max(initial=0)) + 1
        key = assignment.node * widest + assignment.worker
        used, of_task = np.unique(key[assignment.node != UNPLACED], return_inverse=True)
        numbers = np.full(len(key), UNPLACED, dtype=np.int64)
        numbers[assignment.node != UNPLACED] = of_task
        return Workers(numbers, used // widest, used % widest)

    @cached_property
    def assignment(self) -> Assignment:
        """The plan that these are the workers of."""
        placed = self.of_task != UNPLACED
        return Assignment(
            np.where(placed, self.node[self.of_task], UNPLACED),
            np.where(placed, self.slot[self.of_task], UNPLACED),
        )

    @cached_property
    def placed(self) -> bool:
        """Whether every task is placed."""
        return bool((self.of_task != UNPLACED).all())


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """What one or more streams send, in tuples/s; per node where it says [N]."""

    total: float
    inter_worker: float
    inter_node: float
    inter_rack: float
    to_other_worker: Floats  # [N] sent to another worker of the same node
    to_other_node: Floats  # [N] sent to other nodes
    from_other_node: Floats  # [N] received from other nodes
    to_other_rack: Floats  # [racks] sent to other racks
    from_other_rack: Floats  # [racks]


def stream_crossing(problem: Problem, workers: Workers, stream: Stream) -> Crossing:
    """What a stream sends where: rates times shares per worker, never task by task."""
    if stream.grouping == LOAD_AWARE:
        return _near_crossing(problem, workers, stream)
    nodes, racks = len(problem.nodes), len(problem.racks)
    source, target = problem.tasks_of(stream.source), problem.tasks_of(stream.target)
    emitted = stream.tuples_per_s * totals(
        workers.of_task[source], problem.share[source], len(workers.node)
    )
    received = totals(
        workers.of_task[target], stream.received(target.stop - target.start), len(workers.node)
    )
    copies = float(received.sum())
    at_home = 0.0
    if stream.grouping == "local-or-shuffle":
        # A worker that holds a target task keeps all its tuples; only the others send them round.
        local = received > 0
        at_home = float(emitted[local].sum())
        emitted = np.where(local, 0.0, emitted)
    out_node, in_node = totals(workers.node, emitted, nodes), totals(workers.node, received, nodes)
    out_rack, in_rack = totals(problem.rack, out_node, racks), totals(problem.rack, in_node, racks)
    sent = float(emitted.sum())
    elsewhere = rest(copies, in_node)  # [N] copies of a tuple that go to other nodes
    to_other_node = out_node * elsewhere
    to_other_rack = out_rack * rest(copies, in_rack)
    return Crossing(
        total=sent * copies + at_home,
        # Sums instead of dot products: those are shared out to threads, which costs more than they
        # take where the machine is busy.
        inter_worker=float((emitted * rest(copies, received)).sum()),
        inter_node=float(to_other_node.sum()),
        inter_rack=float(to_other_rack.sum()),
        to_other_worker=totals(
            workers.node, emitted * rest(in_node[workers.node], received), nodes
        ),
        to_other_node=to_other_node,
        from_other_node=in_node * rest(sent, out_node),
        to_other_rack=to_other_rack,
        from_other_rack=in_rack * rest(sent, out_rack),
    )


def _near_crossing(problem: Problem, workers: Workers, stream: Stream) -> Crossing:
    """The same for a load-aware stream, which has to be followed task by task."""
    plan = workers.assignment
    _, routes = follow_streams(problem, plan)
    tuples = next(route.tuples_per_s for route in routes if route.stream is stream)
    source, target = problem.tasks_of(stream.source), problem.tasks_of(stream.target)
    level = nearness(problem, plan, source, target)
    a, b = plan.node[source], plan.node[target]
    nodes, racks = len(problem.nodes), len(problem.racks)
    in_node, beyond, further = (
        np.where(level == 1, tuples, 0.0),
        *(np.where(level >= least, tuples, 0.0) for least in (2, 3)),
    )
    return Crossing(
        total=float(tuples.sum()),
        inter_worker=float(in_node.sum() + beyond.sum()),
        inter_node=float(beyond.sum()),
        inter_rack=float(further.sum()),
        to_other_worker=totals(a, in_node.sum(axis=1), nodes),
        to_other_node=totals(a, beyond.sum(axis=1), nodes),
        from_other_node=totals(b, beyond.sum(axis=0), nodes),
        to_other_rack=totals(problem.rack[a], further.sum(axis=1), racks),
        from_other_rack=totals(problem.rack[b], further.sum(axis=0), racks),
    )


def rest(whole: float | Floats, part: Floats) -> Floats:
    """What is left of the whole without a part; 0 where only rounding is left.

    1e-12 of the whole is far less than one task's share among a million, and far more than adding
    up shares is off by.
    """
    left = whole - part
    return np.where(left > 1e-12 * whole, left, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """All traffic of a plan."""

    total: float  # tuples/s between tasks
    inter_worker: float
    inter_node: float
    inter_rack: float
    to_other_worker: Floats  # [N] tuples/s
    to_other_node: Floats  # [N] tuples/s
    from_other_node: Floats  # [N] tuples/s
    out_bytes: Floats  # [N] bytes/s to other nodes
    in_bytes: Floats  # [N] bytes/s from other nodes
    rack_out_bytes: Floats  # [racks] bytes/s to other racks
    rack_in_bytes: Floats  # [racks]
    sized: bool  # whether every stream says how large its tuples are

    @property
    def network_distance(self) -> float:
        """Tuples/s times Storm's distance: same worker 0, same node 1, same rack 2, else 3."""
        return self.inter_worker + self.inter_node + self.inter_rack

    def network_cost(self, network: tuple[float, float, float]) -> float:
        """Tuples/s times the price of the highest level that they cross."""
        worker, node, rack = network
        inside = worker * (self.inter_worker - self.inter_node)
        return inside + node * (self.inter_node - self.inter_rack) + rack * self.inter_rack


def traffic(problem: Problem, assignment: Assignment, workers: Workers | None = None) -> Traffic:
    """What goes between workers, nodes and racks; topologies that are not placed send nothing."""
    problem = settle(problem, assignment)
    workers = workers or Workers.of(assignment)
    n = len(problem.nodes)
    level = np.zeros(4)
    to_worker, to_node, from_node, out_bytes, in_bytes = np.zeros((5, n))
    racks = len(problem.racks)
    rack_out, rack_in = np.zeros((2, racks))
    sized = True
    for stream in problem.streams:
        if assignment.node[problem.first[stream.source]] == UNPLACED:
            continue
        c = stream_crossing(problem, workers, stream)
        level += (c.total, c.inter_worker, c.inter_node, c.inter_rack)
        to_worker += c.to_other_worker
        to_node += c.to_other_node
        from_node += c.from_other_node
        if np.isnan(stream.bytes):
            sized &= stream.tuples_per_s == 0
        else:
            out_bytes += c.to_other_node * stream.bytes
            in_bytes += c.from_other_node * stream.bytes
            rack_out += c.to_other_rack * stream.bytes
            rack_in += c.from_other_rack * stream.bytes
    pairs = problem.pairs
    if len(pairs):
        a, b = assignment.node[pairs.source], assignment.node[pairs.target]
        there = (a != UNPLACED) & (b != UNPLACED)
        rate = np.where(there, pairs.tuples_per_s, 0.0)
        apart = workers.of_task[pairs.source] != workers.of_task[pairs.target]
        crosses = a != b
        far = problem.rack[a] != problem.rack[b]
        level += (rate.sum(), rate[apart].sum(), rate[crosses].sum(), rate[far].sum())
        to_worker += totals(a[there], (rate * (apart & ~crosses))[there], n)
        to_node += totals(a[there], (rate * crosses)[there], n)
        from_node += totals(b[there], (rate * crosses)[there], n)
        data = np.where(there & crosses, np.nan_to_num(pairs.bytes_per_s), 0.0)
        out_bytes += totals(a[there], data[there], n)
        in_bytes += totals(b[there], data[there], n)
        further = there & far
        rack_out += totals(problem.rack[a[further]], data[further], racks)
        rack_in += totals(problem.rack[b[further]], data[further], racks)
        sized &= not bool(np.isnan(pairs.bytes_per_s[rate > 0]).any())
    total, inter_worker, inter_node, inter_rack = (float(v) for v in level)
    return Traffic(
        total,
        inter_worker,
        inter_node,
        inter_rack,
        to_worker,
        to_node,
        from_node,
        out_bytes,
        in_bytes,
        rack_out,
        rack_in,
        sized,
    )
