"""Our own sizing: feasible, below its bound, above the others, and with what the file asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace import planner
from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.judge.report import judge
from headrace.model.generate import nasiri_scenario, random_cluster, random_topology
from headrace.model.request import Request
from headrace.model.sized import Sized
from headrace.size.headrace import headrace
from headrace.size.nasiri import nasiri
from tests.size.workloads import at_rate, chain, workload_of


def feasible_at_its_rate(content: dict[str, Any], sized: Sized) -> None:
    """The judge finds nothing wrong with the plan when the spouts emit what it promises."""
    factor = sized.rate / float(sized.problem.rate[sized.problem.spout].sum()) * (1 - 1e-6)
    faster = workload_of(content | {"topology": at_rate(content["topology"], factor)})
    problem = faster.problem(dict(sized.tasks))
    assert sized.assignment is not None
    assert judge(problem, sized.assignment).violations == ()


def test_divisible_work_fills_alike_nodes_exactly() -> None:
    sized = headrace(workload_of(chain([10, 30], nodes=4)))
    assert sized.bound == pytest.approx(100, rel=1e-5)  # 4 points per tuple/s, 400 points
    assert sized.rate == pytest.approx(100, rel=1e-6)


@pytest.mark.parametrize("layout", ["linear", "diamond", "star"])
@pytest.mark.parametrize(("fixed", "share"), [(0.0, 0.95), (0.5, 0.9), (2.0, 0.9)])
def test_nasiris_cases_are_near_the_bound_and_above_nasiri(
    layout: Any, fixed: float, share: float
) -> None:
    content = nasiri_scenario(layout, "small", fixed)
    sized = headrace(workload_of(content))
    assert sized.bound is not None
    assert share * sized.bound <= sized.rate <= sized.bound
    assert sized.rate > nasiri(workload_of(content)).rate
    feasible_at_its_rate(content, sized)


@pytest.mark.parametrize("seed", range(4))
def test_random_clusters_are_filled_and_nothing_is_broken(seed: int) -> None:
    content = random_topology(8, kinds=4, seed=seed) | random_cluster(7, kinds=4, seed=seed)
    sized = headrace(workload_of(content), Request(steps=30_000))
    assert sized.bound is not None
    assert 0.6 * sized.bound <= sized.rate <= sized.bound * (1 + 1e-6)
    feasible_at_its_rate(content, sized)


def test_no_task_is_planned_above_one_thread() -> None:
    sized = headrace(workload_of(chain([10], nodes=1, cpu=400)))
    assert sized.tasks["b1"] >= 4
    assert sized.rate == pytest.approx(400)
    one = chain([10], nodes=1, cpu=400)
    one["topology"]["components"]["b1"]["max_tasks"] = 1
    limited = headrace(workload_of(one))
    assert limited.tasks["b1"] == 1
    assert limited.rate == pytest.approx(100)
    assert limited.bound == pytest.approx(100, rel=1e-5)


def test_memory_limits_the_number_of_tasks() -> None:
    content = chain([10, 10], nodes=2, memory_mb=250)
    for bolt in ("b1", "b2"):
        content["topology"]["components"][bolt]["memory_mb"] = 100
    sized = headrace(workload_of(content))
    assert sized.assignment is not None
    assert np.bincount(sized.assignment.node[1:]).max() <= 2
    feasible_at_its_rate(content, sized)


def test_pins_and_separations_are_kept() -> None:
    content = chain([10, 10], nodes=3)
    content["topology"]["components"]["b1"] |= {"nodes": ["n2"]}
    content["topology"]["components"]["b2"] |= {"apart": True}
    sized = headrace(workload_of(content))
    feasible_at_its_rate(content, sized)
    assert sized.rate == pytest.approx(100)  # n2 for b1, the other two have room for more


def test_bandwidth_counts() -> None:
    content = chain([10, 10], nodes=2, bandwidth_mbps=0.008)  # 1000 bytes/s
    content["topology"]["components"]["b1"]["bytes"] = 100
    sized = headrace(workload_of(content))
    feasible_at_its_rate(content, sized)


def test_a_task_that_gets_every_tuple_is_not_multiplied() -> None:
    for grouping in ("global", "all"):
        content = chain([10, 10], nodes=3)
        content["topology"]["components"]["b2"]["inputs"] = {"b1": grouping}
        sized = headrace(workload_of(content))
        assert sized.tasks["b2"] == 1
        assert sized.rate == pytest.approx(100)


def test_cpu_per_task_counts_for_the_tasks_of_the_file() -> None:
    content = chain([10], nodes=2)
    del content["profile"]
    content["topology"]["components"]["b1"] |= {"cpu": 20, "tasks": 2}  # 40 points at 10 tuples/s
    sized = headrace(workload_of(content))
    assert sized.rate == pytest.approx(50, rel=1e-3)


def test_the_same_seed_gives_the_same_plan() -> None:
    content = chain([10, 30, 5])
    one, other = (
        headrace(workload_of(content), Request(seed=3)),
        headrace(workload_of(content), Request(seed=3)),
    )
    assert one.assignment is not None
    assert other.assignment is not None
    assert one.tasks == other.tasks
    assert one.assignment.node.tolist() == other.assignment.node.tolist()


def test_several_topologies_share_the_cluster() -> None:
    one = chain([10])["topology"] | {"name": "one"}
    other = chain([30])["topology"] | {"name": "other"}
    content = chain([10], nodes=4)
    del content["topology"]
    content |= {
        "topologies": [one, other],
        "profile": {"one/b1": {"*": {"cpu_ms": 10}}, "other/b1": {"*": {"cpu_ms": 30}}},
    }
    sized = headrace(workload_of(content))
    assert sized.rate == pytest.approx(200, rel=0.02)  # 100 each, 400 points


def test_one_machine_per_task_is_solved_exactly() -> None:
    # Five nodes; the source needs one, b1 (1 point per tuple/s) and b2 (2 points) share the other
    # four: 1 and 3 carry 100.
    content = chain([10, 20], nodes=5) | {"machine_per_task": True}
    sized = headrace(workload_of(content))
    assert sized.tasks == {"source": 1, "b1": 1, "b2": 2}
    assert sized.rate == sized.bound == pytest.approx(100)
    assert sized.assignment is not None
    assert len(set(sized.assignment.node.tolist())) == 4
    with pytest.raises(Infeasible, match="needs 3 nodes that fit; there are 2"):
        headrace(workload_of(chain([10, 20], nodes=2) | {"machine_per_task": True}))


def test_what_cannot_be_sized_is_refused_with_its_reason() -> None:
    free = chain([10])
    free["topology"]["components"]["b2"] = {"inputs": {"b1": "shuffle"}}
    with pytest.raises(InvalidInput, match="`b2` has neither a profile nor `cpu`"):
        headrace(workload_of(free))
    huge = chain([10], memory_mb=100)
    huge["topology"]["components"]["b1"]["memory_mb"] = 200
    with pytest.raises(Infeasible, match="needs 200 memory_mb, the largest has 100"):
        headrace(workload_of(huge))
    with pytest.raises(Unsupported, match="bare task graph"):
        headrace(workload_of({"tasks": {"a": {"cpu": 1}}, "cluster": {"nodes": {"n": {}}}}))
    with pytest.raises(InvalidInput, match="no spout emits"):
        headrace(workload_of(chain([10], rate=0)))


def test_few_tasks_carry_a_rate_that_is_asked_for() -> None:
    # 30 points per tuple/s on b2: 8 tuples/s need 240 points, three threads; b1 needs one.
    content = chain([10, 300], nodes=4)
    sized = headrace(workload_of(content), Request(rate=8))
    assert sized.tasks == {"source": 1, "b1": 1, "b2": 3}
    assert sized.rate == 8
    assert sized.bound == pytest.approx(400 / 31, rel=1e-4)
    feasible_at_its_rate(content, sized)


def test_more_and_smaller_tasks_are_taken_where_the_fewest_do_not_fit() -> None:
    # 66 points of each of three bolts on two nodes: whole tasks do not fit, halves do (3 x 33 on
    # each node).
    sized = headrace(workload_of(chain([66, 66, 66], nodes=2)), Request(rate=10))
    assert sum(sized.tasks[f"b{i}"] for i in (1, 2, 3)) > 3
    assert sized.rate >= 10


def test_a_rate_on_one_machine_per_task_takes_the_fewest_nodes() -> None:
    content = chain([10, 20], nodes=9) | {"machine_per_task": True}
    sized = headrace(workload_of(content), Request(rate=90))
    assert sized.tasks == {"source": 1, "b1": 1, "b2": 2}
    assert sized.rate == pytest.approx(100)
    assert sized.bound is not None
    assert sized.bound >= 200 * (1 - 1e-9)


def test_a_rate_beyond_the_cluster_is_refused_with_the_largest_that_works() -> None:
    content = chain([10], nodes=2)
    with pytest.raises(
        Infeasible, match=r"does not carry 500 tuples/s; the largest rate found that works is 200"
    ) as refused:
        planner.size(workload_of(content), rate=500)
    assert refused.value.available is not None
    assert planner.size(workload_of(content), rate=refused.value.available).report is not None
    for rate in (0.0, -1.0):
        with pytest.raises(InvalidInput, match="it must be above 0"):
            planner.size(workload_of(content), rate=rate)
