"""Gr-Storm: part the executors along minimum cuts, fill the nodes with most FLOPS first.

Source    A. Muhammad, PhD thesis 2023, section 3.5, algorithms 10-11, eq. 3.1, fig. 3.7-3.8.
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory, bandwidth, pins and separations may be
          violated (the paper does not look at them), and parts may be very unequal: a minimum cut
          often takes off a single executor.
Differs   the thesis shows one cut in two; for more workers the part with most executors is cut
          again. Of cuts that carry equally much, up to rounding, the one with fewest edges is
          taken, then the one nearest to the sinks, as in fig. 3.8. A part that hangs apart is split
          into its largest component and the rest. Cycles are refused: the flow needs sources and
          sinks. Slots are ranked by the traffic inside them (option slot_traffic=incident: all
          traffic of their executors). Sockets count, full nodes do not. Sections 1.8 and 3.6 give
          executors a weight, their "computation requirements", which section 3.5.2 and the
          algorithms leave out, and which a cut of streams cannot use. Option vertices=cpu uses it
          where the text allows: the part that needs most CPU is cut again, and the part with
          "maximum processing requirements" gets the strongest node. A node fact that is not known
          of every node with a free slot ranks none, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

from headrace.errors import Unsupported
from headrace.model.arrays import totals
from headrace.model.problem import CPU, Assignment, Bools, Floats, Ints, Pairs, Problem
from headrace.place.building_blocks.node_power import (
    GFLOPS_FACTS,
    gflops,
    keep_common_facts,
    list_missing_facts,
    rank_nodes,
)
from headrace.place.building_blocks.operators import downstream_pairs
from headrace.place.building_blocks.slot_filling import (
    SlotTraffic,
    fill_nodes,
    slots_by_need,
    slots_by_traffic,
)
from headrace.place.building_blocks.topologies import each_topology

MOST_PAIRS = 1_000_000  # some seconds; beyond, 32-bit capacities become too coarse
INFINITE = 2**31 - 1  # the flow's capacities are 32-bit integers

Vertices = Literal["count", "cpu"]  # what an executor weighs: one, or the CPU it needs

# scipy has no types for these.
_components = cast("Callable[..., tuple[int, Ints]]", csgraph.connected_components)
_reached = cast("Callable[..., Ints]", csgraph.breadth_first_order)
_maximum_flow = cast("Callable[..., Any]", csgraph.maximum_flow)


@each_topology
def gr_storm(
    problem: Problem, *, slot_traffic: SlotTraffic = "internal", vertices: Vertices = "count"
) -> Assignment:
    """Algorithm 10: part the weighted graph, then map the parts to workers."""
    if problem.pair_count > MOST_PAIRS:
        message = (
            f"gr-storm would cut {problem.pair_count:,} task pairs; "
            f"the most it takes is {MOST_PAIRS:,}"
        )
        raise Unsupported(
            message,
            resource="task pairs",
            needed=problem.pair_count,
            available=MOST_PAIRS,
            fix="use headrace or a3-storm",
        )
    pairs = downstream_pairs(problem)
    weight = problem.mean_demand[:, CPU] if vertices == "cpu" else np.ones(problem.task_count)
    slot_of = max_flow_min_cut(problem, pairs, problem.worker_count(0), weight)
    ranked = slots_by_traffic(pairs, slot_of, slot_traffic)
    if vertices == "cpu":
        ranked = slots_by_need(slot_of, weight, ranked)
    return map_partitions_to_workers(problem, slot_of, ranked)


def max_flow_min_cut(problem: Problem, pairs: Pairs, workers: int, weight: Floats) -> Ints:
    """The part of each executor: the heaviest part is cut until every worker has one, [T]."""
    part_of = np.zeros(problem.task_count, dtype=np.int64)
    parts = min(workers, problem.task_count)
    if parts > 1:
        refuse_cycles(problem, pairs)
    for new in range(1, parts):
        part = heaviest_part(part_of, pairs, new, weight)
        members = np.flatnonzero(part_of == part)
        inside = (
            (part_of[pairs.source] == part)
            & (part_of[pairs.target] == part)
            & (pairs.source != pairs.target)
        )
        source, target = (
            np.searchsorted(members, pairs.source[inside]),
            np.searchsorted(members, pairs.target[inside]),
        )
        part_of[members[far_side(source, target, pairs.tuples_per_s[inside], len(members))]] = new
    return part_of


def heaviest_part(part_of: Ints, pairs: Pairs, parts: int, weight: Floats) -> int:
    """Of the parts that can be cut the heaviest; then the one with most executors, most traffic."""
    size = np.bincount(part_of, minlength=parts)
    heavy = np.where(size > 1, totals(part_of, weight, parts), -1.0)
    a, b = part_of[pairs.source], part_of[pairs.target]
    inside = np.bincount(a[a == b], pairs.tuples_per_s[a == b], parts)
    return int(np.lexsort((np.arange(parts), -inside, -size, -heavy))[0])


def far_side(source: Ints, target: Ints, tuples_per_s: Floats, executors: int) -> Bools:
    """The executors to split off: behind the minimum cut, or outside the largest component."""
    capacity = capacities(tuples_per_s)
    graph = csr_array((capacity, (source, target)), shape=(executors, executors))
    count, component = _components(graph, directed=False)
    if count > 1:
        return component != np.bincount(component).argmax()
    first = np.flatnonzero(np.bincount(target, minlength=executors) == 0)
    last = np.flatnonzero(np.bincount(source, minlength=executors) == 0)
    begin, end = executors, executors + 1
    ends = np.full(len(first) + len(last), INFINITE, dtype=np.int32)
    row = np.concatenate([source, np.full(len(first), begin), last])
    column = np.concatenate([target, first, np.full(len(last), end)])
    network = csr_array((np.concatenate([capacity, ends]), (row, column)), shape=(end + 1, end + 1))
    left = csr_array(network - _maximum_flow(network, begin, end).flow)
    left.eliminate_zeros()
    # What can still send to the sink is on its side: of all minimum cuts the last.
    behind = np.zeros(end + 1, dtype=bool)
    behind[_reached(csr_array(left.T), end, return_predecessors=False)] = True
    return behind[:executors]


def capacities(tuples_per_s: Floats) -> NDArray[np.int32]:
    """Traffic as 32-bit integers that together stay below INFINITE.

    Every edge gets a few units more, so that between cuts that carry the same but for rounding
    the number of edges decides.
    """
    per_edge = 4 + 4000 // max(1, len(tuples_per_s))
    total = float(tuples_per_s.sum())
    # A power of two: traffic in whole tuples/s is scaled without rounding, so that cuts that carry
    # the same stay equal.
    scale = (
        2.0 ** np.floor(np.log2((INFINITE - (per_edge + 1) * len(tuples_per_s)) / total))
        if total > 0
        else 0.0
    )
    return (np.rint(tuples_per_s * scale) + per_edge).astype(np.int32)


def refuse_cycles(problem: Problem, pairs: Pairs) -> None:
    """Raise if executors send to each other in a circle, naming one."""
    apart = pairs.source != pairs.target
    source, target = pairs.source[apart], pairs.target[apart]
    graph = csr_array(
        (np.ones(len(source)), (source, target)), shape=(problem.task_count, problem.task_count)
    )
    count, component = _components(graph, connection="strong")
    if count == problem.task_count:
        return
    inside = component[source] == component[target]
    after = dict(zip(source[inside].tolist(), target[inside].tolist(), strict=True))
    path = [int(source[inside][0])]
    while after[path[-1]] not in path:
        path.append(after[path[-1]])
    circle = [*path[path.index(after[path[-1]]) :], after[path[-1]]]
    names = " -> ".join(problem.task_name(task) for task in circle)
    raise Unsupported(
        f"gr-storm cuts graphs without cycles, and there is the cycle {names}",
        fix="use a3-storm or headrace",
    )


def map_partitions_to_workers(problem: Problem, slot_of: Ints, ranked: Ints) -> Assignment:
    """Algorithm 11: the first part to the node with most FLOPS (eq. 3.1), node after node."""
    return fill_nodes(
        problem,
        slot_of,
        ranked,
        rank_nodes(problem, gflops(keep_common_facts(problem))),
        list_missing_facts(problem, GFLOPS_FACTS),
    )
