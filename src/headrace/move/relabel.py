"""The same new plan with as little to move as possible: what is alike swaps roles.

Nodes are alike if the problem says the same of them; racks are alike if their nodes are. Alike
tasks may swap too, and so may the worker processes of a node. Every figure of the plan stays the
same. Megabytes saved come first, then tasks that need not move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Floats, Ints
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import Holders, divide_state, find_holders, recounted
from headrace.move.change import find_moving_tasks, refuse_wrong_plan
from headrace.solve.classes import Classes, classes_of
from headrace.solve.matching import cheapest_matching


@dataclass(frozen=True, slots=True, eq=False)
class Relabelled:
    """The new plan under other names, and what that saves."""

    plan: Assignment
    role: Ints  # [N] the node that takes over the role of node n
    saved_mb: float
    saved_moves: int


def relabel(
    problem: Problem,
    old: Assignment,
    new: Assignment,
    *,
    tasks: bool = True,
    holders: Holders | None = None,
) -> Relabelled:
    """Swap alike nodes of the new plan, and with `tasks` alike tasks, so that less moves.

    `holders` have the state; absent: the tasks of the old plan. Never more megabytes than before.
    """
    refuse_wrong_plan(problem, old, "old")
    refuse_wrong_plan(problem, new, "new")
    holders = holders or find_holders(problem, old, problem)
    classes = _find_classes(problem) if tasks else None
    same = np.arange(len(problem.nodes))
    candidates = [(same, new)]
    for role in (same, match_roles(problem, weigh_kept(problem, old, new, classes))):
        placed = new.node != UNPLACED
        node = np.where(placed, role[new.node], UNPLACED)
        plan = Assignment(node, new.worker, new.refused)
        if classes is not None:
            plan = swap_tasks(classes, old, plan)
            plan = keep_ranges(problem, classes, holders, plan)
        candidates.append((role, match_workers(problem, old, plan)))
    cost = [measure_move(problem, old, plan, holders) for _, plan in candidates]
    best = min(range(len(candidates)), key=lambda i: (cost[i], i))
    role, plan = candidates[best]
    return Relabelled(plan, role, cost[0][0] - cost[best][0], cost[0][1] - cost[best][1])


def _find_classes(problem: Problem) -> Classes | None:
    try:
        return classes_of(problem)
    except Unsupported:
        # Measured shares make more tasks differ than can be listed: only nodes and workers swap.
        return None


def measure_move(
    problem: Problem, old: Assignment, new: Assignment, holders: Holders | None = None
) -> tuple[float, int, int]:
    """Megabytes and tasks that go to another node, and tasks that only change their worker."""
    pieces = divide_state(problem, holders or find_holders(problem, old, problem), new)
    gone = find_moving_tasks(old, new)
    inside = (old.node == new.node) & (old.node != UNPLACED) & (old.worker != new.worker)
    return round(float(pieces.mb[pieces.moving].sum()), 9), len(gone), int(inside.sum())


def weigh_kept(
    problem: Problem, old: Assignment, new: Assignment, classes: Classes | None
) -> Floats:
    """What stays if the role of node a in the new plan goes to node b, megabytes first, [a, b]."""
    n, mb = len(problem.nodes), problem.state_mb
    least = mb[mb > 0].min(initial=np.inf)
    per_task = mb + (least / (2.0 * problem.task_count) if np.isfinite(least) else 1.0)
    kept = np.zeros((n, n))
    if classes is None:
        both = np.flatnonzero((old.node != UNPLACED) & (new.node != UNPLACED))
        np.add.at(kept, (new.node[both], old.node[both]), per_task[problem.component_of[both]])
        return kept
    before, after = classes.counts(old.node), classes.counts(new.node)
    for c, component in enumerate(classes.component.tolist()):
        a, b = np.flatnonzero(after[c]), np.flatnonzero(before[c])
        kept[np.ix_(a, b)] += np.minimum.outer(after[c, a], before[c, b]) * per_task[component]
    return kept


def match_roles(problem: Problem, kept: Floats) -> Ints:
    """The roles of alike nodes in alike racks that keep the most in place, [N]."""
    kind = number_alike_nodes(problem)
    racks = [np.flatnonzero(problem.rack == r) for r in range(len(problem.racks))]
    shape = [tuple(np.sort(kind[members]).tolist()) for members in racks]
    role = np.arange(len(problem.nodes))
    for wanted in dict.fromkeys(shape):
        group = [r for r, of_rack in enumerate(shape) if of_rack == wanted]
        value = np.zeros((len(group), len(group)))
        inside: dict[tuple[int, int], tuple[Ints, Ints]] = {}
        for i, a in enumerate(group):
            for j, b in enumerate(group):
                inside[i, j] = _match_nodes(racks[a], racks[b], kind, kept)
                value[i, j] = kept[inside[i, j]].sum()
        for i, j in zip(*_match_largest(value), strict=True):
            source, target = inside[int(i), int(j)]
            role[source] = target
    return role


def _match_nodes(source: Ints, target: Ints, kind: Ints, kept: Floats) -> tuple[Ints, Ints]:
    """Nodes of one rack and those of another that take over their roles."""
    pairs: list[tuple[Ints, Ints]] = []
    for k in np.unique(kind[source]).tolist():
        a, b = source[kind[source] == k], target[kind[target] == k]
        i, j = _match_largest(kept[np.ix_(a, b)])
        pairs.append((a[i], b[j]))
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def _match_largest(value: Floats) -> tuple[Ints, Ints]:
    """The rows and columns of a square matrix whose values add up to the most."""
    return np.arange(len(value)), cheapest_matching(-value)


def number_alike_nodes(problem: Problem) -> Ints:
    """A number for each node; nodes with the same number can swap roles, [N]."""
    hardware = (problem.sockets, problem.cores, problem.ghz, problem.flops_per_cycle)
    facts = [
        problem.node_type[:, None],
        problem.capacity,
        problem.taken,
        problem.slots[:, None],
        problem.slot_taken,
        problem.bandwidth_mbps[:, None],
        *(np.nan_to_num(fact, nan=-1.0)[:, None] for fact in hardware),
    ]
    if problem.allowed is not None:
        facts.append(problem.allowed.T)
    table = np.column_stack([fact.astype(np.float64) for fact in facts])
    return np.unique(table, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def swap_tasks(classes: Classes, old: Assignment, new: Assignment) -> Assignment:
    """The same plan with alike tasks swapped so that most stay on their node and worker."""
    node, worker = new.node.copy(), new.worker.copy()
    for first, last in zip(classes.first[:-1].tolist(), classes.first[1:].tolist(), strict=True):
        tasks = classes.order[first:last]
        places = np.column_stack([new.node[tasks], new.worker[tasks]])
        were = np.column_stack([old.node[tasks], old.worker[tasks]])
        open_task, open_place = np.ones(len(tasks), dtype=bool), np.ones(len(tasks), dtype=bool)
        for columns in (2, 1):  # node and worker the same, then at least the node
            i, j = _pair_up(were[:, :columns], places[:, :columns], open_task, open_place)
            node[tasks[i]], worker[tasks[i]] = places[j, 0], places[j, 1]
            open_task[i] = open_place[j] = False
        i, j = np.flatnonzero(open_task), np.flatnonzero(open_place)
        node[tasks[i]], worker[tasks[i]] = places[j, 0], places[j, 1]
    return Assignment(node, worker, new.refused)


def keep_ranges(
    problem: Problem, classes: Classes, holders: Holders, new: Assignment
) -> Assignment:
    """The same plan with alike tasks swapped where counts change, so that more keys stay.

    The task with the most state on a node that it may have goes first.
    """
    again = recounted(problem, holders)
    if not len(again):
        return new
    pieces = divide_state(problem, holders, new)
    node, worker = new.node.copy(), new.worker.copy()
    for first, last in zip(classes.first[:-1].tolist(), classes.first[1:].tolist(), strict=True):
        tasks = classes.order[first:last]
        c = int(problem.component_of[tasks[0]])
        if c not in again:
            continue
        here = np.flatnonzero((pieces.component == c) & (pieces.source != UNPLACED))
        taker, source = int(problem.first[c]) + pieces.taker[here], pieces.source[here]
        places: dict[int, list[int]] = {}  # node -> workers on it, in the tasks' order
        for t in tasks[::-1].tolist():
            places.setdefault(int(new.node[t]), []).append(int(new.worker[t]))
        waiting = dict.fromkeys(tasks.tolist())
        for i in np.argsort(-pieces.mb[here], kind="stable").tolist():
            t, n = int(taker[i]), int(source[i])
            if t in waiting and places.get(n):
                node[t], worker[t] = n, places[n].pop()
                del waiting[t]
        rest = ((n, places[n].pop()) for n in list(places) for _ in range(len(places[n])))
        for t, (n, w) in zip(waiting, rest, strict=True):
            node[t], worker[t] = n, w
    return Assignment(node, worker, new.refused)


def _pair_up(were: Ints, places: Ints, open_task: Ints, open_place: Ints) -> tuple[Ints, Ints]:
    """Tasks and places with the same values, each used once, in order."""
    both = np.concatenate([were, places])
    key = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    i, j = np.flatnonzero(open_task), np.flatnonzero(open_place)
    a, b = key[: len(were)][i], key[len(were) :][j]
    a_order, b_order = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    a, b, i, j = a[a_order], b[b_order], i[a_order], j[b_order]
    # The k-th task of a value goes to the k-th place of that value.
    a_rank = np.arange(len(a)) - np.searchsorted(a, a)
    b_rank = np.arange(len(b)) - np.searchsorted(b, b)
    size = len(were) + 1
    _, in_a, in_b = np.intersect1d(
        a * size + a_rank, b * size + b_rank, assume_unique=True, return_indices=True
    )
    return i[in_a], j[in_b]


def match_workers(problem: Problem, old: Assignment, new: Assignment) -> Assignment:
    """The same plan with each node's workers numbered so that most tasks keep theirs."""
    worker = new.worker.copy()
    slots = problem.slot_taken.shape[1]
    differs = np.unique(
        new.node[(new.node != UNPLACED) & (new.node == old.node) & (new.worker != old.worker)]
    )
    for n in differs.tolist():
        here = np.flatnonzero(new.node == n)
        stays = here[(old.node[here] == n) & (old.worker[here] < slots)]
        free = np.flatnonzero(~problem.slot_taken[n])
        if new.worker[here].max() >= slots or problem.slot_taken[n, new.worker[here]].any():
            continue  # a plan that breaks the rules keeps its numbers
        kept = np.zeros((slots, slots))
        np.add.at(kept, (new.worker[stays], old.worker[stays]), 1.0)
        i, j = _match_largest(kept[np.ix_(free, free)])
        to = np.arange(slots)
        to[free[i]] = free[j]
        worker[here] = to[new.worker[here]]
    return Assignment(new.node, worker, new.refused)
