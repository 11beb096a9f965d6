"""Rates under any counts, in machine code: a search asks for them after every task that comes.

The same rules as `model/flow`, which the judge uses: inputs add up, a zipped component takes the
slowest one, components on common cycles are one linear system.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.flow import FlowByCounts, group_in_flow_order
from headrace.solve.compiled import kernel

ENDLESS = 1e9  # how much more a component gets where a loop amplifies without end
SMALLEST_PIVOT = 1e-12
SOURCE, TARGET, COPIED, SHARING, SHARING_END, TO_FIRST = 0, 1, 2, 3, 4, 5  # columns of `link`
STAYS, DEPENDS, UNEVEN = 0, 1, 2  # what counts do to loads
PIECE, ZIPPED = 0, 1  # columns of `component`


class CountFlow(NamedTuple):
    """Links sorted by the place of their target in the order of the flow. C components, L links."""

    kind: int  # loads stay as they are, depend on counts, or a first task has more than others
    order: Ints  # [C] components, those that feed others first
    component: Ints  # [C, 2] number of its group of common cycles; whether it is zipped
    link: Ints  # [L, 6]
    sharing: Ints  # components by whose tasks links are divided, one link after the other
    gain: Floats  # [L]
    measured: Floats  # [L] nan where it is not
    spout: Floats  # [C] rates
    reference: Floats  # [C] rates that the costs are for
    matrix: Floats  # [C, C + 1] scratch


def count_flow(flow: FlowByCounts, reference: Floats) -> CountFlow:
    """The arrays of a flow; costs are for the rates `reference` [C]."""
    if not flow.depends and not flow.uneven:
        return no_flow(reference)
    count = len(reference)
    ones = np.ones(count, dtype=np.int64)
    pieces = group_in_flow_order(count, [link.at(ones) for link in flow.links])
    order = np.array([c for piece in pieces for c in piece], dtype=np.int64)
    component = np.zeros((count, 2), dtype=np.int64)
    for number, piece in enumerate(pieces):
        component[piece, PIECE] = number
    component[list(flow.zipped), ZIPPED] = 1
    place = np.argsort(order)
    links = sorted(flow.links, key=lambda link: int(place[link.target]))
    ends = np.cumsum([0, *(len(link.sharing) for link in links)])
    return CountFlow(
        kind=UNEVEN if flow.uneven else DEPENDS,
        order=order,
        component=component,
        link=np.array(
            [
                (
                    link.source,
                    link.target,
                    int(link.copied),
                    ends[i],
                    ends[i + 1],
                    int(link.to_first and link.target in flow.uneven),
                )
                for i, link in enumerate(links)
            ],
            dtype=np.int64,
        ).reshape(-1, 6),
        sharing=np.array([c for link in links for c in link.sharing], dtype=np.int64),
        gain=np.array([link.gain for link in links], dtype=np.float64),
        measured=np.array(
            [np.nan if link.measured is None else link.measured for link in links],
            dtype=np.float64,
        ),
        spout=np.array(flow.spout_rate),
        reference=np.array(reference),
        matrix=np.zeros((count, count + 1)),
    )


def no_flow(reference: Floats) -> CountFlow:
    """Rates that stay as they are, whatever the counts."""
    count = len(reference)
    return CountFlow(
        kind=STAYS,
        order=np.arange(count, dtype=np.int64),
        component=np.zeros((count, 2), dtype=np.int64),
        link=np.zeros((0, 6), dtype=np.int64),
        sharing=np.zeros(0, dtype=np.int64),
        gain=np.zeros(0),
        measured=np.zeros(0),
        spout=np.array(reference),
        reference=np.array(reference),
        matrix=np.zeros((count, count + 1)),
    )


@kernel
def grow_rates(flow: CountFlow, tasks: Ints, more: Floats, first_gets: Floats) -> bool:
    """Write how many times the reference rate each component gets, more[C], for tasks[C].

    Of it, first_gets[C] goes to its first task alone. False where a loop amplifies without end;
    `more` is then ENDLESS everywhere.
    """
    first_gets[:] = 0.0
    if flow.kind == STAYS:
        more[:] = 1.0
        return True
    at = 0  # the first link into the component looked at
    first = 0
    count = len(flow.order)
    while first < count:
        piece = flow.component[flow.order[first], PIECE]
        last = first
        while last < count and flow.component[flow.order[last], PIECE] == piece:
            last += 1
        size = last - first
        for i in range(size):
            for j in range(size):
                flow.matrix[i, j] = 1.0 if i == j else 0.0
            at = receive(flow, tasks, more, first, i, piece, at)
        if not solve_piece(flow, size):
            more[:] = ENDLESS
            return False
        for i in range(size):
            more[flow.order[first + i]] = flow.matrix[i, count]
        first = last
    if flow.kind == UNEVEN:
        share_of_first(flow, tasks, more, first_gets)
    for c in range(count):
        if flow.reference[c] > 0.0:
            more[c] = more[c] / flow.reference[c]
            first_gets[c] *= more[c]
        else:
            more[c] = 1.0
            first_gets[c] = 0.0
    return True


@kernel
def share_of_first(flow: CountFlow, tasks: Ints, rate: Floats, share: Floats) -> None:
    """Write which share[C] of all that a component receives goes to its first task alone."""
    count = len(flow.order)
    received = flow.matrix[:, count]
    received[:] = 0.0
    for at in range(len(flow.gain)):
        c = flow.link[at, TARGET]
        arrives = flow.measured[at]
        if np.isnan(arrives):
            arrives = rate[flow.link[at, SOURCE]] * shared_gain(flow, tasks, at)
        received[c] += arrives * (tasks[c] if flow.link[at, COPIED] == 1 else 1)
        if flow.link[at, TO_FIRST] == 1:
            share[c] += arrives
    for c in range(count):
        share[c] = share[c] / received[c] if received[c] > 0.0 else 0.0


@kernel
def shared_gain(flow: CountFlow, tasks: Ints, at: int) -> float:
    """Tuples that a link carries per tuple of its source."""
    gain = flow.gain[at]
    if flow.link[at, SHARING] < flow.link[at, SHARING_END]:
        sharing = 0
        for k in range(flow.link[at, SHARING], flow.link[at, SHARING_END]):
            sharing += tasks[flow.sharing[k]]
        gain *= tasks[flow.link[at, TARGET]] / sharing
    return gain


@kernel
def receive(
    flow: CountFlow, tasks: Ints, rate: Floats, first: int, i: int, piece: int, at: int
) -> int:
    """Write row i of a piece's equations; rate[C] holds the pieces before. The next link."""
    count = len(flow.order)
    c = flow.order[first + i]
    total = 0.0
    least = np.inf
    while at < len(flow.gain) and flow.link[at, TARGET] == c:
        source = flow.link[at, SOURCE]
        gain = shared_gain(flow, tasks, at)
        copies = float(tasks[c]) if flow.link[at, COPIED] == 1 else 1.0
        measured = flow.measured[at]
        if np.isnan(measured) and flow.component[source, PIECE] == piece:
            j = 0
            while flow.order[first + j] != source:
                j += 1
            flow.matrix[i, j] -= gain * copies
        else:
            arrives = (rate[source] * gain if np.isnan(measured) else measured) * copies
            total += arrives
            least = min(least, arrives)
        at += 1
    if flow.component[c, ZIPPED] == 1 and least < np.inf:
        total = least
    flow.matrix[i, count] = flow.spout[c] + total
    return at


@kernel
def solve_piece(flow: CountFlow, size: int) -> bool:
    """Solve the equations of a piece in place; False where they have no solution of rates.

    What flows is never negative, so without an endless loop no pivot is 0 or less in any order.
    """
    matrix = flow.matrix
    last = matrix.shape[1] - 1
    for k in range(size):
        if not matrix[k, k] > SMALLEST_PIVOT:
            return False
        for i in range(k + 1, size):
            if matrix[i, k] != 0.0:
                part = matrix[i, k] / matrix[k, k]
                for j in range(k, size):
                    matrix[i, j] -= part * matrix[k, j]
                matrix[i, last] -= part * matrix[k, last]
    for k in range(size - 1, -1, -1):
        value = matrix[k, last]
        for j in range(k + 1, size):
            value -= matrix[k, j] * matrix[j, last]
        matrix[k, last] = value / matrix[k, k]
    return True
