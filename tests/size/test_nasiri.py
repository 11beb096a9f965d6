"""Nasiri's algorithms 1 and 2 on examples worked by hand; the exhaustive search against another."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from headrace import planner
from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.judge.report import judge
from headrace.model.build import build
from headrace.model.generate import nasiri_scenario
from headrace.model.read import validated
from headrace.model.workload import Workload
from headrace.size.headrace import headrace
from headrace.size.nasiri import nasiri
from headrace.size.nasiri_optimal import nasiri_optimal
from headrace.solve.counts.exhaustive import advance_counts
from tests.size.workloads import chain, workload_of


def test_one_bolt_doubles_until_both_machines_are_full() -> None:
    # 10 ms per tuple are 1 point per tuple/s. 10, 20, 40, 80: on n1. 160 is too much: a second
    # instance on n2, 80 points each. 320, 240 need a third instance, for which nobody has room; 200
    # with a quarter step fills both.
    sized = nasiri(workload_of(chain([10])))
    assert sized.tasks == {"source": 1, "b1": 2}
    assert sized.rate == pytest.approx(200)
    assert sized.assignment is not None
    assert sized.assignment.node.tolist() == [0, 0, 1]


def test_the_hottest_task_gets_the_next_instance() -> None:
    # b1 takes 1, b2 takes 2 points per tuple/s. At 40: 40 + 80 on n1, b2 is hottest, its second
    # instance goes to n2. At 60 (half step): b1 and b2 take 60 each on n1, the first of equals is
    # b1, its second instance goes to n2. Then n1 carries 1.5 points per tuple/s: 66.7.
    sized = nasiri(workload_of(chain([10, 20])))
    assert sized.tasks == {"source": 1, "b1": 2, "b2": 2}
    assert sized.rate == pytest.approx(100 / 1.5)


def test_an_instance_goes_where_it_uses_least() -> None:
    content = chain([10], nodes=3)
    content["cluster"]["nodes"] = {
        n: {"type": t, "cpu": 100} for n, t in (("a", "slow"), ("b", "fast"), ("c", "slow"))
    }
    content["profile"]["b1"] = {"slow": {"cpu_ms": 20}, "fast": {"cpu_ms": 10}}
    sized = nasiri(workload_of(content))
    assert sized.assignment is not None
    assert sized.problem.nodes[int(sized.assignment.node[1])] == "b"  # algorithm 1


def test_eq_6_to_the_letter_gives_more_to_the_component_with_more_tasks() -> None:
    content = nasiri_scenario("diamond", "small")
    even, by_tasks = nasiri(workload_of(content)), nasiri(workload_of(content), split="tasks")
    assert even.tasks != by_tasks.tasks


def test_a_plan_by_eq_6_is_judged_by_eq_6_wherever_it_goes() -> None:
    # x and two y of the golden example get a third each: 75 tuples/s. Judged as a copying topology
    # the same plan would carry 100 / (1 + 1.5) = 40.
    components = {"s": {"spout": True, "rate": 10}, "x": {"inputs": {"s": "shuffle"}}}
    components["y"] = {"inputs": {"s": "shuffle"}}
    content = chain([]) | {"topology": {"components": components}}
    content["profile"] = {"x": {"*": {"cpu_ms": 10}}, "y": {"*": {"cpu_ms": 30}}}
    plan = planner.size(workload_of(content), "nasiri", options={"split": "tasks"})
    assert plan.report.max_rate == pytest.approx(75)
    assert plan.problem.rate.tolist() == pytest.approx([75, 25, 50])
    assert plan.workload is not None
    file = plan.workload.document_of_plan(plan.problem)  # what --out writes
    again = build(replace(plan.workload.inputs, document=file))
    assert again.rate.tolist() == pytest.approx([75, 25, 50])
    assert plan.report.bound.value is None  # other counts can mean less load than one task each


def test_a_node_of_four_cores_is_filled() -> None:
    sized = nasiri(workload_of(chain([10], nodes=1, cpu=400)))
    assert sized.tasks["b1"] == 4
    assert sized.rate == pytest.approx(400)


def test_a_first_rate_above_a_thread_grows_instances_or_is_refused_by_name() -> None:
    assert nasiri(workload_of(chain([10], rate=300, nodes=1, cpu=400))).rate == pytest.approx(400)
    content = chain([10], rate=300, nodes=1, cpu=400)
    content["topology"]["components"]["b1"]["max_tasks"] = 2
    with pytest.raises(Infeasible, match="one task of b1 on n1 would need 150 cpu of 100"):
        nasiri(workload_of(content))


def test_an_exhaustive_search_with_a_stream_to_all_finds_what_another_one_finds() -> None:
    # b2 hears b1 by key and, for a tenth of the tuples, as a sign to all.
    content = chain([8, 13], fixed=3)
    tick = {"stream": "tick", "grouping": "all"}
    content["topology"]["components"]["b2"]["inputs"] = {"b1": ["shuffle", tick]}
    content["streams"] = [{"from": "b1", "to": "b2", "stream": "tick", "selectivity": 0.1}]
    best = 0.0
    for x in product(range(4), repeat=4):
        b1, b2 = x[:2], x[2:]
        if not any(b1) or not any(b2) or any(b1[n] + b2[n] > 3 for n in range(2)):
            continue
        one = (0.8 / sum(b1), 1.3 * (1 / sum(b2) + 0.1))  # points of a task per tuple/s
        best = max(
            best,
            min(
                (100 - 3 * (b1[n] + b2[n])) / (b1[n] * one[0] + b2[n] * one[1])
                for n in range(2)
                if b1[n] + b2[n]
            ),
        )
    assert nasiri_optimal(workload_of(content), most_per_machine=3).rate == pytest.approx(best)


def test_the_exhaustive_search_refuses_a_first_task_that_gets_more() -> None:
    content = chain([10, 10])
    content["topology"]["components"]["b2"]["inputs"] = {"b1": "global", "source": "shuffle"}
    with pytest.raises(Unsupported, match="a stream of `b2` goes to its first one alone"):
        nasiri_optimal(workload_of(content))


def test_max_tasks_binds() -> None:
    content = chain([10])
    content["topology"]["components"]["b1"]["max_tasks"] = 1
    sized = nasiri(workload_of(content))
    assert sized.tasks["b1"] == 1
    assert sized.rate == pytest.approx(100)


def test_a_first_rate_that_is_too_much_is_refused_with_the_numbers() -> None:
    with pytest.raises(Infeasible, match="1000 tuples/s"):
        nasiri(workload_of(chain([10], rate=1000, nodes=1)))


def test_no_machine_is_overloaded_at_the_rate_found() -> None:
    for layout in ("linear", "diamond", "star"):
        for fixed in (0.0, 2.0):
            sized = nasiri(workload_of(nasiri_scenario(layout, "small", fixed)))
            assert sized.assignment is not None
            report = judge(sized.problem, sized.assignment)
            assert report.max_rate is not None
            assert sized.rate == pytest.approx(report.max_rate * 8)


def test_the_exhaustive_search_finds_what_another_one_finds() -> None:
    random = Random(1)
    for _ in range(6):
        fixed = random.choice((0.0, 3.0))
        content = chain([random.choice((5, 8, 13)), random.choice((9, 17))], fixed=fixed)
        content["cluster"]["nodes"] = {
            "a": {"type": "x", "cpu": 100},
            "b": {"type": "y", "cpu": random.choice((60, 100))},
        }
        for bolt in ("b1", "b2"):
            x = content["profile"][bolt].pop("*")
            content["profile"][bolt] = {"x": x, "y": {**x, "cpu_ms": x["cpu_ms"] * 1.7}}
        sized = nasiri_optimal(workload_of(content), most_per_machine=3)
        assert sized.rate == pytest.approx(tried_all(content, 3))
        assert headrace(workload_of(content)).rate >= nasiri(workload_of(content)).rate * (1 - 1e-9)


def tried_all(content: dict[str, Any], most: int) -> float:
    """Every number of b1 and b2 on a and b, at most so many together on each."""
    best = 0.0
    nodes = content["cluster"]["nodes"].values()
    for x in product(range(most + 1), repeat=4):
        b1, b2 = x[:2], x[2:]
        if not any(b1) or not any(b2) or any(b1[n] + b2[n] > most for n in range(2)):
            continue
        factor = np.inf
        for n, node in enumerate(nodes):
            load = fixed = 0.0
            for bolt, here in (("b1", b1), ("b2", b2)):
                cost = content["profile"][bolt][node["type"]]
                load += here[n] / sum(here) * cost["cpu_ms"] / 10
                fixed += here[n] * cost["cpu_fixed"]
            if load > 0:
                factor = min(factor, (node["cpu"] - fixed) / load)
        best = max(best, factor)
    return best


def test_counts_are_all_vectors_of_eq_1() -> None:
    count, most = np.array([1, 1]), np.array([9, 2])
    vectors = [(1, 1)]
    while advance_counts(count, most, 4):
        vectors.append((int(count[0]), int(count[1])))
    assert vectors == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


@pytest.mark.parametrize(
    "most", [(9, 9, 9, 9), (1, 3, 2, 9), (9, 1, 1, 2), (2, 2, 2, 1), (1, 1, 1, 1)]
)
def test_counts_keep_their_limits_and_miss_nothing(most: tuple[int, ...]) -> None:
    count = np.ones(4, dtype=np.int64)
    found: list[tuple[int, ...]] = [(1, 1, 1, 1)]
    while advance_counts(count, np.array(most), 9):
        found.append(tuple(count.tolist()))
    wanted = [x for x in product(*(range(1, m + 1) for m in most)) if sum(x) <= 9]
    assert sorted(found) == sorted(wanted)
    assert [sum(x) for x in found] == sorted(sum(x) for x in found)


def test_the_exhaustive_search_refuses_what_it_cannot_finish() -> None:
    with pytest.raises(Unsupported, match="exhaustive"):
        nasiri_optimal(Workload(validated(nasiri_scenario("diamond", "large"), {})))
    with pytest.raises(InvalidInput, match="most_per_machine"):
        nasiri_optimal(workload_of(chain([10])), most_per_machine=0)
