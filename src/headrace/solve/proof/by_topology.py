"""A bound on the crossing traffic of a whole cluster: each topology's own, added up.

Topologies exchange nothing, so no plan of all of them lets less of one cross than a plan of that
one alone, with every node to itself. The same holds for the connected parts of a topology. Alone
each is small enough for column generation, or its busiest classes are: what crosses between those
crosses in a plan of all as well (`cores`). The time goes where it promises most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.arrays import distinct
from headrace.model.progress import NOW
from headrace.solve.instance import Instance
from headrace.solve.proof.bound import few_node_classes, most_kept_at_all
from headrace.solve.proof.certificate import Bounds, Estimate, in_plenty, kept_bounds
from headrace.solve.proof.cores import connected_parts, cores_of
from headrace.solve.proof.fractional_fills import Fills, bounds_by_fractions, fills_of
from headrace.solve.proof.prices import Work
from headrace.solve.symmetry import (
    Quotient,
    merge_node_classes,
    quotient,
    restrict_classes,
    traffic_inside,
)

WORK = 150_000_000  # visits by default, about half a second
MOST_CLASSES = 400  # above, prices do not converge in time, and the quick bound is all there is
FEW_CLASSES, FEW_IF_SCARCE = 40, 12  # up to here, prices converge to a good bound in a moment
LARGE_CLASS = 20  # tasks on average: from here on it matters little that tasks are whole
QUICK_ROUNDS, QUICK_WORK = 300, 50_000_000  # of the quick bound where prices follow, and visits
FIRST_WORK = 500_000  # visits for a first bound, roughly, times the square of the classes
SUFFICIENT = (
    1.25  # times what a topology needs: nodes with less room than these are as good as they
)


@dataclass(slots=True, eq=False)
class _Core:
    """Classes of a part whose own bound is one of the part, and where better ones come from."""

    total: float  # traffic between them
    bounds: Bounds
    hoped: float  # crossing traffic that its bound can become
    spent: float  # on the last improvement
    looking: float = 0.0  # since then


@dataclass(slots=True, eq=False)
class _Part:
    """A connected part of a topology: no plan of it lets less than `crossing` cross."""

    cores: list[_Core]
    crossing: float = 0.0

    def promise(self, core: _Core) -> float:
        """How much more would be known for the work."""
        return (core.hoped - self.crossing) / (core.spent + core.looking)


def crossing_bound_by_topology(
    instance: Instance, *, work: float = WORK, deadline: Callable[[], bool] | None = None
) -> tuple[float, str]:
    """A bound that no feasible plan's crossing traffic is below, and its kind.

    The kind is `column-generation`, or `trivial` where it finds nothing above 0.
    """
    effort = Work(work, deadline)
    parts = [
        _Part(_cores(part, effort))
        for g in distinct(instance.group).tolist()
        for part in _parts(quotient(alone(instance, g)))
    ]
    while not effort.spent():
        open_ones = [(part, core) for part in parts for core in part.cores]
        if not open_ones:
            break
        part, core = max(open_ones, key=lambda pair: pair[0].promise(pair[1]))
        before = effort.done
        try:
            estimate = next(core.bounds)
        except StopIteration:
            part.cores.remove(core)
            continue
        core.looking += max(effort.done - before, 1.0)
        if estimate is not None:
            part.crossing = max(part.crossing, core.total - estimate.upper)
            core.hoped = core.total - min(estimate.hoped, estimate.upper)
            core.spent, core.looking = core.looking, 0.0
            part.cores = [c for c in part.cores if c.hoped > part.crossing]
            NOW.bound = float(sum(part.crossing for part in parts))
    value = float(sum(part.crossing for part in parts))
    return (value, "column-generation") if value > 0.0 else (0.0, "trivial")


def _parts(q: Quotient) -> list[Quotient]:
    """What of a topology can be bounded separately: where nodes are scarce, only all of it."""
    if not len(q.nodes) or not q.most.any(axis=0).all():
        return []
    return connected_parts(q) if in_plenty(q) else [q]


def _cores(part: Quotient, work: Work) -> list[_Core]:
    """The cores of a part, no bound of them computed yet; none where all of it fits one node."""
    fills = _fills(part)
    cores: list[_Core] = []
    for chosen in cores_of(part) if fills is None else [np.arange(len(part.count))]:
        q = restrict_classes(part, chosen)
        total = float(traffic_inside(q, q.count[None])[0])
        if total > 0.0 and not _fits_one_node(q):
            first = FIRST_WORK * len(chosen) ** 2
            cores.append(_Core(total, _bounds(q, fills, work), total, first))
    return cores


def _fills(part: Quotient) -> list[Fills] | None:
    """Fills in fractions of scarce nodes by large classes; None where whole tasks matter."""
    small = part.count.sum() < LARGE_CLASS * len(part.count)
    if small or len(part.count) > MOST_CLASSES or in_plenty(part):
        return None
    return fills_of(relaxed(part))


def _fits_one_node(q: Quotient) -> bool:
    fits = ((q.demand * q.count[None, :, None]).sum(axis=1) <= q.room).all(axis=1)
    return bool((fits & (q.most == q.count).all(axis=1) & (q.slots > 0)).any()) and (
        not q.slots_matter
    )


def _bounds(q: Quotient, fills: list[Fills] | None, work: Work) -> Bounds:
    """Bounds on the traffic kept: a quick one where prices take long, then ever better ones."""
    many = len(q.count) > MOST_CLASSES
    if fills is not None:
        yield from bounds_by_fractions(relaxed(q), fills, work)
    elif len(q.count) > (FEW_CLASSES if in_plenty(q) else FEW_IF_SCARCE):
        rounds = None if many else QUICK_ROUNDS
        yield Estimate(most_kept_at_all(q, steps=rounds, deadline=work.deadline), 0.0)
        work.spend(QUICK_WORK)
    if not many:
        yield from kept_bounds(relaxed(q), work)


def relaxed(q: Quotient) -> Quotient:
    """The same with node classes merged where that changes little, and slots as one more resource.

    The largest nodes stay as they are until they could hold everything; smaller ones count as the
    last of these. What slots hold together is no more than the sum of their heaps.
    """
    q = few_node_classes(_merge_small_nodes(q))
    if not q.slots_matter:
        return q
    heap = np.where(np.isfinite(q.heap), q.heap, 0.0)[q.group].max(initial=0.0)
    slots = np.where(np.isfinite(q.heap[q.group]).all(), q.slots * heap, np.inf)
    limited = np.minimum(slots, q.memory @ q.count + 1.0)
    return replace(
        q,
        demand=np.concatenate(
            [q.demand, np.tile(q.memory[None, :, None], (len(q.nodes), 1, 1))], axis=2
        ),
        room=np.column_stack([q.room, limited]),
        slots_matter=False,
    )


def _merge_small_nodes(q: Quotient) -> Quotient:
    need = (q.demand.min(axis=0) * q.count[:, None]).sum(axis=0)
    asked = need > 0
    share = (np.maximum(q.room[:, asked], 0.0) / need[asked]).min(axis=1, initial=1.0)
    order = np.argsort(-share, kind="stable")
    enough = np.searchsorted(np.cumsum((share * q.nodes)[order]), SUFFICIENT)
    large, small = order[:enough], order[enough:]
    if len(small) <= 1:
        return q
    return merge_node_classes(q, [*large[:, None], small])


def alone(instance: Instance, group: int) -> Instance:
    """One topology, with every node to itself."""
    chosen = np.flatnonzero(instance.group == group)
    number = np.full(len(instance.count), -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    edges = number[instance.edge_a] >= 0
    return replace(
        instance,
        count=instance.count[chosen],
        edge_a=number[instance.edge_a[edges]],
        edge_b=number[instance.edge_b[edges]],
        edge_weight=instance.edge_weight[edges],
        demand=instance.demand[:, chosen],
        allowed=instance.allowed[chosen],
        apart=instance.apart[chosen],
        group=np.zeros(len(chosen), dtype=np.int64),
        heap=instance.heap[[group]],
        memory=instance.memory[chosen],
    )
