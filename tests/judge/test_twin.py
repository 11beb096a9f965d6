"""The judge against its twin, which adds up task by task: random problems, random plans, every figure."""

from __future__ import annotations

from random import Random

import pytest

from headrace.checks.problems import Content, draw_assignment, draw_document, problem_of
from headrace.judge.report import FIGURES, Report, gap, judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from tests.judge.twin import Placed, Twin, max_rate


def case(seed: int) -> tuple[Content, Problem, Assignment, Placed]:
    random = Random(seed)
    content = draw_document(random)
    problem = problem_of(content)
    plan = draw_assignment(random, problem)
    return content, problem, plan, by_name(problem, plan)


def by_name(problem: Problem, plan: Assignment) -> Placed:
    where = {
        problem.task_name(t): (int(plan.node[t]), int(plan.worker[t]))
        for t in range(problem.task_count)
    }
    return {
        task: (problem.nodes[node], slot)
        for task, (node, slot) in where.items()
        if node != UNPLACED
    }


def figures(report: Report) -> dict[str, float | None]:
    names = "total_traffic inter_worker_traffic inter_node_traffic inter_rack_traffic network_distance nodes_used workers_used"
    names += " batch_seconds balance weighted_utilisation cost"
    return {name: getattr(report, name) for name in names.split()}


@pytest.mark.parametrize("seed", range(400))
def test_every_figure_is_what_counting_task_by_task_gives(seed: int) -> None:
    content, problem, plan, placed = case(seed)
    report, twin = judge(problem, plan, bounded=False), Twin(content, placed)
    expected: dict[str, float | None] = {
        "total_traffic": twin.traffic(0),
        "inter_worker_traffic": twin.traffic(1),
        "inter_node_traffic": twin.traffic(2),
        "inter_rack_traffic": twin.traffic(3),
        "network_distance": twin.network_distance(),
        "nodes_used": len(twin.used_nodes),
        "workers_used": len(twin.workers()),
        "batch_seconds": twin.batch_seconds(),
        "balance": twin.balance(),
        "weighted_utilisation": twin.weighted_utilisation(),
        "cost": twin.cost(),
    }
    assert figures(report) == {
        name: value if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)
        for name, value in expected.items()
    }
    assert ("bandwidth counts only streams whose `bytes` are known" in report.notes) == (
        not twin.all_sized()
    )


@pytest.mark.parametrize("seed", range(400))
def test_every_node_carries_what_its_tasks_need(seed: int) -> None:
    content, problem, plan, placed = case(seed)
    report, twin = judge(problem, plan, bounded=False), Twin(content, placed)
    assert list(report.nodes) == twin.used_nodes
    for node, row in report.nodes.items():
        expected: dict[str, float] = {
            resource: twin.use(node, resource) for resource in twin.resources()
        }
        expected |= {
            "tasks": len(twin.tasks_on(node)),
            "workers": sum(where == node for where, _ in twin.workers()),
        }
        expected |= {f"{way}_mbps": twin.mbps(node, way) for way in ("out", "in")}
        assert {key: row[key] for key in expected} == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(400))
def test_every_broken_rule_is_named_with_its_numbers(seed: int) -> None:
    content, problem, plan, placed = case(seed)
    report = judge(problem, plan, bounded=False)
    found = sorted(
        (v.kind, v.node, v.resource, v.task or "", v.needed, v.available) for v in report.violations
    )
    expected = sorted(
        (kind, node, what, task or "", a, b)
        for kind, node, what, a, b, task in Twin(content, placed).violations()
    )
    assert [broken[:4] for broken in found] == [broken[:4] for broken in expected]
    assert [broken[4:] for broken in found] == [
        pytest.approx(broken[4:], rel=1e-9) for broken in expected
    ]
    assert report.feasible == (not expected and not plan.refused)


@pytest.mark.parametrize("seed", range(400))
def test_max_rate_is_where_growing_rates_fill_a_node(seed: int) -> None:
    content, problem, plan, placed = case(seed)
    report, expected = judge(problem, plan, bounded=False), max_rate(content, placed)
    assert report.max_rate == (
        expected if expected is None else pytest.approx(expected, rel=1e-7, abs=1e-12)
    )
    if expected is None:
        assert report.bottleneck is None
    else:
        assert report.bottleneck in Twin(content, placed, expected * (1 + 1e-6) + 1e-9).full()
    throughput = Twin(content, placed).processed() * (
        1.0 if expected is None else min(1.0, expected)
    )
    assert report.throughput == pytest.approx(throughput, rel=1e-7)
    assert report.throughput_per_node == (
        pytest.approx(throughput / report.nodes_used, rel=1e-7) if report.nodes_used else None
    )


@pytest.mark.parametrize("seed", range(400))
def test_no_feasible_plan_is_better_than_the_bound(seed: int) -> None:
    _, problem, plan, _ = case(seed)
    if not judge(problem, plan, bounded=False).feasible:
        assert seed or judge(problem, plan).gap is None
        return
    for objective, figure in FIGURES.items():
        report = judge(problem, plan, objective=objective)
        value, limit = getattr(report, figure), report.bound.value
        assert report.bound.of == figure
        assert report.gap == gap(value, limit)
        if value is not None and limit is not None:
            assert (
                value <= limit * (1 + 1e-9) if objective == "rate" else value >= limit * (1 - 1e-9)
            )
