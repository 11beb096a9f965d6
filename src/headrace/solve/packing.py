"""Bins: how many hold all of some things, and which bin each goes into.

First fit decreasing comes in two forms. Item by item (`first_fit`) it says where each item goes;
over runs of equal bins (`fill_runs`) its work does not grow with the number of items, which is why
a search uses it at every step. `fewest_bins` is exact, and takes long for many items; `few_bins`
ends in time.
"""

from __future__ import annotations

import math

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import NONE, ZERO, kernel, lean

TOO_MANY = 1_000_000  # bins for what fits no bin: more than any node has slots
NO_LIMIT = 2**62


@lean
def fewest_bins(sizes: Floats, items: int, heap: float, load: Floats, bin_of: Floats) -> int:
    """Fewest bins of size `heap` for so many sizes, sorted, largest first; at least one.

    `load` and `bin_of` are scratch, one longer than there are items.
    """
    return few_bins(sizes, items, heap, load, bin_of, NO_LIMIT)


@lean
def few_bins(
    sizes: Floats, items: int, heap: float, load: Floats, bin_of: Floats, looks: int
) -> int:
    """The same where so many looks into bins are enough to find out, else up to first fit's."""
    total = 0.0
    for i in range(items):
        total += sizes[i]
    if total <= heap:
        return 1
    fewest = math.ceil(total / heap * (1 - 1e-12))
    enough = first_fit(sizes, items, heap, load, bin_of)
    while fewest < enough and not fit_into(sizes, items, heap, fewest, load, bin_of, looks):
        fewest += 1
    return fewest


@lean
def first_fit(sizes: Floats, items: int, heap: float, load: Floats, bin_of: Floats) -> int:
    """Bins that first fit uses, in the order given; the bin of each item goes into `bin_of`."""
    used = 0
    for i in range(items):
        b = 0
        while b < used and load[b] + sizes[i] > heap:
            b += 1
        if b == used:
            load[b] = 0.0
            used += 1
        load[b] += sizes[i]
        bin_of[i] = b
    return used


@lean
def fit_into(
    sizes: Floats, items: int, heap: float, bins: int, load: Floats, bin_of: Floats, looks: int
) -> bool:
    """Whether the sizes go into so many bins: depth first, never two bins alike for one item.

    False too if that needs more than so many looks into bins.
    """
    for b in range(bins):
        load[b] = 0.0
    bin_of[0] = -1
    i = 0
    while i >= 0 and looks > 0:
        b = int(bin_of[i])
        if b >= 0:
            load[b] -= sizes[i]
            b += 1
        else:
            # Equal items go into bins in order.
            b = int(bin_of[i - 1]) if i > 0 and sizes[i] == sizes[i - 1] else 0
        while b < bins:
            seen = False
            looks -= b + 1
            for other in range(b):
                if load[other] == load[b]:
                    seen = True
            if not seen and load[b] + sizes[i] <= heap:
                break
            b += 1
        if b == bins:
            i -= 1
            continue
        bin_of[i] = b
        load[b] += sizes[i]
        i += 1
        if i == items:
            return True
        bin_of[i] = -1
    return False


@kernel
def first_fit_bins(sizes: Floats, counts: Ints, heap: float, space: Floats, length: Ints) -> int:
    """Bins that first fit uses for counts[i] items of each size, in the order given.

    `space` and `length` are scratch for the runs, three times as long as there are sizes.
    """
    runs = ZERO
    for i in range(sizes.shape[0]):
        runs = fill_runs(space, length, runs, sizes[i], counts[i], heap)
        if runs < 0:
            return TOO_MANY
    return bins_in(length, runs)


@kernel
def bins_in(length: Ints, runs: int) -> int:
    """Bins in all runs together."""
    bins = ZERO
    for r in range(runs):
        bins += length[r]
    return bins


@kernel
def fill_runs(space: Floats, length: Ints, runs: int, size: float, count: int, heap: float) -> int:
    """Put `count` items of one size into bins; gives the runs there are then.

    A run is length[r] neighbouring bins with space[r] left in each. NONE if no bin holds an item.
    """
    r = 0
    while count > 0:
        if r == runs:
            each = int(heap / size)
            if each == 0:
                return NONE
            space[r] = heap
            length[r] = -(-count // each)
            runs += 1
        each = int(space[r] / size)
        if count < each * length[r]:
            return split_run(space, length, runs, r, each, size, count)
        count -= each * length[r]
        space[r] -= each * size
        r += 1
    return runs


@kernel
def split_run(
    space: Floats, length: Ints, runs: int, r: int, each: int, size: float, count: int
) -> int:
    """Put items, `each` per bin, into a run that has bins to spare; gives the runs there are then.

    It becomes up to three: full bins, one partly filled, untouched bins.
    """
    full = count // each
    rest = count - full * each
    untouched = length[r] - full - (1 if rest > 0 else 0)
    more = (1 if full > 0 else 0) + (1 if rest > 0 else 0) + (1 if untouched > 0 else 0) - 1
    for j in range(runs - 1, r, -1):
        space[j + more] = space[j]
        length[j + more] = length[j]
    before = space[r]
    if full > 0:
        space[r] = before - each * size
        length[r] = full
        r += 1
    if rest > 0:
        space[r] = before - rest * size
        length[r] = 1
        r += 1
    if untouched > 0:
        space[r] = before
        length[r] = untouched
    return runs + more
