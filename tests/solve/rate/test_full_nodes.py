"""Nodes filled to capacity: what is found is right, and is the best there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.lab.families import random_sections
from headrace.planner import place
from headrace.solve.instance import Instance
from headrace.solve.rate import full_nodes
from headrace.solve.rate.full_nodes import fill_to_capacity
from tests.solve.small_instances import fits, least_by_brute_force, small_instance


def same_on_all_types(seed: int) -> Instance:
    """Some instance in which a task takes the same CPU on every type."""
    found = small_instance(seed)
    demand = found.demand.copy()
    demand[:, :, 0] = demand[0, :, 0]
    return replace(found, demand=demand)


@pytest.mark.parametrize("seed", range(300))
def test_it_is_what_brute_force_finds(seed: int) -> None:
    instance = same_on_all_types(seed)
    least, x = least_by_brute_force(instance), fill_to_capacity(instance)
    assert (x is None) == np.isinf(least)
    if x is not None:
        assert fits(instance, x)
        assert instance.crossing(x) == pytest.approx(least)


def test_types_that_differ_and_too_many_patterns_are_left_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = next(
        found
        for found in map(same_on_all_types, range(100))
        if len(set(found.node_type.tolist())) > 1 and fill_to_capacity(found) is not None
    )
    demand = instance.demand.copy()
    demand[0, :, 0] *= 0.5
    assert fill_to_capacity(replace(instance, demand=demand)) is None
    monkeypatch.setattr(full_nodes, "MOST_PATTERNS", 0)
    assert fill_to_capacity(instance) is None


def test_a_packing_with_hardly_any_room_left_is_found() -> None:
    """11 nodes, 59 tasks; the search alone reached a rate that leaves less than 1 % of the CPU."""
    report = place(problem_of(random_sections(53)), "headrace", objective="rate").report
    assert report is not None
    assert report.feasible
    assert report.max_rate == pytest.approx(372.1 / 297)
