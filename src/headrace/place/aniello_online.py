"""Aniello's online scheduler (OLS): busiest pairs into one slot, then busiest slots on one node.

Source    L. Aniello, R. Baldoni, L. Querzoni, Adaptive Online Scheduling in Storm, DEBS 2013, as
          the authors' implementation does it; Eskandari (section 3.2) and Souravlas (section 2)
          describe it in short.
Maturity  faithful
Guards    slots are never overcommitted; CPU is kept within a node where the pairs allow it, but may
          be exceeded, and memory, bandwidth, worker heap, pins and separations may be violated (the
          scheduler does not look at them).
Differs   the planned load of a node is counted, which a slip in the authors' code leaves at 0, and
          so is the least number of nodes. gamma has a default, where theirs stops. What no slot or
          node accepts goes to the least loaded one with a place left, first beyond the number of
          slots per node, then beyond the load. Executors without traffic are dealt as Storm's
          default does, to slots of their own while `workers` allows, else over the topology's. The
          timer between two runs belongs to the control loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.errors import HeadraceError, Infeasible, InvalidInput, Unsupported
from headrace.judge.traffic import traffic
from headrace.model.arrays import TOLERANCE, Floats, Ints, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Pairs, Problem
from headrace.place.aniello_offline import count_nodes_to_use, most_in_one, refuse_outside_unit
from headrace.place.building_blocks.greedy import (
    Links,
    first_best,
    limits,
    links_of,
    order_descending,
)
from headrace.place.building_blocks.pair_packing import (
    Bins,
    new_bins,
    pack_pairs,
    put,
    put_somewhere,
)
from headrace.place.building_blocks.slots import free_slots, refuse_without_slots
from headrace.place.building_blocks.topologies import sum_demand_by_node
from headrace.place.storm_even import interleaved_slots, storm_order

MOST_ENTRIES = 100_000_000  # executors x slots: the table of traffic between them


def aniello_online(
    problem: Problem,
    *,
    gamma: float = 1.5,
    alfa: float = 0.0,
    beta: float = 1.0,
    delta: float = 0.0,
    improve: float = 10.0,
) -> Assignment:
    """The plan of both phases, or the current one where the new is not `improve` percent better.

    A slot takes at most gamma x its even share of the load; alfa and delta let slots and nodes be
    filled unevenly; beta spreads a topology over more nodes.
    """
    refuse_outside_unit("aniello-online", alfa=alfa, beta=beta, delta=delta)
    if gamma < 1:
        raise InvalidInput(f"aniello-online: option gamma is {gamma:g}; it must be at least 1")
    plan = both_phases(problem, gamma, alfa, beta, delta)
    return (
        plan
        if problem.current is None or is_worth_it(problem, problem.current, plan, improve)
        else problem.current
    )


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A topology whose executors have slots."""

    busy: Ints  # tasks with traffic
    links: Links  # between these
    slot_of: Ints  # [busy]
    slots: int  # for these
    idle: Ints  # tasks without traffic, in Storm's order
    more_slots: int  # for those


def both_phases(
    problem: Problem, gamma: float, alfa: float, beta: float, delta: float
) -> Assignment:
    """Slots for the executors of each topology, by priority; then nodes for all slots together."""
    refused: dict[str, HeadraceError] = {}
    groups: list[Group] = []
    left, order = int(problem.free_slots.sum()), storm_order(problem)
    for g in np.argsort(problem.priority, kind="stable").tolist():
        try:
            group = executors_to_slots(problem, g, order, left, gamma, alfa)
        except (Infeasible, Unsupported) as error:
            refused[problem.topologies[g]] = error
            continue
        groups.append(group)
        left -= group.slots + group.more_slots
    if not groups:
        raise next(iter(refused.values()))
    node_of_slot = slots_to_nodes(problem, groups, beta, delta)
    return assign_workers(problem, groups, node_of_slot, refused)


def executors_to_slots(
    problem: Problem, topology: int, order: Ints, left: int, gamma: float, alfa: float
) -> Group:
    """Phase 1: slots for the executors of one topology; `left` slots are still free."""
    alone = problem.only(topology, problem.taken, problem.slot_taken)
    refuse_without_slots(alone, 1, left)
    mine = np.flatnonzero(problem.topology[problem.component_of] == topology)
    pairs = alone.task_pairs()
    real = (pairs.source != pairs.target) & (pairs.tuples_per_s > 0)
    talks = np.zeros(len(mine), dtype=np.bool_)
    talks[pairs.source[real]] = talks[pairs.target[real]] = True
    number = np.cumsum(talks) - 1
    rate = pairs.tuples_per_s[real]
    pairs = Pairs(number[pairs.source[real]], number[pairs.target[real]], rate, rate)
    busy = mine[talks]
    links = links_of(pairs, len(busy))
    idle = order[np.isin(order, mine[~talks])]
    slots = min(problem.worker_count(topology), len(mine), left)
    for_busy = min(slots, len(busy))
    load = problem.mean_demand[busy, CPU]
    slot_of = busy_to_slots(pairs, links, load, for_busy, gamma, alfa) if for_busy else busy
    return Group(busy, links, slot_of, for_busy, idle, min(slots - for_busy, len(idle)))


def busy_to_slots(
    pairs: Pairs, links: Links, load: Floats, slots: int, gamma: float, alfa: float
) -> Ints:
    """Executors into slots of even load by their pairs, busiest first, [busy].

    Then every slot that stayed empty gets the executor that costs the least traffic.
    """
    busy = len(load)
    if busy * slots > MOST_ENTRIES:
        message = (
            f"needs a table of {busy:,} executors x {slots:,} slots; "
            f"the most it takes is {MOST_ENTRIES:,} entries"
        )
        raise Unsupported(
            message,
            resource="table",
            needed=busy * slots,
            available=MOST_ENTRIES,
            fix="lower `workers`, or use headrace",
        )
    limit = np.full(slots, gamma * float(load.sum()) / slots)
    one_kind, one_group = np.zeros(slots, dtype=np.int64), np.zeros(busy, dtype=np.int64)
    most = np.array([most_in_one(busy, slots, alfa)], dtype=np.int64)
    bins = new_bins(
        load[:, None],
        one_kind,
        limits(limit),
        np.zeros(slots),
        np.full(slots, most[0]),
        one_group,
        most,
        links,
    )
    order = order_descending(pairs.tuples_per_s)
    source, target = pairs.source[order], pairs.target[order]
    pack_pairs(bins, source, target, traffic_between(links, source, target))
    for empty in np.flatnonzero(bins.inside[:, 0] == 0).tolist():
        movable = np.flatnonzero(bins.inside[bins.at, 0] > 1)
        lost = bins.pull[movable, bins.at[movable]]
        put(bins, int(movable[first_best(-np.where(lost > bins.margin[0], lost, 0.0))]), empty)
    return bins.at


def traffic_between(links: Links, a: Ints, b: Ints) -> Floats:
    """Traffic between the items of pairs, both directions added."""
    items = len(links.start) - 1
    key = np.repeat(np.arange(items), np.diff(links.start)) * items + links.other  # ascending
    return links.weight[np.searchsorted(key, a * items + b)]


def slots_to_nodes(problem: Problem, groups: list[Group], beta: float, delta: float) -> Ints:
    """Phase 2: a node for every slot that holds executors with traffic, in order of the groups."""
    first = np.cumsum([0, *(group.slots for group in groups)])
    slots = int(first[-1])
    if not slots:
        return np.zeros(0, dtype=np.int64)
    slot_of = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    for g, group in enumerate(groups):
        slot_of[group.busy] = first[g] + group.slot_of
    placed = np.flatnonzero(slot_of != UNPLACED)
    load = np.column_stack(
        [
            totals(slot_of[placed], problem.task_cpu(y)[placed], slots)
            for y in range(len(problem.types))
        ]
    )
    between_slots = slot_links(groups, first, slots)
    use = [
        count_nodes_to_use(problem.free_slots, group.slots, beta) if group.slots else 1
        for group in groups
    ]
    most = np.array(
        [most_in_one(group.slots, n, delta) for group, n in zip(groups, use, strict=True)],
        dtype=np.int64,
    )
    owner = np.repeat(np.arange(len(groups)), [group.slots for group in groups])
    capacity, taken = problem.capacity[:, CPU], problem.taken[:, CPU]
    bins = new_bins(
        load,
        problem.node_type,
        limits(capacity),
        taken,
        problem.free_slots,
        owner,
        most,
        between_slots,
    )
    a = np.repeat(np.arange(slots), np.diff(between_slots.start))
    once = a < between_slots.other
    a, b, weight = a[once], between_slots.other[once], between_slots.weight[once]
    order = order_descending(weight)
    pack_pairs(bins, a[order], b[order], weight[order])
    for slot in np.flatnonzero(bins.at < 0).tolist():  # no traffic with other slots
        put_somewhere(bins, slot)
    for g in range(len(groups)):
        mine = np.flatnonzero(owner == g)
        while len(np.unique(bins.at[mine])) < use[g] and spread_slots(bins, mine, g):
            pass
    return bins.at


def slot_links(groups: list[Group], first: Ints, slots: int) -> Links:
    """Traffic between slots; those of a group are numbered from its `first` on."""
    ends: list[Ints] = []
    weight: list[Floats] = []
    for group, start in zip(groups, first[:-1].tolist(), strict=True):
        a = np.repeat(np.arange(len(group.busy)), np.diff(group.links.start))
        half = a < group.links.other
        ends.append(start + group.slot_of[np.stack([a[half], group.links.other[half]])])
        weight.append(group.links.weight[half])
    (a, b), rate = np.concatenate(ends, axis=1), np.concatenate(weight)
    return links_of(Pairs(a, b, rate, rate), slots)


def spread_slots(bins: Bins, mine: Ints, group: int) -> bool:
    """Move a slot to a node that has none of its topology; whether there was one to move.

    It leaves a node with several: the slot that adds the least traffic between nodes, to the
    least loaded node.
    """
    movable = mine[bins.inside[bins.at[mine], group] > 1]
    unused = np.flatnonzero((bins.inside[:, group] == 0) & (bins.room > 0))
    for node in unused[np.argsort(bins.load[unused], kind="stable")].tolist():
        may = movable[bins.load[node] + bins.need[movable, bins.kind[node]] <= bins.limit[node]]
        if len(may):
            added = bins.pull[may, bins.at[may]] - bins.pull[may, node]
            put(bins, int(may[first_best(-np.where(added > bins.margin[0], added, 0.0))]), node)
            return True
    return False


def assign_workers(
    problem: Problem, groups: list[Group], node_of_slot: Ints, refused: dict[str, HeadraceError]
) -> Assignment:
    """Number the slots on their nodes, and deal the executors without traffic over slots.

    These are slots of their own where `workers` allows, else those of their topology.
    """
    node, worker = np.full((2, problem.task_count), UNPLACED, dtype=np.int64)
    open_slots = [free_slots(problem, n).tolist()[::-1] for n in range(len(problem.nodes))]
    place = np.array(
        [(n, open_slots[n].pop()) for n in node_of_slot.tolist()], dtype=np.int64
    ).reshape(-1, 2)
    slot_taken = problem.slot_taken.copy()
    slot_taken[place[:, 0], place[:, 1]] = True
    first = 0
    for group in groups:
        mine = place[first : first + group.slots]
        first += group.slots
        node[group.busy], worker[group.busy] = mine[group.slot_of].T
        if len(group.idle):
            ring = (
                interleaved_slots(replace(problem, slot_taken=slot_taken.copy()))[
                    : group.more_slots
                ]
                if group.more_slots
                else mine
            )
            node[group.idle], worker[group.idle] = ring[np.arange(len(group.idle)) % len(ring)].T
            slot_taken[ring[:, 0], ring[:, 1]] = True
    return Assignment(node, worker, refused)


def is_worth_it(problem: Problem, current: Assignment, plan: Assignment, improve: float) -> bool:
    """Whether a plan saves enough traffic, or relieves an overloaded node, to replace another."""
    if not can_run(problem, current):
        return True
    if plan.refused:
        return False
    before, after = traffic(problem, current).inter_node, traffic(problem, plan).inter_node
    was = sum_demand_by_node(problem, current)[:, CPU]
    becomes = sum_demand_by_node(problem, plan)[:, CPU]
    relieved = (was > limits(problem.free[:, CPU])) & (becomes < was * (1 - TOLERANCE))
    return bool(before * (1 - improve / 100) >= after or relieved.any())


def can_run(problem: Problem, plan: Assignment) -> bool:
    """Whether every task has a slot that exists, is not taken and holds one topology."""
    if (plan.node == UNPLACED).any() or (plan.worker >= problem.slots[plan.node]).any():
        return False
    if problem.slot_taken[plan.node, plan.worker].any():
        return False
    holders = np.unique(
        np.column_stack([plan.node, plan.worker, problem.topology[problem.component_of]]), axis=0
    )
    return len(np.unique(holders[:, :2], axis=0)) == len(holders)
