"""Eskandari's model task by task: against brute force, against ours, and stopped early."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.instances import microbenchmark
from headrace.errors import Unsupported
from headrace.model.build import build
from headrace.model.examples import example
from headrace.model.read import read, validated
from headrace.planner import place
from headrace.solve.proof.exact import least_crossing
from headrace.solve.proof.task_by_task import least_crossing_by_task, split_classes
from headrace.solve.symmetry import quotient
from tests.solve.small_instances import fits, least_by_brute_force, small_instance


def test_small_instances_agree_with_brute_force() -> None:
    solved = infeasible = 0
    for seed in range(150):
        instance = small_instance(seed)
        too_large = instance.memory > instance.heap[instance.group]
        if too_large.any() or quotient(instance).slots_matter:
            continue  # the model knows no slots and no heaps
        least = least_by_brute_force(instance)
        proof = least_crossing_by_task(instance)
        if np.isinf(least):
            assert proof.infeasible, f"seed {seed}"
            infeasible += 1
            continue
        assert proof.proven, f"seed {seed}"
        assert proof.x is not None
        assert fits(instance, proof.x), f"seed {seed}"
        assert proof.bound == pytest.approx(least, abs=1e-6), f"seed {seed}"
        solved += 1
    assert solved > 40
    assert infeasible > 3


def test_single_tasks_have_all_the_traffic_of_their_classes() -> None:
    instance = microbenchmark("diamond", 12, "HOM")
    tasks, class_of = split_classes(instance)
    assert len(tasks.edge_a) == 2 * 4 * 4  # source and sink of 4 with 4 inner tasks each
    assert tasks.total_weight == instance.total_weight
    assert np.bincount(class_of).tolist() == instance.count.tolist()


@pytest.mark.parametrize("layout", ["linear", "diamond"])
def test_both_models_have_the_same_optimum(layout: str) -> None:
    instance = microbenchmark(layout, 10, "HET")
    literal, ours = least_crossing_by_task(instance), least_crossing(instance)
    assert literal.proven
    assert literal.bound == pytest.approx(ours.bound)


def test_stopped_early_its_bound_still_holds() -> None:
    instance = microbenchmark("star", 20, "HOM")
    proof = least_crossing_by_task(instance, nodes=1)
    assert not proof.proven
    assert proof.stopped == "steps"
    assert proof.bound <= 52


def test_optimal_solves_it_on_request_and_the_judge_keeps_the_proof() -> None:
    files = [
        example("eskandari", "micro", f"{part}.yaml") for part in ("diamond-10", "homogeneous")
    ]
    plan = place(build(read(files)), "optimal", options={"model": "thesis"})
    assert plan.report.inter_node_traffic == 10
    assert plan.report.bound.proven


def test_where_heaps_could_matter_it_refuses() -> None:
    sections = {
        "format": "headrace/1",
        "topology": {"worker_max_heap_mb": 300},
        "tasks": {f"t{i}": {"memory_mb": 200} for i in range(4)},
        "cluster": {"nodes": {"n1": {"slots": 2}, "n2": {"slots": 2}}},
    }
    with pytest.raises(Unsupported, match="no worker heaps"):
        place(build(validated(sections, {})), "optimal", options={"model": "thesis"})
