"""The judge against its twin, which counts task by task: random problems and plans, all figures.

Every block of seeds builds its cases once. A failure names its seed.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from headrace.checks.problems import Content, draw_assignment, draw_document, problem_of
from headrace.errors import InvalidInput
from headrace.judge.report import FIGURES, Report, gap, judge
from headrace.judge.traffic import traffic
from headrace.model.problem import UNPLACED, Assignment, Problem
from tests.failures import label_failure
from tests.judge.twin import Twin, max_rate
from tests.judge.twin_flow import Placed

BLOCK = 100
BLOCKS = [range(first, first + BLOCK) for first in range(0, 400, BLOCK)]
every_block = pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"from-{seeds[0]}")


class Case(NamedTuple):
    """A random problem with a random plan, its report, and the twin of both."""

    content: Content
    problem: Problem
    plan: Assignment
    placed: Placed
    report: Report
    twin: Twin


@cache
def case(seed: int) -> Case:
    random = Random(seed)
    content = draw_document(random)
    problem = problem_of(content)
    plan = draw_assignment(random, problem)
    placed = by_name(problem, plan)
    report = judge(problem, plan, bounded=False)
    return Case(content, problem, plan, placed, report, Twin(content, placed))


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


@every_block
def test_every_figure_is_what_counting_task_by_task_gives(seeds: range) -> None:
    cases_with: Counter[str] = Counter()
    for seed in seeds:
        with label_failure(seed=seed):
            report, twin = case(seed).report, case(seed).twin
            expected: dict[str, float | None] = {
                "total_traffic": twin.traffic(0),
                "inter_worker_traffic": twin.traffic(1),
                "inter_node_traffic": twin.traffic(2),
                "inter_rack_traffic": twin.traffic(3),
                "network_distance": twin.network_distance(),
                "network_cost": twin.traffic(2) + 2 * twin.traffic(3),
                "nodes_used": len(twin.used_nodes),
                "workers_used": len(twin.workers()),
                "batch_seconds": twin.batch_seconds(),
                "balance": twin.balance(),
                "weighted_utilisation": twin.weighted_utilisation(),
                "cost": twin.cost(),
            }
            assert {name: getattr(report, name) for name in expected} == {
                name: value if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)
                for name, value in expected.items()
            }
            noted = "bandwidth counts only streams whose `bytes` are known" in report.notes
            assert noted == (not twin.all_sized())
            cases_with.update({name: bool(value) for name, value in expected.items()})
    assert min(cases_with.values()) >= 10, "a figure is 0 or unknown in nearly every case"


@every_block
def test_every_node_carries_what_its_tasks_need(seeds: range) -> None:
    nodes = 0
    for seed in seeds:
        with label_failure(seed=seed):
            report, twin = case(seed).report, case(seed).twin
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
                found = {key: row[key] for key in expected}
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
                nodes += 1
    assert nodes >= BLOCK


@every_block
def test_every_broken_rule_is_named_with_its_numbers(seeds: range) -> None:
    kinds: set[str] = set()
    sound = 0
    for seed in seeds:
        with label_failure(seed=seed):
            report = case(seed).report
            found = sorted(
                (v.kind, v.node, v.resource, v.task or "", v.needed, v.available)
                for v in report.violations
            )
            expected = sorted(
                (kind, node, what, task or "", a, b)
                for kind, node, what, a, b, task in case(seed).twin.violations()
            )
            assert [broken[:4] for broken in found] == [broken[:4] for broken in expected]
            assert [broken[4:] for broken in found] == [
                pytest.approx(broken[4:], rel=1e-9) for broken in expected
            ]
            assert report.feasible == (not expected and not case(seed).plan.refused)
            kinds |= {broken[0] for broken in expected}
            sound += report.feasible
    assert len(kinds) == 7, "not every rule was broken"
    assert sound >= 10, "too few plans that break none"


@every_block
def test_max_rate_is_where_growing_rates_fill_a_node_or_a_thread(seeds: range) -> None:
    limited = by_threads = 0
    for seed in seeds:
        with label_failure(seed=seed):
            content, _, _, placed, report, twin = case(seed)
            expected = max_rate(content, placed)
            if expected is None:
                assert report.max_rate is None
                assert report.bottleneck is None
            else:
                limited += expected > 0
                by_threads += "thread" in str(report.bottleneck)
                assert report.max_rate == pytest.approx(expected, rel=1e-7, abs=1e-12)
                beyond = Twin(content, placed, expected * (1 + 1e-6) + 1e-9)
                assert str(report.bottleneck) in beyond.full()
            reached = twin.processed() * (1.0 if expected is None else min(1.0, expected))
            assert report.throughput == pytest.approx(reached, rel=1e-7)
            assert report.throughput_per_node == (
                pytest.approx(reached / report.nodes_used, rel=1e-7) if report.nodes_used else None
            )
    assert limited >= BLOCK / 2, "too few plans that something limits"
    assert by_threads >= 5, "too few plans that a thread limits"


@every_block
def test_no_feasible_plan_is_better_than_the_bound(seeds: range) -> None:
    compared = 0
    for seed in seeds:
        with label_failure(seed=seed):
            _, problem, plan, _, report, _ = case(seed)
            if not report.feasible:
                continue
            for objective, figure in FIGURES.items():
                report = judge(problem, plan, objective=objective)
                value, limit = getattr(report, figure), report.bound.value
                assert report.bound.of == figure
                assert report.gap == gap(value, limit)
                if value is not None and limit is not None:
                    compared += 1
                    if objective == "rate":
                        assert value <= limit * (1 + 1e-9)
                    else:
                        assert value >= limit * (1 - 1e-9)
    assert compared >= 40, "too few feasible plans with a bound to compare with"


def test_an_infeasible_plan_has_no_gap() -> None:
    infeasible = [case(seed) for seed in BLOCKS[0] if not case(seed).report.feasible]
    assert len(infeasible) >= 10
    for found in infeasible[:10]:
        assert judge(found.problem, found.plan).gap is None


def test_output_divided_by_tasks_is_what_counting_task_by_task_gives() -> None:
    compared = 0
    for seed in range(200):
        random = Random(seed)
        content = draw_document(random)
        topologies = content.get("topologies", [content.get("topology", {})])
        if not any(topology.get("fanout") == "divide" for topology in topologies):
            continue
        for topology in topologies:
            topology["fanout"] = "tasks"
        try:
            problem = problem_of(content)
        except InvalidInput:  # with larger shares, a loop never ends
            continue
        plan = draw_assignment(random, problem)
        report, twin = judge(problem, plan, bounded=False), Twin(content, by_name(problem, plan))
        with label_failure(seed=seed):
            assert report.total_traffic == pytest.approx(twin.traffic(0), rel=1e-9, abs=1e-12)
            assert report.inter_node_traffic == pytest.approx(twin.traffic(2), rel=1e-9, abs=1e-12)
        compared += 1
    assert compared >= 20


LOAD_AWARE_SEEDS = range(120)


def load_aware_case(seed: int) -> Case | None:
    """A case whose shuffled streams are load-aware; None where none is."""
    random = Random(seed)
    content = draw_document(random)
    changed = 0
    for topology in content.get("topologies", [content.get("topology", {})]):
        for spec in topology.get("components", {}).values():
            for entry in (e for entries in spec.get("inputs", {}).values() for e in entries):
                if entry["grouping"] in ("shuffle", "none", "custom", "local-or-shuffle"):
                    entry["grouping"] = "load-aware"
                    changed += 1
    if not changed:
        return None
    problem = problem_of(content)
    plan = draw_assignment(random, problem)
    report = judge(problem, plan, bounded=False)
    placed = by_name(problem, plan)
    return Case(content, problem, plan, placed, report, Twin(content, placed))


def test_load_aware_streams_go_where_counting_task_by_task_sends_them() -> None:
    uneven = 0
    for seed in LOAD_AWARE_SEEDS:
        found = load_aware_case(seed)
        if found is None:
            continue
        report, twin = found.report, found.twin
        with label_failure(seed=seed):
            expected = [twin.traffic(level) for level in range(4)]
            assert [
                report.total_traffic,
                report.inter_worker_traffic,
                report.inter_node_traffic,
                report.inter_rack_traffic,
            ] == pytest.approx(expected, rel=1e-6, abs=1e-6)
            for node, row in report.nodes.items():
                assert row["cpu"] == pytest.approx(twin.use(node, "cpu"), rel=1e-6, abs=1e-9)
            found_broken = sorted((v.kind, v.node, v.resource) for v in report.violations)
            assert found_broken == sorted(broken[:3] for broken in twin.violations())
        shuffled = problem_of(found.content | _as_shuffle(found.content))
        uneven += traffic(shuffled, found.plan).inter_node != pytest.approx(expected[2])
    assert uneven > 5  # it makes a difference


def _as_shuffle(content: Content) -> Content:
    return json.loads(
        json.dumps({k: content[k] for k in ("topology", "topologies") if k in content}).replace(
            '"load-aware"', '"shuffle"'
        )
    )
