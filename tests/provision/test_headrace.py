"""Our own provisioning with shared machines: within its limits, below its bound, never worse than one machine per task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import Infeasible
from headrace.judge.report import judge
from headrace.model.generate import cao_budgets, cao_pipeline, random_topology
from headrace.model.read import read
from headrace.model.request import Request
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.provision.headrace import headrace
from headrace.provision.optimal import optimal
from tests.size.workloads import at_rate, two_bolts, workload_of

CAO = Path(__file__).parents[2] / "examples" / "cao"


def sound(content: dict[str, Any], plan: Provisioned) -> None:
    """What the judge says of the plan at the rate it promises, and of the machines it rents."""
    factor = plan.rate / float(plan.problem.rate[plan.problem.spout].sum()) * (1 - 1e-6)
    faster = workload_of(content | {"topology": at_rate(content["topology"], factor)})
    problem = faster.problem(dict(plan.tasks), dict(plan.machines))
    report = judge(problem, plan.assignment)
    assert report.violations == ()
    assert report.cost == pytest.approx(plan.cost)
    for kind, number in plan.machines.items():
        available = content["catalog"][kind].get("available")
        assert available is None or number <= available


def shared(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"machine_per_task": False}


def test_two_bolts_share_a_machine() -> None:
    # s is free, a and b take 1 and 2 points per tuple/s on small machines: 3 of them carry 100,
    # where one task each would take 4.
    content = shared(two_bolts())
    plan = headrace(workload_of(content), Request(rate=100))
    assert plan.cost == 3
    assert plan.bound == pytest.approx(3, rel=1e-5)
    sound(content, plan)


def test_sharing_is_never_worse_than_one_machine_per_task() -> None:
    for name in ("flight", "wrf"):
        workload = Workload(read([CAO / f"{name}.yaml", CAO / "vm-types.yaml"]))
        alone = optimal(workload, Request(budget=1.856))
        document = workload.inputs.document.model_dump(
            mode="json", by_alias=True, exclude_unset=True
        )
        content = shared(document)
        fast = headrace(workload_of(content), Request(budget=1.856))
        assert fast.cost <= 1.856 * (1 + 1e-9)
        assert fast.bound is not None
        assert alone.rate <= fast.rate <= fast.bound
        sound(content, fast)
        cheap = headrace(workload_of(content), Request(rate=alone.rate))
        assert cheap.bound is not None
        assert cheap.bound <= cheap.cost <= alone.cost
        assert cheap.rate >= alone.rate * (1 - 1e-6)
        sound(content, cheap)


@pytest.mark.parametrize("seed", range(3))
def test_random_topologies_get_machines_that_carry_the_rate(seed: int) -> None:
    content = random_topology(9, kinds=4, seed=seed)
    rate = 8 * sum(spec.get("rate", 0) for spec in content["topology"]["components"].values())
    plan = headrace(workload_of(content), Request(rate=rate, steps=40_000))
    assert plan.rate >= rate * (1 - 1e-6)
    assert plan.bound is not None
    assert plan.bound <= plan.cost * (1 + 1e-9)
    assert plan.cost <= plan.bound * 1.35
    sound(content, plan)
    within = headrace(workload_of(content), Request(budget=plan.cost, steps=40_000))
    assert within.cost <= plan.cost * (1 + 1e-9)
    assert within.bound is not None
    assert within.bound >= rate * (
        1 - 1e-6
    )  # the first plan shows that the rate can be had for this budget
    sound(content, within)


def test_refusals_name_what_would_work() -> None:
    content = shared(two_bolts(small={"available": 2}, large={"available": 1}))
    with pytest.raises(Infeasible) as poor:
        headrace(workload_of(content), Request(budget=0.5))
    assert poor.value.needed == 1
    assert headrace(workload_of(content), Request(budget=poor.value.needed)).rate > 0
    with pytest.raises(Infeasible) as fast:
        headrace(workload_of(content), Request(rate=1000))
    assert fast.value.available is not None
    assert headrace(
        workload_of(content), Request(rate=fast.value.available)
    ).rate >= fast.value.available * (1 - 1e-6)
    with pytest.raises(Infeasible, match="the budget is 1"):
        headrace(workload_of(content), Request(rate=100, budget=1))


def test_max_tasks_limits_the_rate_of_endless_machines() -> None:
    content = shared(two_bolts())
    content["topology"]["components"]["b"]["max_tasks"] = 1
    with pytest.raises(Infeasible) as refused:
        headrace(workload_of(content), Request(rate=101))
    assert refused.value.available == pytest.approx(100)  # one thread on a large machine


def test_the_same_seed_gives_the_same_plan() -> None:
    content = shared(cao_pipeline(6, 9, kinds=4, seed=1))
    budget = cao_budgets(content)[2]
    one, other = (
        headrace(workload_of(content), Request(budget=budget)),
        headrace(workload_of(content), Request(budget=budget)),
    )
    assert one.machines == other.machines
    assert one.assignment.node.tolist() == other.assignment.node.tolist()


def test_a_stream_to_every_task_is_counted_for_every_task() -> None:
    content = shared(two_bolts())
    content["topology"]["components"]["b"]["inputs"] = {"a": "all"}
    plan = headrace(workload_of(content), Request(rate=80))
    assert plan.tasks["b"] == 1
    assert plan.rate >= 80
    sound(content, plan)
