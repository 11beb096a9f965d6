"""All that one node holds changes places with what another holds, so that less leaves racks."""

from __future__ import annotations

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.compiled import NONE, lean


@lean
def swap_lots(
    flow: Floats,
    with_rack: Floats,
    rack: Ints,
    kind: Ints,
    fits: Bools,
    at: Ints,
    number: Ints,
    order: Ints,
    least: float,
) -> float:
    """One pass over the lots: each takes the place where most is gained; gives the gain in all.

    flow[B, B] is what lots exchange, with_rack[B, R] what they exchange with a rack, at[B] the node
    of a lot, number[N] the lot of a node or NONE, fits[B, Q] whether a kind of node holds a lot.
    `at`, `number` and `with_rack` change. Gains up to `least` do not count.
    """
    gained = 0.0
    for i in range(order.shape[0]):
        b, here = int(order[i]), int(at[order[i]])
        best, there = least, NONE
        for m in range(rack.shape[0]):
            if rack[m] == rack[here] or not fits[b, kind[m]]:
                continue
            gain = float(with_rack[b, rack[m]] - with_rack[b, rack[here]])
            other = int(number[m])
            if other >= 0:
                if not fits[other, kind[here]]:
                    continue
                gain += with_rack[other, rack[here]] - with_rack[other, rack[m]]
                gain -= 2 * flow[b, other]
            if gain > best:
                best, there = gain, NONE + 1 + m
        if there < 0:
            continue
        gained += best
        other = int(number[there])
        move_lot(flow, with_rack, rack, at, b, there)
        number[there] = b
        number[here] = other
        if other >= 0:
            move_lot(flow, with_rack, rack, at, other, here)
    return gained


@lean
def move_lot(flow: Floats, with_rack: Floats, rack: Ints, at: Ints, b: int, there: int) -> None:
    """Put lot b on node `there`."""
    before, after = rack[at[b]], rack[there]
    for i in range(flow.shape[0]):
        with_rack[i, before] -= flow[i, b]
        with_rack[i, after] += flow[i, b]
    at[b] = there
