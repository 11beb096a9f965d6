"""MT-Scheduler: map the critical path so that its slowest step is fastest, then the other layers.

Source    A. Al-Sinayyid, M. Zhu, Job scheduler for streaming applications in heterogeneous
          distributed processing systems, J. Supercomputing 2020, from the summaries in Muhammad
          (section 2.2.3) and Souravlas (section 4).
Maturity  inspired
Guards    slots are never overcommitted; CPU, memory, bandwidth, worker heap, pins and separations
          may be violated (the slowest step is made fast, not limited).
Differs   the summaries leave the recurrence open. Here a step is the load of a node, all its tasks
          together, or one transfer of the path; each label of the dynamic program carries the loads
          it has made, so a node may come back on the path and the result is a heuristic. Other
          tasks go to the node that raises the slowest step least, links adding up what passes them;
          of equal nodes to the one that sends the task most, then to the fastest. Tuples are used
          for bytes where a size is not known. Without stated bandwidths, all traffic on one link
          counts as one second; without stated CPU, all load on one node does. One worker per node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Pairs, Problem
from headrace.place.building_blocks.greedy import first_best, one_worker_per_node
from headrace.place.building_blocks.operators import downstream_pairs
from headrace.place.building_blocks.slots import refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology

MOST_STEPS = 2_000_000_000  # tasks on the critical path x nodes x nodes: about half a minute


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Seconds of work for a second of input. n counts the nodes with a free slot."""

    points: Floats  # [Y, T]
    machine: Ints  # [n] machine type
    speed: Floats  # [n] points per second; inf where the node takes no time
    amount: Floats  # [P] bytes/s or tuples/s of each pair
    bandwidth: Floats  # [n] amount per second

    def compute(self, task: int) -> Floats:
        """Time of a task on each node, [n]."""
        points = self.points[self.machine, task]
        return np.divide(
            points, self.speed, out=np.where(points > 0, np.inf, 0.0), where=self.speed > 0
        )

    def transfer(self, amount: Floats, of: Ints) -> Floats:
        """Time of each amount from its node to every node, 0 to the node itself, [len(of), n]."""
        time = amount[:, None] / np.minimum(self.bandwidth[of, None], self.bandwidth)
        time[np.arange(len(of)), of] = 0.0
        return time

    @property
    def mean_compute(self) -> Floats:
        """Time of each task on the mean node, [T]."""
        speed = float(self.speed.mean())
        return self.points[self.machine].mean(axis=0) / (speed if speed > 0 else 1.0)

    @property
    def mean_transfer(self) -> Floats:
        """Time of each pair on the mean link, [P]."""
        return self.amount / float(self.bandwidth.mean())


@each_topology
def mt_scheduler(problem: Problem) -> Assignment:
    """Sort topologically, map the critical path by dynamic programming, the rest by layers."""
    nodes = np.flatnonzero(problem.free_slots > 0)
    refuse_without_slots(problem, 1, len(nodes))
    pairs = downstream_pairs(problem)
    times = times_of(problem, pairs, nodes)
    layer = find_layers(problem, pairs)
    path, carried = critical_path(pairs, layer, times)
    if len(path) * len(nodes) ** 2 > MOST_STEPS:
        message = (
            f"a critical path of {len(path):,} tasks over {len(nodes):,} nodes is too long to map; "
            f"tasks x nodes x nodes may be {MOST_STEPS:,}"
        )
        raise Unsupported(
            message,
            resource="nodes",
            needed=len(path) * len(nodes) ** 2,
            available=MOST_STEPS,
            fix="use headrace",
        )
    position = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    position[path] = map_critical_path(times, path, carried)
    map_other_tasks(times, pairs, layer, position)
    return one_worker_per_node(problem, nodes[position])


def times_of(problem: Problem, pairs: Pairs, nodes: Ints) -> Times:
    """Loads over free CPU and transfers over bandwidth; over all of them where not stated."""
    points = np.stack([problem.task_cpu(y) for y in range(len(problem.types))])
    speed = problem.free[nodes, CPU]
    if np.isinf(speed).all():
        speed = np.full(len(nodes), float(problem.mean_demand[:, CPU].sum()) or 1.0)
    flows = pairs.tuples_per_s > 0
    sized = not np.isnan(pairs.bytes_per_s[flows]).any()
    amount = np.where(flows, pairs.bytes_per_s if sized else pairs.tuples_per_s, 0.0)
    bandwidth = problem.bandwidth_mbps[nodes] * 1e6 / 8
    if not sized or np.isinf(bandwidth).all():
        bandwidth = np.full(len(nodes), float(amount.sum()) or 1.0)
    return Times(points, problem.node_type[nodes], speed, amount, bandwidth)


def find_layers(problem: Problem, pairs: Pairs) -> Ints:
    """Topological sort: the layer of each task, one after the last of its senders, [T]."""
    waiting_for = np.bincount(pairs.target, minlength=problem.task_count)
    layer = np.full(problem.task_count, -1, dtype=np.int64)
    ready, number = waiting_for == 0, 0
    while ready.any():
        layer[ready] = number
        waiting_for -= np.bincount(pairs.target[ready[pairs.source]], minlength=problem.task_count)
        ready, number = (waiting_for == 0) & (layer < 0), number + 1
    if (layer < 0).any():
        cycle = " -> ".join(problem.task_name(t) for t in find_cycle(pairs, layer < 0))
        raise Unsupported(
            f"the topology has a cycle, {cycle}; a critical path needs a graph without",
            fix="use headrace or a3-storm",
        )
    return layer


def find_cycle(pairs: Pairs, left: Bools) -> list[int]:
    """A cycle among tasks that all receive from another of them; it ends with its first task."""
    inside = left[pairs.source] & left[pairs.target]
    receiver, where = np.unique(pairs.target[inside], return_index=True)
    sender = dict(zip(receiver.tolist(), pairs.source[inside][where].tolist(), strict=True))
    walk = [int(left.argmax())]
    while walk[-1] not in walk[:-1]:
        walk.append(sender[walk[-1]])
    return walk[walk.index(walk[-1]) :][::-1]


def critical_path(pairs: Pairs, layer: Ints, times: Times) -> tuple[Ints, Floats]:
    """The longest path on mean resources: its tasks, and the amounts between them."""
    compute, transfer = times.mean_compute, times.mean_transfer
    before = np.zeros(len(layer))  # longest way to a task
    by = np.full(len(layer), -1, dtype=np.int64)  # the pair that way comes by
    finish = compute.copy()
    order = np.argsort(layer[pairs.target], kind="stable")
    for into in np.split(order, np.flatnonzero(np.diff(layer[pairs.target[order]])) + 1):
        target, arrives = pairs.target[into], finish[pairs.source[into]] + transfer[into]
        latest = np.lexsort((-into, arrives))  # of equal ones the first pair comes last and stays
        before[target[latest]], by[target[latest]] = arrives[latest], into[latest]
        finish[target] = before[target] + compute[target]
    path, carried = [first_best(finish)], []
    while by[path[-1]] >= 0:
        pair = int(by[path[-1]])
        carried.append(float(times.amount[pair]))
        path.append(int(pairs.source[pair]))
    return np.array(path[::-1], dtype=np.int64), np.array(carried[::-1], dtype=np.float64)


def map_critical_path(times: Times, path: Ints, carried: Floats) -> Ints:
    """The node of each task on the path, [path].

    B_j(v) = min over u of max(B_{j-1}(u), transfer u to v, load of v).
    """
    n = np.arange(len(times.speed))
    slowest = times.compute(int(path[0]))  # B_j, [n]
    load = np.diag(slowest)  # [u, v] load of node v on the best way that ends on u
    came_from = np.zeros((len(path), len(n)), dtype=np.int64)
    for j, task in enumerate(path.tolist()[1:], start=1):
        compute = times.compute(task)
        step = np.maximum(slowest[:, None], times.transfer(np.full(len(n), carried[j - 1]), n))
        step = np.maximum(step, load + compute)
        least = step.min(axis=0)
        equal = step <= least * (1 + TOLERANCE)
        u = np.where(equal[n, n], n, equal.argmax(axis=0))  # staying is preferred
        came_from[j], slowest, load = u, step[u, n], load[u]
        load[n, n] += compute
    at = pick_fastest(times, slowest <= slowest.min() * (1 + TOLERANCE))
    position = np.empty(len(path), dtype=np.int64)
    for j in range(len(path) - 1, -1, -1):
        position[j] = at
        at = int(came_from[j, at])
    return position


def map_other_tasks(times: Times, pairs: Pairs, layer: Ints, position: Ints) -> None:
    """Give every other task the node that raises the slowest step least, layer after layer."""
    n = len(times.speed)
    load, link = np.zeros(n), np.zeros((n, n))
    into, out = group_by_task(pairs.target, len(layer)), group_by_task(pairs.source, len(layer))
    for task in np.flatnonzero(position != UNPLACED).tolist():
        load[position[task]] += times.compute(task)[position[task]]
    done = (position[pairs.source] != UNPLACED) & (position[pairs.target] != UNPLACED)
    a, b, amount = position[pairs.source[done]], position[pairs.target[done]], times.amount[done]
    apart = a != b
    np.add.at(
        link,
        (a[apart], b[apart]),
        amount[apart] / np.minimum(times.bandwidth[a[apart]], times.bandwidth[b[apart]]),
    )
    slowest = max(float(load.max()), float(link.max()))
    for task in np.argsort(layer, kind="stable").tolist():
        if position[task] != UNPLACED:
            continue
        received = sum_by_node(position[pairs.source[into[task]]], times.amount[into[task]], n)
        sent = sum_by_node(position[pairs.target[out[task]]], times.amount[out[task]], n)
        senders, receivers = np.flatnonzero(received), np.flatnonzero(sent)
        arriving = link[senders] + times.transfer(received[senders], senders)  # [senders, n]
        leaving = link[:, receivers].T + times.transfer(sent[receivers], receivers)
        after = load + times.compute(task)
        step = np.max(
            [after, arriving.max(axis=0, initial=0.0), leaving.max(axis=0, initial=0.0)], axis=0
        )
        step = np.maximum(step, slowest)
        equal = step <= step.min() * (1 + TOLERANCE)
        nearest = int(np.where(equal, received, 0.0).argmax())
        at = nearest if equal[nearest] and received[nearest] > 0 else pick_fastest(times, equal)
        position[task], load[at], slowest = at, after[at], float(step[at])
        link[senders, at], link[at, receivers] = arriving[:, at], leaving[:, at]


def group_by_task(end: Ints, tasks: int) -> list[Ints]:
    """The pairs that have each task at this end."""
    order = np.argsort(end, kind="stable")
    return np.split(order, np.cumsum(np.bincount(end, minlength=tasks))[:-1])


def sum_by_node(position: Ints, amount: Floats, nodes: int) -> Floats:
    """Amounts added up by node, without those of tasks that have none, [n]."""
    placed = position != UNPLACED
    return totals(position[placed], amount[placed], nodes)


def pick_fastest(times: Times, among: Bools) -> int:
    """The node with most free CPU among some; of equal ones the first."""
    return int(np.where(among, times.speed, -1.0).argmax())
