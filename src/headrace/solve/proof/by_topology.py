"""A bound on the crossing traffic of a whole cluster: each topology's own, added up.

Topologies exchange nothing, so no plan of all of them lets less of one cross than a plan of that
one alone, with every node to itself. Alone each is small enough for column generation. The time
goes where it promises most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.arrays import distinct
from headrace.model.progress import NOW
from headrace.solve.instance import Instance
from headrace.solve.proof.bound import few_node_classes, most_kept_at_all
from headrace.solve.proof.certificate import Bounds, Estimate, kept_bounds
from headrace.solve.proof.prices import Work
from headrace.solve.symmetry import Quotient, merge_node_classes, quotient, traffic_inside

WORK = 400_000_000  # visits by default, about a second
MOST_CLASSES = 400  # above, prices do not converge in time, and the quick bound is all there is
FEW_CLASSES = 40  # up to here, prices converge in a moment
QUICK_ROUNDS, QUICK_WORK = 300, 50_000_000  # of the quick bound where prices follow, and visits
FIRST_WORK = 30_000_000  # visits for a first bound of a topology, roughly
SUFFICIENT = (
    1.25  # times what a topology needs: nodes with less room than these are as good as they
)


@dataclass(slots=True, eq=False)
class _Topology:
    """One topology's bound so far, and where better ones come from."""

    total: float
    bounds: Bounds
    crossing: float = 0.0  # no plan of it crosses less
    hoped: float = np.inf  # what its bound can become
    spent: float = FIRST_WORK  # on the last improvement
    looking: float = 0.0  # since then


def crossing_bound_by_topology(
    instance: Instance, *, work: float = WORK, deadline: Callable[[], bool] | None = None
) -> tuple[float, str]:
    """A bound that no feasible plan's crossing traffic is below, and its kind.

    The kind is `column-generation`, or `trivial` where it finds nothing above 0.
    """
    effort = Work(work, deadline)
    topologies = [_topology(alone(instance, g), effort) for g in distinct(instance.group).tolist()]
    open_ones = [t for t in topologies if t is not None]
    for topology in open_ones:
        topology.hoped = topology.total
    while open_ones and not effort.spent():
        best = max(open_ones, key=lambda t: (t.hoped - t.crossing) / (t.spent + t.looking))
        before = effort.done
        try:
            estimate = next(best.bounds)
        except StopIteration:
            open_ones.remove(best)
            continue
        best.looking += max(effort.done - before, 1.0)
        if estimate is not None:
            best.crossing = max(best.crossing, best.total - estimate.upper)
            best.hoped = max(best.total - estimate.hoped, best.crossing)
            best.spent, best.looking = best.looking, 0.0
            NOW.bound = float(sum(t.crossing for t in topologies if t is not None))
    value = float(sum(t.crossing for t in topologies if t is not None))
    return (value, "column-generation") if value > 0.0 else (0.0, "trivial")


def _topology(instance: Instance, work: Work) -> _Topology | None:
    """A topology's bounds, none of them computed yet; None where all of it fits one node."""
    q = quotient(instance)
    total = float(traffic_inside(q, q.count[None])[0])
    if total <= 0.0 or not len(q.nodes) or not q.most.any(axis=0).all():
        return None
    fits = ((q.demand * q.count[None, :, None]).sum(axis=1) <= q.room).all(axis=1)
    if (fits & (q.most == q.count).all(axis=1) & (q.slots > 0)).any() and not q.slots_matter:
        return None
    return _Topology(total, _bounds(q, work))


def _bounds(q: Quotient, work: Work) -> Bounds:
    """Bounds on the traffic kept: a quick one where prices take long, then ever better ones."""
    many = len(q.count) > MOST_CLASSES
    if len(q.count) > FEW_CLASSES:
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
