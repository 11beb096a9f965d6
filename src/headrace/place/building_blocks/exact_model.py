"""Eskandari's exact model over a fused task graph, and how large a graph it solves in a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, cast

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import CPU, Assignment, Pairs, Problem
from headrace.model.request import Request
from headrace.place.building_blocks.ceiling import sort_by_capacity
from headrace.place.building_blocks.topologies import Options, Scheduler
from headrace.solve.classes import classes_of
from headrace.solve.cut.graph import graph_of
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.proof.exact import least_crossing

# Written by `headrace lab calibrate`: kind of graph -> number of vertices -> CPU seconds.
PACKAGED = Path(__file__).with_name("exact_model_seconds.json")
# All tasks and pairs alike, as in the thesis' benchmarks; those of an operator; none.
ALIKE, BY_OPERATOR, DIFFERENT = KINDS = ("alike", "by operator", "different")

# The table says how long the model takes on the clusters it was measured on; on others it may take
# longer, and ends with the best plan that it has after so many steps of the solver.
MOST_STEPS = 300
MANY_NODES = 200
THETA_S = 5.0  # of all models of a problem together

Seconds = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """The task graph after fusing."""

    vertex: Ints  # [T] the vertex a task is part of
    node: Ints  # [T] a node of the capacity its part was made for; UNPLACED if it was not fused
    use_model: bool  # few enough vertices for the exact model; if not, every task is fused


def share_theta(scheduler: Scheduler[Options]) -> Scheduler[Options]:
    """The scheduler with theta seconds for the models of all topologies together."""

    @wraps(scheduler)
    def place(problem: Problem, *args: Options.args, **options: Options.kwargs) -> Assignment:
        theta = cast("float", options.get("theta", THETA_S)) / len(problem.topologies)
        return cast("Any", scheduler)(problem, *args, **{**options, "theta": theta})

    return place


def find_threshold(problem: Problem, theta: float, table: str | None = None) -> int:
    """Algorithm 4, line 4: how many vertices the exact model solves within theta seconds."""
    return largest_solved(read_seconds(table)[kind_of(problem)], theta)


def largest_solved(seconds: Mapping[int, float], theta: float) -> int:
    """The largest size up to which every size took no longer than theta; 0 if none."""
    largest = 0
    for size in sorted(seconds):
        if seconds[size] > theta:
            break
        largest = size
    return largest


def kind_of(problem: Problem) -> str:
    """What is alike in a task graph: the model merges that, and is the faster the more it is."""
    operators = len(np.unique(problem.operator))
    if not len(classes_of(problem).component) <= operators < problem.task_count:
        return DIFFERENT
    rate, load = problem.task_pairs().tuples_per_s, problem.mean_demand[:, CPU]
    alike = all(np.allclose(values, values[:1]) for values in (rate, load))
    return ALIKE if alike else BY_OPERATOR


def read_seconds(table: str | None = None) -> Seconds:
    """The measured table in a file of `headrace lab calibrate`; absent: the packaged one."""
    path = PACKAGED if table is None else Path(table)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["seconds"]
        seconds = {
            kind: {int(size): float(took) for size, took in found[kind].items()} for kind in KINDS
        }
    except OSError as error:
        raise InvalidInput(f"table {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(
            f"table {path}: not a table of `headrace lab calibrate`, which has `seconds` "
            f"with {', '.join(f'`{kind}`' for kind in KINDS)}, each from vertices to seconds"
        ) from None
    return seconds


def node_classes(problem: Problem, room: Floats) -> list[Ints]:
    """Nodes of equal capacity and type, largest first."""
    classes: dict[tuple[float, ...], list[int]] = {}
    for n in sort_by_capacity(problem, room).tolist():
        classes.setdefault((*room[n].tolist(), int(problem.node_type[n])), []).append(n)
    return [np.array(nodes, dtype=np.int64) for nodes in classes.values()]


def solve_model(
    problem: Problem,
    pairs: Pairs,
    demand: Floats,
    room: Floats,
    vertex: Ints,
    request: Request,
) -> Ints | None:
    """The exact model over fused and unfused tasks: the node of each, [T].

    demand is [Y, T, K], room [N, K]. None if the vertices do not pack.
    """
    count = int(vertex.max()) + 1
    needs = np.stack(
        [
            np.column_stack([totals(vertex, column, count) for column in of_type.T])
            for of_type in demand
        ]
    )
    graph = graph_of(vertex[pairs.source], vertex[pairs.target], pairs.tuples_per_s, count)
    row = np.repeat(np.arange(count), np.diff(graph.first))
    once = row < graph.other
    nodes = nodes_of_use(problem, room, count)
    instance = Instance(
        count=np.ones(count, dtype=np.int64),
        edge_a=row[once],
        edge_b=graph.other[once],
        edge_weight=graph.weight[once],
        demand=needs,
        node_type=problem.node_type[nodes],
        capacity=room[nodes],
        allowed=np.tile(problem.free_slots[nodes] > 0, (count, 1)),
        apart=np.zeros(count, dtype=np.bool_),
        group=np.zeros(count, dtype=np.int64),
        slots=problem.free_slots[nodes],
        heap=np.array([np.inf]),
        memory=np.zeros(count),
    )
    start = least_crossing_search(instance, seed=request.seed, deadline=request.deadline)
    solved = least_crossing(
        instance,
        start=None if start is None else start.x,
        steps=MOST_STEPS if request.steps is None else request.steps,
        deadline=request.deadline,
    )
    return None if solved.x is None else nodes[solved.x.argmax(axis=1)][vertex]


def nodes_of_use(problem: Problem, room: Floats, vertices: int) -> Ints:
    """All nodes; of a large cluster, of alike ones only as many as there are vertices."""
    if len(room) <= MANY_NODES:
        return np.arange(len(room))
    facts = np.column_stack([problem.node_type, problem.free_slots, room])
    _, kind = np.unique(facts, axis=0, return_inverse=True)
    order = np.argsort(kind.reshape(-1), kind="stable")
    start = np.searchsorted(kind.reshape(-1)[order], kind.reshape(-1)[order])
    return np.sort(order[np.arange(len(order)) - start < vertices])
