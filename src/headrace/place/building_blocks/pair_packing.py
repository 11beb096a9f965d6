"""Items into bins by the traffic of their pairs, busiest pair first.

Aniello's online scheduler does this twice: executors into slots, then slots onto nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.place.building_blocks.greedy import Links
from headrace.solve.compiled import ZERO, kernel


class Bins(NamedTuple):
    """I items of G groups, B bins of Y kinds; the last five change as items come and go."""

    need: Floats  # [I, Y] load of an item in a bin of a kind
    kind: Ints  # [B]
    limit: Floats  # [B] of the load
    group: Ints  # [I] pairs are of one group
    group_most: Ints  # [G] items of a group in one bin
    start: Ints  # [I + 1] as in Links
    other: Ints
    weight: Floats
    margin: Floats  # [2] traffic and load that count as none
    load: Floats  # [B]
    room: Ints  # [B] items that still find a place
    inside: Ints  # [B, G] items of a group in a bin
    at: Ints  # [I] bin of each item, -1 at first
    pull: Floats  # [I, B] traffic of an item with what is in a bin


def new_bins(
    need: Floats,
    kind: Ints,
    limit: Floats,
    load: Floats,
    room: Ints,
    group: Ints,
    group_most: Ints,
    links: Links,
) -> Bins:
    """Bins without items; `load` is what they carry already."""
    items, bins = len(need), len(kind)
    margin = TOLERANCE * np.array([links.weight.max(initial=0.0), need.max(initial=0.0)])
    inside = np.zeros((bins, len(group_most)), dtype=np.int64)
    at, pull = np.full(items, -1, dtype=np.int64), np.zeros((items, bins))
    fixed = (need, kind, limit, group, group_most, links.start, links.other, links.weight, margin)
    return Bins(*fixed, load.copy(), room.copy(), inside, at, pull)


@kernel
def holds(bins: Bins, x: int, y: int, b: int, with_x: bool, with_y: bool) -> bool:
    """Whether a bin without x and y accepts those of them that are to be put in."""
    kind, group = bins.kind[b], bins.group[x]
    load, room, count = bins.load[b], bins.room[b], bins.inside[b, group]
    for item, put_in in ((x, with_x), (y, with_y)):
        change = int(put_in) - int(bins.at[item] == b)
        load += change * bins.need[item, kind]
        room -= change
        count += change
    return room >= 0 and count <= bins.group_most[group] and load <= bins.limit[b]


@kernel
def least_loaded_for_both(bins: Bins, x: int, y: int) -> int:
    """The least loaded bin that accepts two items, the first of equal ones; -1 if there is none."""
    best = -1
    for b in range(len(bins.load)):
        if (best < 0 or bins.load[b] < bins.load[best] - bins.margin[1]) and holds(
            bins, x, y, b, True, True
        ):
            best = b
    return best


@kernel
def least_loaded(bins: Bins, item: int, larger: int, beyond: int) -> int:
    """The least loaded bin with a place for an item; -1 if there is none.

    It must have room for the load of the larger of the two items given. `beyond` 1 ignores the
    limit of the group, 2 the limit of the load as well.
    """
    best, group = -1, bins.group[item]
    for b in range(len(bins.load)):
        if best >= 0 and bins.load[b] >= bins.load[best] - bins.margin[1]:
            continue
        if bins.room[b] < 1 or (beyond < 1 and bins.inside[b, group] >= bins.group_most[group]):
            continue
        need = max(bins.need[item, bins.kind[b]], bins.need[larger, bins.kind[b]])
        if beyond >= 2 or bins.load[b] + need <= bins.limit[b]:
            best = b
    return best


@kernel
def put(bins: Bins, item: int, b: int) -> None:
    """Move an item into a bin."""
    old = bins.at[item]
    if old == b:
        return
    if old >= 0:
        bins.load[old] -= bins.need[item, bins.kind[old]]
        bins.room[old] += 1
        bins.inside[old, bins.group[item]] -= 1
    bins.load[b] += bins.need[item, bins.kind[b]]
    bins.room[b] -= 1
    bins.inside[b, bins.group[item]] += 1
    bins.at[item] = b
    for link in range(bins.start[item], bins.start[item + 1]):
        if old >= 0:
            bins.pull[bins.other[link], old] -= bins.weight[link]
        bins.pull[bins.other[link], b] += bins.weight[link]


@kernel
def put_somewhere(bins: Bins, item: int) -> None:
    """Put an item into the least loaded bin that accepts it.

    Where none does, limits give way: first that of the group, then that of the load.
    """
    b = -1
    for beyond in range(3):
        if b < 0:
            b = least_loaded(bins, item, item, beyond)
    if b >= 0:
        put(bins, item, b)


@kernel
def pack_pairs(bins: Bins, first: Ints, second: Ints, between: Floats) -> None:
    """Take pairs in their order; `between` is the traffic of their two items in both directions."""
    for p in range(len(first)):
        x, y = int(first[p]), int(second[p])
        if bins.at[x] < 0 and bins.at[y] < 0:
            both = least_loaded_for_both(bins, x, y)
            if both >= 0:
                put(bins, x, both)
                put(bins, y, both)
            else:
                put_somewhere(bins, x)
                at_x = int(bins.at[x])
                if at_x >= 0 and holds(bins, x, y, at_x, True, True):
                    put(bins, y, at_x)
                else:
                    put_somewhere(bins, y)
        else:
            repack(bins, x, y, between[p])
            if bins.at[x] < 0:
                put_somewhere(bins, x)
            if bins.at[y] < 0:
                put_somewhere(bins, y)


@kernel
def candidate(low: int, high: int, third: int, number: int) -> int:
    """The first, second or third of three bins; -1 where it is one of those before."""
    if number == 0:
        return low
    if number == 1:
        return -1 if high == low else high
    return -1 if third in (low, high) else third


@kernel
def repack(bins: Bins, x: int, y: int, between: float) -> None:
    """Put two items, one of which has a bin, where the least traffic crosses.

    Tried are the bins they are in and the least loaded one.
    """
    at_x, at_y = int(bins.at[x]), int(bins.at[y])
    low, high, third = min(at_x, at_y), max(at_x, at_y), least_loaded(bins, x, y, int(ZERO))
    best_x, best_y, least = -1, -1, np.inf
    for i in range(3):
        for j in range(3):
            to_x, to_y = candidate(low, high, third, i), candidate(low, high, third, j)
            if to_x < 0 or to_y < 0:
                continue
            crossing = -bins.pull[x, to_x] - bins.pull[y, to_y]
            # Their own traffic is in the pull only where the other one is now.
            crossing += between * (int(to_x == at_y) + int(to_y == at_x) + int(to_x != to_y))
            if crossing >= least - bins.margin[0]:  # asked first: it is quicker than room
                continue
            if to_x == to_y:
                if not holds(bins, x, y, to_x, True, True):
                    continue
            elif not (
                holds(bins, x, y, to_x, True, False) and holds(bins, x, y, to_y, False, True)
            ):
                continue
            best_x, best_y, least = to_x, to_y, crossing
    if best_x >= 0:
        put(bins, x, best_x)
        put(bins, y, best_y)
