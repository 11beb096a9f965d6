"""What is fixed during a search: classes, traffic, limits and prices.

A limit counts as kept up to `TOLERANCE`; a search itself uses half of that, so that rounding can
never tip a plan over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints, distinct
from headrace.solve.instance import Instance

LEAST_SCARCITY = 0.02  # a resource of which there is plenty still counts for so much in a size
TIE_BREAKING_NODE = 0.05  # price of one more node where traffic comes first, of the lightest edge


class Terms(NamedTuple):
    """What is fixed during a search; rows are nodes, since a step touches only a few of them."""

    wanted: Ints  # [C]   tasks to place
    start: Ints  # [C + 1]  neighbours of class c are other[start[c]:start[c + 1]], ascending
    other: Ints
    weight: Floats  # tuples/s between one task of c and one of the neighbour
    own: Floats  # [C]      tuples/s between two tasks of the same class
    demand: Floats  # [Y, C, K]
    size: Floats  # [Y, C]  demand as a share of an average node; scarce resources weigh more
    node_type: Ints  # [N]
    limit: Floats  # [N, K]
    unit: Floats  # [K]     1 / average limit: makes overloads of different resources comparable
    allowed: Bools  # [N, C]
    apart: Bools  # [C]
    group: Ints  # [C]
    slots: Ints  # [N]
    heap: Floats  # [G]
    memory: Floats  # [C]
    member_start: Ints  # [G + 1]  a group's classes: member[member_start[g]:member_start[g + 1]]
    member: Ints  # [C]     largest memory first
    packed: Bools  # [G]    the group may need more than one slot on a node
    slotted: bool  # slots can bind at all
    current: Ints  # [N, C]
    move_cost: Floats  # [C]
    moving: bool  # a current plan counts
    node_price: float  # cost of using one more node while searching
    node_rank: float  # the same when plans are compared; 0: nodes only break ties
    tie: float  # costs nearer than this are equal
    rack: Ints  # [N]
    rack_price: float  # of a tuple between racks, beyond the 1 of one between nodes
    racked: bool  # racks count


def terms_of(
    instance: Instance,
    current: Ints | None = None,
    move_cost: Floats | None = None,
    prefer: str = "traffic",
) -> Terms:
    """The terms of a search over an instance; `prefer` as in `least_crossing_search`."""
    classes = len(instance.count)
    start, other, weight, own = neighbours_of(instance)
    limit = np.maximum(instance.capacity.astype(np.float64), 0.0) * (1 + TOLERANCE / 2)
    unit, size = sizes_of(instance, limit)
    heap = instance.heap * (1 + TOLERANCE / 2)
    member_start, member, packed = members_of(instance, heap)
    slotted = bool(packed.any() or (instance.slots < len(distinct(instance.group))).any())
    moving = current is not None
    costs = np.zeros(classes) if move_cost is None or not moving else move_cost.astype(np.float64)
    most = (1 + instance.rack_price) * instance.total_weight
    most += float((costs * instance.count).sum())
    node_price, node_rank = node_prices(instance, most, prefer)
    return Terms(
        wanted=instance.count.astype(np.int64),
        start=start,
        other=other,
        weight=weight,
        own=own,
        demand=np.ascontiguousarray(instance.demand, np.float64),
        size=np.ascontiguousarray(size),
        node_type=instance.node_type.astype(np.int64),
        limit=np.ascontiguousarray(limit),
        unit=unit,
        allowed=np.ascontiguousarray(instance.allowed.T),
        apart=instance.apart.astype(np.bool_),
        group=instance.group.astype(np.int64),
        slots=instance.slots.astype(np.int64),
        heap=heap,
        memory=instance.memory.astype(np.float64),
        member_start=member_start,
        member=member,
        packed=packed,
        slotted=slotted,
        current=np.zeros((1, 1), np.int64)
        if current is None
        else np.ascontiguousarray(current.T, np.int64),
        move_cost=costs,
        moving=moving,
        node_price=node_price,
        node_rank=node_rank,
        tie=TOLERANCE * max(most, 1e-300),
        rack=np.zeros(len(limit), np.int64)
        if instance.rack is None
        else instance.rack.astype(np.int64),
        rack_price=instance.rack_price,
        racked=instance.rack is not None and instance.rack_price > 0,
    )


def neighbours_of(instance: Instance) -> tuple[Ints, Ints, Floats, Floats]:
    """Traffic class by class: `start`, `other`, `weight` and `own` of `Terms`."""
    classes = len(instance.count)
    a, b, weight = instance.edge_a, instance.edge_b, instance.edge_weight
    cross = a != b
    source = np.concatenate([a[cross], b[cross]]).astype(np.int64)
    target = np.concatenate([b[cross], a[cross]]).astype(np.int64)
    order = np.lexsort((target, source))
    start = np.zeros(classes + 1, np.int64)
    np.add.at(start, source + 1, 1)
    own = np.zeros(classes)
    own[a[~cross]] = weight[~cross]
    both_ways = np.concatenate([weight[cross], weight[cross]])[order].astype(np.float64)
    return np.cumsum(start), target[order], both_ways, own


def sizes_of(instance: Instance, limit: Floats) -> tuple[Floats, Floats]:
    """`unit` and `size` of `Terms`."""
    finite = np.isfinite(limit)
    mean = np.where(finite, limit, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    unit = np.where(finite.any(axis=0), 1 / np.where(mean > 0, mean, 1.0), 0.0)
    wanted = instance.demand.mean(axis=0).T @ instance.count.astype(np.float64)
    scarcity = np.clip(wanted * unit / np.maximum(finite.sum(axis=0), 1), LEAST_SCARCITY, None)
    size = instance.demand @ (unit * scarcity)
    return unit, size + max(float(size.max(initial=0.0)), 1.0) * 1e-6


def members_of(instance: Instance, heap: Floats) -> tuple[Ints, Ints, Bools]:
    """Classes group by group: `member_start`, `member` and `packed` of `Terms`."""
    groups = len(instance.heap)
    member = np.lexsort((-instance.memory, instance.group)).astype(np.int64)
    member_start = np.searchsorted(instance.group[member], np.arange(groups + 1)).astype(np.int64)
    # A group whose tasks all fit one slot's heap never needs a second slot.
    whole = np.zeros(groups)
    np.add.at(whole, instance.group, instance.memory * instance.count)
    return member_start, member, whole > heap


def node_prices(instance: Instance, most: float, prefer: str) -> tuple[float, float]:
    """`node_price` and `node_rank` of `Terms`, if no plan costs more than `most`."""
    if prefer == "nodes":
        return 2 * most + 1.0, 2 * most + 1.0
    weight = instance.edge_weight
    lightest = float(weight[weight > 0].min(initial=np.inf)) if len(weight) else np.inf
    return (TIE_BREAKING_NODE * lightest if np.isfinite(lightest) else 1.0), 0.0
