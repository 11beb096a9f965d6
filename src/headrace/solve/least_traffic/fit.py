"""Room on nodes: what a plan must respect, what it costs, and counts that are kept up to date while tasks come and go.

Everything here works on node-major rows (`x[n, c]`), because a step of the search touches one or
two nodes. A limit counts as kept up to a relative 1e-9; the search itself uses half of that, so
that rounding can never tip a plan over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints
from headrace.solve.compiled import ZERO, kernel
from headrace.solve.instance import Instance

Indices = NDArray[np.int32]  # of nodes and classes: halves four tables of classes x nodes


class Terms(NamedTuple):
    """What is fixed during a search: classes, traffic, limits and prices."""

    wanted: Ints  # [C]   tasks to place
    start: Ints  # [C + 1]  neighbours of class c are other[start[c]:start[c + 1]], ascending
    other: Ints
    weight: Floats  # tuples/s between one task of c and one of the neighbour
    own: Floats  # [C]      tuples/s between two tasks of the same class
    demand: Floats  # [Y, C, K]
    size: Floats  # [Y, C]  demand as one number: share of an average node, scarce resources weigh more
    node_type: Ints  # [N]
    limit: Floats  # [N, K]
    unit: Floats  # [K]     1 / average limit: makes overloads of different resources comparable
    allowed: Bools  # [N, C]
    apart: Bools  # [C]
    group: Ints  # [C]
    slots: Ints  # [N]
    heap: Floats  # [G]
    memory: Floats  # [C]
    member_start: (
        Ints  # [G + 1]  classes of a group are member[member_start[g]:member_start[g + 1]]
    )
    member: Ints  # [C]     largest memory first
    packed: Bools  # [G]    the group may need more than one slot on a node
    slotted: bool  # slots can bind at all
    current: Ints  # [N, C]
    move_cost: Floats  # [C]
    moving: bool  # a current plan counts
    node_price: float  # cost of using one more node while searching
    node_rank: float  # the same when plans are compared; 0: nodes only break ties
    tie: float  # costs nearer than this are equal


class State(NamedTuple):
    """Counts of a (possibly partial) plan and what follows from them."""

    x: Ints  # [N, C]
    pull: Floats  # [N, C]  traffic one more task of c would find on n
    used: Floats  # [N, K]
    tasks: Ints  # [N]
    members: Ints  # [N, G] tasks of a group on a node
    bins: Ints  # [N, G]    slots a group takes on a node
    taken: Ints  # [N]
    over: Floats  # [N]     overload in average nodes and slots; 0 where everything fits
    content: Indices  # [N, C]   classes present on a node, in no order; content_at is the inverse
    content_at: Indices  # [N, C]
    contents: Ints  # [N]
    holder: Indices  # [C, N]    nodes that hold a class, in no order; holder_at is the inverse
    holder_at: Indices  # [C, N]
    holders: Ints  # [C]
    run_space: Floats  # scratch of `bins_needed`
    run_length: Ints


def terms_of(
    instance: Instance,
    current: Ints | None = None,
    move_cost: Floats | None = None,
    prefer: str = "traffic",
) -> Terms:
    """The fixed side of a search over an instance."""
    classes = len(instance.count)
    groups = len(instance.heap)
    a, b, weight = instance.edge_a, instance.edge_b, instance.edge_weight
    cross = a != b
    source = np.concatenate([a[cross], b[cross]]).astype(np.int64)
    target = np.concatenate([b[cross], a[cross]]).astype(np.int64)
    order = np.lexsort((target, source))
    start = np.zeros(classes + 1, np.int64)
    np.add.at(start, source + 1, 1)
    own = np.zeros(classes)
    own[a[~cross]] = weight[~cross]

    limit = np.maximum(instance.capacity.astype(np.float64), 0.0) * (1 + TOLERANCE / 2)
    finite = np.isfinite(limit)
    mean = np.where(finite, limit, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    unit = np.where(finite.any(axis=0), 1 / np.where(mean > 0, mean, 1.0), 0.0)
    wanted = instance.demand.mean(axis=0).T @ instance.count.astype(np.float64)
    scarcity = np.clip(wanted * unit / np.maximum(finite.sum(axis=0), 1), 0.02, None)
    size = instance.demand @ (unit * scarcity)
    size = size + max(float(size.max(initial=0.0)), 1.0) * 1e-6

    # A group whose tasks all fit one slot's heap never needs a second slot.
    whole = np.zeros(groups)
    np.add.at(whole, instance.group, instance.memory * instance.count)
    heap = instance.heap * (1 + TOLERANCE / 2)
    member = np.lexsort((-instance.memory, instance.group)).astype(np.int64)
    member_start = np.searchsorted(instance.group[member], np.arange(groups + 1)).astype(np.int64)
    packed = whole > heap
    slotted = bool(packed.any() or (instance.slots < len(np.unique(instance.group))).any())

    total = instance.total_weight
    moving = current is not None
    costs = np.zeros(classes) if move_cost is None or not moving else move_cost.astype(np.float64)
    most = total + float((costs * instance.count).sum())
    by_nodes = prefer == "nodes"
    lightest = float(weight[weight > 0].min(initial=np.inf)) if len(weight) else np.inf
    return Terms(
        wanted=instance.count.astype(np.int64),
        start=np.cumsum(start),
        other=target[order],
        weight=np.concatenate([weight[cross], weight[cross]])[order].astype(np.float64),
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
        current=np.ascontiguousarray(current.T, np.int64)
        if current is not None
        else np.zeros((1, 1), np.int64),
        move_cost=costs,
        moving=moving,
        node_price=2 * most + 1.0
        if by_nodes
        else (0.05 * lightest if np.isfinite(lightest) else 1.0),
        node_rank=2 * most + 1.0 if by_nodes else 0.0,
        tie=TOLERANCE * max(most, 1e-300),
    )


def empty_state(terms: Terms) -> State:
    """No task placed anywhere."""
    nodes, classes = terms.allowed.shape
    groups = len(terms.heap)
    widest = int(np.diff(terms.member_start).max(initial=0))
    return State(
        x=np.zeros((nodes, classes), np.int64),
        pull=np.zeros((nodes, classes)),
        used=np.zeros_like(terms.limit),
        tasks=np.zeros(nodes, np.int64),
        members=np.zeros((nodes, groups), np.int64),
        bins=np.zeros((nodes, groups), np.int64),
        taken=np.zeros(nodes, np.int64),
        over=np.zeros(nodes),
        content=np.zeros((nodes, classes), np.int32),
        content_at=np.zeros((nodes, classes), np.int32),
        contents=np.zeros(nodes, np.int64),
        holder=np.zeros((classes, nodes), np.int32),
        holder_at=np.zeros((classes, nodes), np.int32),
        holders=np.zeros(classes, np.int64),
        run_space=np.zeros(3 * widest + 4),
        run_length=np.zeros(3 * widest + 4, np.int64),
    )


@kernel
def bins_needed(
    terms: Terms, state: State, n: int, g: int, c: int, k: int, c2: int, k2: int
) -> int:
    """Slots group g takes on node n after k more tasks of c and k2 of c2: first-fit decreasing over runs of equal bins.

    A run is a number of neighbouring bins with the same space left, so the work does not grow with
    the number of tasks.
    """
    present = state.members[n, g]
    if terms.group[c] == g:
        present += k
    if k2 != 0 and terms.group[c2] == g:
        present += k2
    if present <= 0:
        return 0
    if not terms.packed[g]:
        return 1
    heap = terms.heap[g]
    space, length = state.run_space, state.run_length
    runs = 0
    for i in range(terms.member_start[g], terms.member_start[g + 1]):
        e = terms.member[i]
        left = state.x[n, e]
        if e == c:
            left += k
        if e == c2:
            left += k2
        need = terms.memory[e]
        if left <= 0 or need <= 0.0:
            continue
        r = 0
        while r < runs and left > 0:
            each = int(space[r] / need)
            if each > 0:
                if left >= each * length[r]:
                    left -= each * length[r]
                    space[r] -= each * need
                else:  # the run ends here: full bins, at most one partly filled, untouched bins
                    full = left // each
                    rest = left - full * each
                    parts = (1 if full > 0 else 0) + (1 if rest > 0 else 0)
                    untouched = length[r] - full - (1 if rest > 0 else 0)
                    extra = parts + (1 if untouched > 0 else 0) - 1
                    for j in range(runs - 1, r, -1):
                        space[j + extra] = space[j]
                        length[j + extra] = length[j]
                    before = space[r]
                    at = r
                    if full > 0:
                        space[at] = before - each * need
                        length[at] = full
                        at += 1
                    if rest > 0:
                        space[at] = before - rest * need
                        length[at] = 1
                        at += 1
                    if untouched > 0:
                        space[at] = before
                        length[at] = untouched
                    runs += extra
                    left = 0
            r += 1
        if left > 0:
            each = int(heap / need)
            if each == 0:
                return 1_000_000  # one task alone exceeds the heap
            full = left // each
            if full > 0:
                space[runs] = heap - each * need
                length[runs] = full
                runs += 1
            if left - full * each > 0:
                space[runs] = heap - (left - full * each) * need
                length[runs] = 1
                runs += 1
    bins = 0
    for r in range(runs):
        bins += length[r]
    return max(bins, 1)


@kernel
def overload_after(terms: Terms, state: State, n: int, c: int, k: int, c2: int, k2: int) -> float:
    """Overload of node n after k more (k < 0: fewer) tasks of class c and k2 of class c2."""
    y = terms.node_type[n]
    total = 0.0
    for r in range(terms.unit.shape[0]):
        beyond = state.used[n, r] + k * terms.demand[y, c, r] - terms.limit[n, r]
        if k2 != 0:
            beyond += k2 * terms.demand[y, c2, r]
        if beyond > 0.0:
            total += beyond * terms.unit[r]
    if terms.slotted:
        g = terms.group[c]
        taken = state.taken[n] + bins_needed(terms, state, n, g, c, k, c2, k2) - state.bins[n, g]
        if k2 != 0 and terms.group[c2] != g:
            g2 = terms.group[c2]
            taken += bins_needed(terms, state, n, g2, c2, k2, c2, ZERO) - state.bins[n, g2]
        if taken > terms.slots[n]:
            total += taken - terms.slots[n]
    return total


@kernel
def room(terms: Terms, state: State, c: int, n: int, k: int) -> int:
    """How many of k tasks of class c the resources of node n still hold (slots are not looked at)."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        need = terms.demand[y, c, r]
        if need > 0.0:
            left = terms.limit[n, r] - state.used[n, r]
            if left < k * need:
                k = int(left / need) if left > 0.0 else 0
                if k == 0:
                    return 0
    return k


@kernel
def put(terms: Terms, state: State, c: int, n: int, k: int) -> float:
    """Add k tasks of class c to node n (k < 0: take away) and give the change of cost: moving minus kept traffic."""
    x = state.x
    before = x[n, c]
    cost = -k * state.pull[n, c] - terms.own[c] * k * (k - 1) / 2
    if terms.moving:
        was = terms.current[n, c]
        cost += terms.move_cost[c] * (max(0, before + k - was) - max(0, before - was))
    if terms.slotted:
        g = terms.group[c]
        bins = bins_needed(terms, state, n, g, c, k, c, ZERO)
        state.taken[n] += bins - state.bins[n, g]
        state.bins[n, g] = bins
        state.members[n, g] += k
    x[n, c] = before + k
    state.tasks[n] += k
    for i in range(terms.start[c], terms.start[c + 1]):
        state.pull[n, terms.other[i]] += k * terms.weight[i]
    state.pull[n, c] += k * terms.own[c]
    y = terms.node_type[n]
    over = 0.0
    for r in range(terms.unit.shape[0]):
        state.used[n, r] += k * terms.demand[y, c, r]
        beyond = state.used[n, r] - terms.limit[n, r]
        if beyond > 0.0:
            over += beyond * terms.unit[r]
    if terms.slotted and state.taken[n] > terms.slots[n]:
        over += state.taken[n] - terms.slots[n]
    state.over[n] = over
    if before == 0:
        state.content_at[n, c] = state.contents[n]
        state.content[n, state.contents[n]] = c
        state.contents[n] += 1
        state.holder_at[c, n] = state.holders[c]
        state.holder[c, state.holders[c]] = n
        state.holders[c] += 1
    elif before + k == 0:
        state.contents[n] -= 1
        last, at = state.content[n, state.contents[n]], state.content_at[n, c]
        state.content[n, at] = last
        state.content_at[n, last] = at
        state.holders[c] -= 1
        end, at = state.holder[c, state.holders[c]], state.holder_at[c, n]
        state.holder[c, at] = end
        state.holder_at[c, end] = at
    return cost


@kernel
def load_state(terms: Terms, state: State, rows: Ints) -> float:
    """Make `state` hold exactly the counts rows[N, C], free of old rounding; gives the cost (moving minus kept traffic)."""
    nodes, classes = rows.shape
    state.x[:] = 0
    state.pull[:] = 0.0
    state.used[:] = 0.0
    state.tasks[:] = 0
    state.members[:] = 0
    state.bins[:] = 0
    state.taken[:] = 0
    state.over[:] = 0.0
    state.contents[:] = 0
    state.holders[:] = 0
    cost = 0.0
    for n in range(nodes):
        for c in range(classes):
            if rows[n, c] > 0:
                cost += put(terms, state, c, n, rows[n, c])
    return cost


@kernel
def reload_state(terms: Terms, state: State, node: Ints, class_: Ints, tasks: Ints) -> float:
    """Make `state` hold just tasks[i] of class_[i] on node[i]; gives the cost. Empty cells take no time, but old rounding stays."""
    for n in range(state.x.shape[0]):
        while state.contents[n] > 0:
            c = int(state.content[n, state.contents[n] - 1])
            put(terms, state, c, n, -state.x[n, c])
    cost = 0.0
    for i in range(node.shape[0]):
        cost += put(terms, state, class_[i], node[i], tasks[i])
    return cost


@kernel
def list_state(state: State, node: Ints, class_: Ints, tasks: Ints) -> None:
    """What stands where in `state`, node by node."""
    found = 0
    for n in range(state.x.shape[0]):
        for i in range(state.contents[n]):
            node[found] = n
            class_[found] = state.content[n, i]
            tasks[found] = state.x[n, class_[found]]
            found += 1


def feasible(instance: Instance, x: Ints) -> bool:
    """Whether the counts x[C, N] place every task and keep every limit; looks at the instance alone, not at a `State`."""
    if (x < 0).any() or (x.sum(axis=1) != instance.count).any() or (x[~instance.allowed] > 0).any():
        return False
    if (x[instance.apart] > 1).any():
        return False
    demand = instance.demand[instance.node_type]  # [N, C, K]
    used = np.einsum("cn,nck->nk", x.astype(np.float64), demand)
    busy = x.sum(axis=0) > 0
    if (used > np.maximum(instance.capacity, 0.0) * (1 + TOLERANCE))[busy].any():
        return False
    return bool((slots_taken(instance, x) <= instance.slots).all())


def slots_taken(instance: Instance, x: Ints) -> Ints:
    """Slots each node needs under x[C, N]: per topology at least one, and enough heap by first-fit decreasing."""
    present = np.zeros((len(instance.heap), x.shape[1]), np.int64)
    np.add.at(present, instance.group, x)
    need = np.zeros((len(instance.heap), x.shape[1]))
    np.add.at(need, instance.group, x * instance.memory[:, None])
    taken = (present > 0).astype(np.int64)
    for g, n in zip(*np.nonzero(need > instance.heap[:, None] * (1 + TOLERANCE)), strict=True):
        classes = np.nonzero((instance.group == g) & (x[:, n] > 0) & (instance.memory > 0))[0]
        classes = classes[np.argsort(-instance.memory[classes], kind="stable")]
        taken[g, n] = _first_fit(
            instance.memory[classes], x[classes, n], float(instance.heap[g]) * (1 + TOLERANCE)
        )
    return taken.sum(axis=0)


def _first_fit(memory: Floats, count: Ints, heap: float) -> int:
    """Bins of size `heap` for count[i] things of size memory[i], taken in order, each into the first bin with space."""
    spaces = np.empty(0)
    for need, left in zip(memory.tolist(), count.tolist(), strict=True):
        if need > heap:
            return 1_000_000
        each = (spaces / need).astype(np.int64)
        filled = np.clip(left - (np.cumsum(each) - each), 0, each)
        spaces = spaces - filled * need
        left -= int(filled.sum())
        per_bin = int(heap / need)
        fresh = np.full(-(-left // per_bin), heap)
        fresh[: left // per_bin] -= per_bin * need
        if left % per_bin:
            fresh[-1] -= (left % per_bin) * need
        spaces = np.concatenate([spaces, fresh])
    return len(spaces)
