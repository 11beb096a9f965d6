"""Eskandari's model of the least traffic between nodes, task by task and node by node.

Source: L. Eskandari, PhD thesis, eq. 4.1-4.5. x[i, u] says whether task i is on node u; of every
pair that communicates, y[i, j] is the sum of x[i, u] x[j, v] over u != v. With eq. 4.5 that is the
sum over u of x[i, u] (1 - x[j, u]), a product of two values of 0 or 1, so a term w[i, j, u] of at
least x[i, u] - x[j, u] and at least 0 stands for it where y is minimised. Nothing that is alike is
merged: that is what makes the model slow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace.model.arrays import TOLERANCE, Ints
from headrace.solve import highs
from headrace.solve.instance import Instance
from headrace.solve.proof.exact import Proof


def least_crossing_by_task(
    instance: Instance, *, nodes: int | None = None, seconds: float | None = None
) -> Proof:
    """The counts x[C, N] with least crossing traffic, or the best found in time, with a bound.

    `nodes` of branch and bound and `seconds` limit the solver. Whether slots or heaps run out is
    not looked at.
    """
    tasks, class_of = split_classes(instance)
    if not tasks.allowed.any(axis=1).all():
        return Proof(None, np.inf, False, "exact", "done", True)
    cost, arguments = _program(tasks, class_of, instance)
    arguments["options"] = {"mip_rel_gap": 0.0}
    if nodes is not None:
        arguments["options"]["node_limit"] = nodes
    if seconds is not None:
        arguments["options"]["time_limit"] = max(seconds, 0.0)
    unit = max(float(instance.edge_weight.max(initial=0.0)), 1e-30)
    result = highs.solve_integer_program(cost / unit, **arguments)
    if result.status == 4 and result.x is None and nodes is None:
        # Presolve may be unable to tell infeasible from unbounded.
        arguments["options"]["presolve"] = False
        result = highs.solve_integer_program(cost / unit, **arguments)
    if result.status == 2:
        return Proof(None, np.inf, False, "exact", "done", True)
    stopped = "done" if result.status == 0 else "steps" if seconds is None else "seconds"
    lower = 0.0 if result.mip_dual_bound is None else max(float(result.mip_dual_bound) * unit, 0.0)
    if result.x is None:
        return Proof(None, lower, False, "trivial", stopped, False)
    places = np.rint(result.x[: tasks.allowed.size]).astype(np.int64).reshape(tasks.allowed.shape)
    x = np.zeros_like(instance.allowed, dtype=np.int64)
    np.add.at(x, class_of, places)
    if result.status == 0:
        return Proof(x, instance.crossing(x), True, "exact", "done", False)
    return Proof(x, lower, False, "task by task" if lower > 0 else "trivial", stopped, False)


def split_classes(instance: Instance) -> tuple[Instance, Ints]:
    """The same instance with every task a class of its own, and the class of each task."""
    class_of = np.repeat(np.arange(len(instance.count)), instance.count)
    members = np.split(np.arange(len(class_of)), np.cumsum(instance.count)[:-1])
    pairs: list[tuple[Ints, Ints]] = []
    for a, b in zip(instance.edge_a.tolist(), instance.edge_b.tolist(), strict=True):
        i, j = np.meshgrid(members[a], members[b], indexing="ij")
        once = i < j if a == b else np.ones_like(i, dtype=np.bool_)
        pairs.append((i[once], j[once]))
    none = [np.zeros(0, dtype=np.int64)]
    return replace(
        instance,
        count=np.ones(len(class_of), dtype=np.int64),
        edge_a=np.concatenate([i for i, _ in pairs] or none),
        edge_b=np.concatenate([j for _, j in pairs] or none),
        edge_weight=np.repeat(instance.edge_weight, [len(i) for i, _ in pairs]),
        demand=instance.demand[:, class_of],
        allowed=(instance.allowed & (instance.slots > 0))[class_of],
        apart=instance.apart[class_of],
        group=instance.group[class_of],
        memory=instance.memory[class_of],
    ), class_of


def _program(
    tasks: Instance, class_of: Ints, instance: Instance
) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """Eq. 4.1-4.5 for a solver of integer programs: costs, and everything else it takes."""
    from scipy.sparse import coo_array, csr_array, hstack, vstack

    (count, nodes), edges = tasks.allowed.shape, len(tasks.edge_a)
    number = np.arange(count * nodes).reshape(count, nodes)  # of x[i, u]
    terms = edges * nodes
    a, b = number[tasks.edge_a].ravel(), number[tasks.edge_b].ravel()
    row = np.arange(terms)
    # Eq. 4.2: w[i, j, u] - x[i, u] + x[j, u] >= 0
    apart = csr_array(
        (
            np.concatenate([-np.ones(terms), np.ones(terms), np.ones(terms)]),
            (np.tile(row, 3), np.concatenate([a, b, count * nodes + row])),
        ),
        shape=(terms, count * nodes + terms),
    )
    # Eq. 4.5: every task is on one node.
    one_node = csr_array(
        (np.ones(count * nodes), (np.repeat(np.arange(count), nodes), number.ravel())),
        shape=(count, count * nodes),
    )
    # Eq. 4.4, which must read <=, for every resource; then tasks that are kept apart.
    rows: list[Any] = []
    high: list[np.ndarray[Any, Any]] = []
    for k in range(tasks.capacity.shape[1]):
        need = tasks.demand[tasks.node_type, :, k].T  # [V, N]
        limited = np.flatnonzero(np.isfinite(tasks.capacity[:, k]))
        if len(limited):
            room = tasks.capacity[limited, k]
            rows.append(_by_node(need, limited, number))
            high.append(room * (1 + TOLERANCE) + TOLERANCE)
    for c in np.flatnonzero(instance.apart & (instance.count > 1)).tolist():
        here = np.repeat((class_of == c)[:, None].astype(np.float64), nodes, axis=1)
        rows.append(_by_node(here, np.arange(nodes), number))
        high.append(np.ones(nodes))
    limits = [one_node, *rows]
    places = csr_array(vstack(limits))
    height = count + sum(len(limit) for limit in high)
    places = hstack([places, coo_array((height, terms))])
    matrix = csr_array(vstack([places, apart]))
    upper = np.concatenate([np.ones(count), *high, np.full(terms, np.inf)])
    lower = np.concatenate([np.ones(count), *(np.full(len(h), -np.inf) for h in high)])
    lower = np.concatenate([lower, np.zeros(terms)])
    cost = np.concatenate([np.zeros(count * nodes), np.repeat(tasks.edge_weight, nodes)])
    most = np.concatenate([tasks.allowed.ravel().astype(np.float64), np.ones(terms)])
    return cost, {
        "integrality": np.concatenate([np.ones(count * nodes), np.zeros(terms)]),
        "bounds": highs.bounds(np.zeros(len(cost)), most),
        "constraints": highs.rows(matrix, lower, upper),
    }


def _by_node(need: Any, nodes: Ints, number: Ints) -> Any:
    """One row per node: what the tasks on it need together, over x."""
    from scipy.sparse import csr_array

    count = len(number)
    return csr_array(
        (
            need[:, nodes].T.ravel(),
            (np.repeat(np.arange(len(nodes)), count), number[:, nodes].T.ravel()),
        ),
        shape=(len(nodes), number.size),
    )
