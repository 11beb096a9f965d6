"""The arrays algorithms get: task pairs, one topology alone, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from headrace.errors import Unsupported
from headrace.model.problem import Problem

from .conftest import Build
from .documents import documents, problem_of


def pairs_by_hand(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Tuples/s between named tasks, tuple by tuple from the document: slow, and without arrays."""
    sent: dict[tuple[str, str], float] = {}
    for app in document["topologies"]:
        share = {
            f"c0.{i + 1}": 1 / app["components"]["c0"]["tasks"]
            for i in range(app["components"]["c0"]["tasks"])
        }
        rate = {"c0": float(app["components"]["c0"]["rate"])}
        for target, component in app["components"].items():
            tasks = component["tasks"]
            got = {f"{target}.{j + 1}": 0.0 for j in range(tasks)}
            for source, entries in component.get("inputs", {}).items():
                ends = (f"{app['name']}/{source}", f"{app['name']}/{target}")
                measured = [
                    row
                    for row in document["traffic"]
                    if (row[0].split(".")[0], row[1].split(".")[0]) == ends
                ]
                shares = [s["shares"] for s in document["streams"] if (s["from"], s["to"]) == ends]
                for a, b, tuples in measured:
                    sent[a, b] = sent.get((a, b), 0.0) + tuples
                    got[b.split("/")[1]] += tuples
                for entry in [] if measured else entries:
                    emitted = rate[source] * (
                        1 if source == "c0" else app["components"][source]["selectivity"]
                    )
                    for j in range(tasks):
                        grouping = str(entry["grouping"])
                        part = (
                            1.0
                            if grouping == "all"
                            else float(j == 0)
                            if grouping == "global"
                            else 1 / tasks
                        )
                        if shares and grouping != "all":
                            part = shares[0][j] / sum(shares[0])
                        got[f"{target}.{j + 1}"] += emitted * part
                        for i in range(app["components"][source]["tasks"]):
                            pair = (f"{ends[0]}.{i + 1}", f"{ends[1]}.{j + 1}")
                            sent[pair] = (
                                sent.get(pair, 0.0) + emitted * share[f"{source}.{i + 1}"] * part
                            )
            if target != "c0":
                rate[target] = sum(got.values())
                share |= {
                    task: got[task] / rate[target] if rate[target] else 1 / tasks for task in got
                }
    return sent


def named_pairs(problem: Problem) -> dict[tuple[str, str], float]:
    pairs, total = problem.task_pairs(), dict[tuple[str, str], float]()
    for a, b, tuples in zip(
        pairs.source.tolist(), pairs.target.tolist(), pairs.tuples_per_s.tolist(), strict=True
    ):
        key = (problem.task_name(a), problem.task_name(b))
        total[key] = total.get(key, 0.0) + tuples
    return total


@given(documents())
def test_task_pairs_are_what_counting_by_hand_gives(document: dict[str, Any]):
    problem = problem_of(document)
    assert problem.pair_count == len(problem.task_pairs())
    assert named_pairs(problem) == pytest.approx(pairs_by_hand(document))


@given(documents())
def test_one_topology_alone_keeps_its_names_pairs_and_demands(document: dict[str, Any]):
    problem = problem_of(document)
    together = named_pairs(problem)
    parts = [
        problem.only(g, problem.taken.copy(), problem.slot_taken.copy())
        for g in range(len(problem.topologies))
    ]
    assert [name for part in parts for name in part.components] == list(problem.components)
    assert sum(part.task_count for part in parts) == problem.task_count
    apart = {pair: tuples for part in parts for pair, tuples in named_pairs(part).items()}
    assert apart == pytest.approx(together)
    assert np.concatenate([part.share for part in parts]) == pytest.approx(problem.share)
    assert np.concatenate([part.rate for part in parts]).tolist() == problem.rate.tolist()
    assert [part.worker_count(0) for part in parts] == [
        problem.worker_count(g) for g in range(len(parts))
    ]


def test_one_topology_alone_has_what_the_others_leave(built: Build):
    text = """
topologies:
  - {name: x, components: {a: {cpu: 1}}}
  - {name: y, components: {a: {cpu: 2, nodes: [n2]}}}
cluster: {nodes: {n1: {cpu: 10, slots: 2}, n2: {cpu: 10, slots: 2}}}
plan: {assignment: {x/a.1: {node: n1}, y/a.1: {node: n2, worker: 1}}}
"""
    problem = built(text)
    taken, slots = problem.taken.copy(), problem.slot_taken.copy()
    taken[1, 0], slots[1, 0] = 4, True
    alone = problem.only(1, taken, slots)
    assert alone.topologies == ("y",)
    assert alone.components == ("y/a",)
    assert alone.demand[:, 0].tolist() == [2]
    assert alone.free[:, 0].tolist() == [10, 6]
    assert alone.free_slots.tolist() == [2, 1]
    assert alone.allowed is not None
    assert alone.allowed.tolist() == [[False, True]]
    assert alone.current is not None
    assert (alone.current.node.tolist(), alone.current.worker.tolist()) == ([1], [1])


def test_bytes_between_tasks_are_tuples_times_their_size(built: Build):
    text = "topology: {components: {a: {spout: true, rate: 6, bytes: 5, tasks: 2}, b: {tasks: 3, inputs: {a: shuffle}}}}\n"
    pairs = built(text + "cluster: {nodes: {n: {}}}").task_pairs()
    assert pairs.tuples_per_s.tolist() == [1] * 6
    assert pairs.bytes_per_s.tolist() == [5] * 6


def test_a_task_that_receives_more_sends_more(built: Build):
    text = """
topology:
  components:
    a: {spout: true, rate: 8}
    b: {tasks: 2, inputs: {a: shuffle}}
    c: {inputs: {b: shuffle}}
streams: [{from: a, to: b, shares: [3, 1]}]
cluster: {nodes: {n: {}}}
"""
    assert named_pairs(built(text)) == {
        ("a.1", "b.1"): 6,
        ("a.1", "b.2"): 2,
        ("b.1", "c.1"): 6,
        ("b.2", "c.1"): 2,
    }


def test_too_many_task_pairs_are_refused_with_their_number(built: Build):
    text = "topology: {components: {a: {spout: true, tasks: 5000}, b: {tasks: 4001, inputs: {a: shuffle}}}}\n"
    problem = built(text + "cluster: {nodes: {n: {}}}")
    with pytest.raises(
        Unsupported, match="needs 20,005,000 task pairs; the most it takes is 20,000,000"
    ) as caught:
        problem.task_pairs()
    assert (caught.value.needed, caught.value.available) == (20_005_000, 20_000_000)


def test_tasks_are_called_by_component_and_number_and_bare_ones_by_their_name(built: Build):
    cluster = "cluster: {nodes: {n: {}}}"
    problem = built("topology: {components: {a: {tasks: 2}, b: {tasks: 1}}}\n" + cluster)
    assert [problem.task_name(t) for t in range(3)] == ["a.1", "a.2", "b.1"]
    several = built(
        "topologies: [{name: x, components: {a: {}}}, {name: y, components: {a: {}}}]\n" + cluster
    )
    assert [several.task_name(t) for t in range(2)] == ["x/a.1", "y/a.1"]
    bare = built(
        "tasks: {p: {cpu: 1, component: z}, q: {component: z}, r: {}}\ntraffic: [[p, r, 2]]\n"
        + cluster
    )
    assert [bare.task_name(t) for t in range(3)] == ["p", "q", "r"]
    assert bare.operator.tolist() == [0, 0, 1]
    assert named_pairs(bare) == {("p", "r"): 2}


def test_the_arrays_of_a_problem_cannot_be_written(built: Build):
    problem = built("topology: {components: {a: {tasks: 2}}}\ncluster: {nodes: {n: {}}}")
    with pytest.raises(ValueError, match="read-only"):
        problem.capacity[0, 0] = 1


def test_a_million_tasks_are_built_without_pairs(built: Build):
    text = "topology: {components: {a: {spout: true, tasks: 500000}, b: {tasks: 500000, inputs: {a: fields}}}}\n"
    problem = built(text + 'cluster: {nodes: {"n{1..1000}": {}}}')
    assert problem.task_count == 1_000_000
    assert problem.pair_count == 250_000_000_000
