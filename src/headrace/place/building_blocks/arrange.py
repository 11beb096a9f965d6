"""Which node holds which lot of tasks: the same lots elsewhere change nothing between nodes.

A lot is all that one node holds. Lots change places as long as less goes between racks; then,
inside each rack, so that the fullest node is less full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import CPU, Problem
from headrace.solve.classes import Classes
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.feasible import slots_taken
from headrace.solve.least_traffic.fills import kinds_of
from headrace.solve.matching import cheapest_matching
from headrace.solve.racks import swap_lots

MOST_PASSES = 20  # over all lots
LITTLE = 0.002  # of what goes between racks: a pass that gains no more is the last
STEEP = 8  # one node near its limit weighs more than many that are half full
OTHERS = 1e-3  # what the scarcest other resource weighs beside CPU
MOST_CHOICES = 500_000  # lots x nodes of a rack in the matching
MOST_WORK = 3_000_000_000  # lots x lots x classes: what each two lots exchange


@dataclass(frozen=True, slots=True, eq=False)
class Lots:
    """What busy nodes hold, and where it would fit; B lots, Q kinds of node."""

    x: Ints  # [C, B] tasks of a class in a lot
    kind: Ints  # [N]
    fits: Bools  # [B, Q]
    load: Floats  # [B, Q] how full a node of the kind would be, steep; inf where a lot does not fit


def arrange_lots(problem: Problem, classes: Classes, x: Ints) -> Ints:
    """The counts x[C, N] with whole columns in other places."""
    busy = np.flatnonzero(x.any(axis=0))
    lots = lots_of(classes.instance, x, busy)
    if not lots.fits[np.arange(len(busy)), lots.kind[busy]].all():
        return x  # over its limits on some node: nothing to arrange
    at = busy.copy()
    if len(problem.racks) > 1 and len(busy) ** 2 * len(x) <= MOST_WORK:
        flow = exchanged(classes.instance, lots.x)
        starts = [at, fill_racks(lots, flow, problem.rack, at)]
        found = [gather_in_racks(lots, flow, problem.rack, start) for start in starts]
        at = min(found, key=lambda places: between_racks(flow, problem.rack[places]))
    for r in range(len(problem.racks)):
        inside = np.flatnonzero(problem.rack == r)
        at = spread_in_rack(lots, at, inside)
    moved = np.zeros_like(x)
    moved[:, at] = lots.x
    return moved


def lots_of(instance: Instance, x: Ints, busy: Ints) -> Lots:
    """The lots of busy nodes; nodes that take the same lots are of one kind."""
    kind, first, _ = kinds_of(instance)
    held = x[:, busy].astype(np.float64)
    need = np.stack([held.T @ demand for demand in instance.demand])  # [Y, B, K]
    need = need[instance.node_type[first]].transpose(1, 0, 2)  # [B, Q, K]
    room = instance.capacity[first]
    fits = (need <= room * (1 + 1e-9)).all(axis=2)
    fits &= (held > 0).T.astype(np.float64) @ ~instance.allowed[:, first] == 0
    fits &= slots_taken(instance, x)[busy][:, None] <= instance.slots[first]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.minimum(np.where(need > 0, need / room, 0.0), 10.0) ** STEEP
    # CPU first: it alone grows with the rate.
    load = part[:, :, CPU] + OTHERS * part.max(axis=2)
    # In one order of memory: for another the kernel would be compiled again.
    return Lots(x[:, busy], kind, np.ascontiguousarray(fits), np.where(fits, load, np.inf))


def exchanged(instance: Instance, x: Ints) -> Floats:
    """Tuples/s between each two lots, [B, B]."""
    classes = len(instance.count)
    weight = np.zeros((classes, classes))
    np.add.at(weight, (instance.edge_a, instance.edge_b), instance.edge_weight)
    held = x.astype(np.float64)
    flow = held.T @ (weight @ held)
    flow = flow + flow.T
    np.fill_diagonal(flow, 0.0)
    return flow


def between_racks(flow: Floats, rack: Ints) -> float:
    """Tuples/s between racks, for lots in these racks."""
    return float((flow * (rack[:, None] != rack)).sum()) / 2


def fill_racks(lots: Lots, flow: Floats, rack: Ints, at: Ints) -> Ints:
    """Rack after rack, always with the lot that exchanges most with what is there.

    Lots stay on nodes of their kind, so none is left over.
    """
    kind, total = lots.kind[at], flow.sum(axis=1)
    at = np.full(len(flow), -1)
    for r in range(int(rack.max()) + 1):
        nodes = np.flatnonzero(rack == r)
        free = np.bincount(lots.kind[nodes], minlength=lots.fits.shape[1])
        pull = np.zeros(len(flow))
        while (may := (at < 0) & (free[kind] > 0)).any():
            wanted = np.where(may, pull, -1.0)
            if wanted.max() <= 0:
                wanted = np.where(may, total, -1.0)
            lot = int(np.argmax(wanted))
            alike = nodes[lots.kind[nodes] == kind[lot]]
            at[lot] = alike[-free[kind[lot]]]
            free[kind[lot]] -= 1
            pull += flow[lot]
    return at


def gather_in_racks(lots: Lots, flow: Floats, rack: Ints, at: Ints) -> Ints:
    """Lots change places with others, or with nothing, as long as less goes between racks."""
    at, number = at.copy(), np.full(len(rack), -1)
    number[at] = np.arange(len(at))  # the lot of a node, -1: none
    with_rack = np.stack([flow[:, rack[at] == r].sum(axis=1) for r in range(rack.max() + 1)], 1)
    least = 1e-9 * float(flow.sum())
    for _ in range(MOST_PASSES):
        outside = with_rack.sum(axis=1) - with_rack[np.arange(len(at)), rack[at]]
        order = np.argsort(-outside, kind="stable")
        gained = swap_lots(flow, with_rack, rack, lots.kind, lots.fits, at, number, order, least)
        if gained <= LITTLE * outside.sum() / 2:
            break
    return at


def spread_in_rack(lots: Lots, at: Ints, nodes: Ints) -> Ints:
    """Lots of a rack over its nodes, so that the fullest is less full."""
    inside = np.flatnonzero(np.isin(at, nodes))
    kinds = lots.kind[nodes]
    if not len(inside) or (kinds == kinds[0]).all() or len(inside) * len(nodes) > MOST_CHOICES:
        return at
    load = lots.load[inside][:, kinds]
    columns = cheapest_matching(np.where(np.isfinite(load), load, 1e12))
    if not np.isfinite(load[np.arange(len(inside)), columns]).all():
        return at
    at = at.copy()
    at[inside] = nodes[columns]
    return at
