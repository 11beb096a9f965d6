"""The last step for few nodes: the fewest there are, whatever the search ended with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.lab.families import build_problem, cases
from headrace.model.arrays import Ints
from headrace.model.request import Request
from headrace.place.building_blocks.fewest_nodes import drop_more_nodes
from headrace.planner import place
from headrace.solve.proof.fewest_nodes import least_nodes, pack_on_fewest
from headrace.solve.proof.integer_program import Budget
from tests.failures import label_failure
from tests.place.building_blocks.test_exact_finish import PAIRS, TORN, list_plans
from tests.solve.small_instances import fits, small_instance


def nodes_of(x: Ints) -> int:
    return int((x.sum(axis=0) > 0).sum())


def test_from_the_most_nodes_to_the_fewest() -> None:
    fewer = 0
    for seed in range(60):
        instance = small_instance(seed)
        plans = sorted(list_plans(instance), key=nodes_of)
        if not plans:
            continue
        with label_failure(seed=seed):
            x = drop_more_nodes(instance, plans[-1], Request())
            assert fits(instance, x)
            assert nodes_of(x) == nodes_of(plans[0]) >= least_nodes(instance)
        fewer += nodes_of(plans[0]) < nodes_of(plans[-1])
    assert fewer > 10


def test_nothing_is_looked_for_below_what_the_tasks_need() -> None:
    assert least_nodes(PAIRS) == 2
    assert drop_more_nodes(PAIRS, TORN, Request()) is TORN
    assert pack_on_fewest(PAIRS, 1, Budget(1)) is None


def test_a_number_of_steps_leaves_the_search_as_it_is() -> None:
    roomy = replace(PAIRS, capacity=np.full((2, 1), 4.0))
    assert drop_more_nodes(roomy, TORN, Request(steps=10)) is TORN
    assert nodes_of(drop_more_nodes(roomy, TORN, Request())) == 1


# The search alone ends with one node more: these loads fill the nodes to the last percent.
@pytest.mark.parametrize(("seed", "fewest"), [(0, 5), (98, 8)])
def test_random_problems_that_the_search_alone_does_not_pack(seed: int, fewest: int) -> None:
    [sections] = [case.sections for case in cases("random") if case.name == f"seed {seed}"]
    plan = place(build_problem(sections), "headrace", objective="nodes", bounded=False)
    assert plan.report.feasible
    assert plan.report.nodes_used <= fewest
