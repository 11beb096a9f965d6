"""The exact solver against brute force, known optima, and its promises when stopped early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.instances import microbenchmark, unsymmetric
from headrace.solve.proof.column_generation import most_kept
from headrace.solve.proof.exact import least_crossing
from headrace.solve.proof.integer_program import Budget, common_unit
from headrace.solve.symmetry import counts_of, quotient
from tests.solve.small_instances import fits, least_by_brute_force, small_instance

ONE_NODE_OF_5 = (5,) + (4,) * 9


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_small_instances_agree_with_brute_force(first: int) -> None:
    solved = 0
    for seed in range(first, first + 100):
        instance = small_instance(seed)
        least = least_by_brute_force(instance)
        proof = least_crossing(instance)
        if np.isinf(least):
            assert proof.infeasible, f"seed {seed}"
            assert proof.x is None, f"seed {seed}"
            assert not proof.proven, f"seed {seed}"
            continue
        solved += 1
        assert proof.proven, f"seed {seed}"
        assert proof.x is not None
        assert fits(instance, proof.x), f"seed {seed}"
        assert instance.crossing(proof.x) == pytest.approx(least, abs=1e-6), f"seed {seed}"
        assert proof.bound == pytest.approx(least, abs=1e-6), f"seed {seed}"
    assert solved > 50


@pytest.mark.parametrize("first", range(1000, 1200, 100))
def test_column_generation_alone_agrees_with_brute_force(first: int) -> None:
    for seed in range(first, first + 100):
        instance = small_instance(seed)
        q = quotient(instance)
        least = least_by_brute_force(instance)
        kept = most_kept(q, None, Budget(), unit=common_unit(q.edge_weight))
        assert kept.done, f"seed {seed}"
        if np.isinf(least):
            assert kept.placed is None, f"seed {seed}"
        else:
            assert kept.placed is not None, f"seed {seed}"
            x = counts_of(instance, q, kept.placed)
            assert fits(instance, x), f"seed {seed}"
            assert instance.crossing(x) == pytest.approx(least, abs=1e-6), f"seed {seed}"


def test_bounds_hold_whenever_the_solver_is_stopped() -> None:
    stopped = 0
    for seed in range(2000, 2060):
        instance = small_instance(seed)
        q = quotient(instance)
        least = least_by_brute_force(instance)
        for steps in range(4):
            proof = least_crossing(instance, steps=steps)
            assert proof.bound <= least + 1e-6, f"seed {seed}, {steps} steps"
            assert proof.x is None or fits(instance, proof.x), f"seed {seed}, {steps} steps"
            kept = most_kept(q, None, Budget(steps), unit=common_unit(q.edge_weight))
            assert instance.total_weight - kept.upper <= least + 1e-6, f"seed {seed}, {steps} steps"
            stopped += not kept.done
    assert stopped > 60


@pytest.mark.parametrize(
    ("layout", "tasks", "cluster", "least"),
    [
        ("diamond", 10, "HOM", 10),
        ("star", 18, "HOM", 44),
        ("star", 28, "HOM", 84),
        ("diamond", 28, ONE_NODE_OF_5, 137),
        ("star", 28, ONE_NODE_OF_5, 83),  # the thesis prints 84
        ("diamond", 30, "HET", 146),
        ("star", 30, "HET", 86),
        (
            "linear",
            32,
            "HOM",
            28,
        ),  # every node holds two operators: 7 of the 15 joints are cut, 4 pairs each
    ],
)
def test_published_optima_of_the_microbenchmarks(
    layout: str, tasks: int, cluster: str | tuple[int, ...], least: float
) -> None:
    instance = microbenchmark(layout, tasks, cluster)
    proof = least_crossing(instance)
    assert proof.proven
    assert proof.x is not None
    assert fits(instance, proof.x)
    assert instance.crossing(proof.x) == proof.bound == least


def test_an_unsymmetric_instance_is_proven_and_the_same_twice() -> None:
    instance = unsymmetric(1, "sparse", tasks=30, nodes=5)
    first, second = least_crossing(instance), least_crossing(instance)
    assert first.proven
    assert first.x is not None
    assert second.x is not None
    assert fits(instance, first.x)
    assert first.bound == instance.crossing(first.x) == second.bound
    assert (first.x == second.x).all()


def test_a_start_is_kept_when_there_is_no_time_and_improved_when_there_is() -> None:
    instance = unsymmetric(1, "operators", tasks=24, nodes=4)
    start = first_fit_decreasing(instance.demand[0, :, 0], instance.capacity[:, 0])
    assert fits(instance, start)
    hurried = least_crossing(instance, start=start, deadline=lambda: True)
    assert hurried.x is not None
    assert (hurried.x == start).all()
    assert not hurried.proven
    assert hurried.stopped == "seconds"
    patient = least_crossing(instance, start=start)
    assert patient.proven
    assert hurried.bound <= patient.bound < instance.crossing(start)


def test_more_steps_never_give_a_worse_bound_and_say_that_they_stopped() -> None:
    instance = unsymmetric(2, "sparse", tasks=30, nodes=5)
    least = least_crossing(instance).bound
    for steps in (1, 30, 60):
        proof = least_crossing(instance, steps=steps)
        assert proof.bound <= least + 1e-6
        assert proof.proven or proof.stopped == "steps"


def test_a_capacity_met_exactly_is_enough_and_a_hair_less_is_not() -> None:
    instance = microbenchmark("linear", 10, (5, 5))
    thirds = replace(instance, demand=instance.demand / 3, capacity=np.array([[5 / 3], [5 / 3]]))
    assert least_crossing(thirds).proven
    assert least_crossing(replace(thirds, capacity=np.array([[5 / 3], [5 / 3 - 1e-6]]))).infeasible


def test_tasks_that_fit_nowhere_together_are_infeasible_even_where_the_sum_fits() -> None:
    instance = microbenchmark("linear", 10, (5, 5))
    bulky = replace(
        instance, demand=np.full_like(instance.demand, 1.9), capacity=np.array([[9.5], [9.5]])
    )
    assert least_crossing(bulky).proven
    assert least_crossing(replace(bulky, capacity=np.array([[9.4], [9.8]]))).infeasible


def test_no_traffic_and_no_tasks_are_solved() -> None:
    silent = replace(microbenchmark("linear", 10, "HOM"), edge_weight=np.zeros(16))
    assert least_crossing(silent).proven
    assert least_crossing(silent).bound == 0.0
    empty = replace(silent, count=np.zeros_like(silent.count))
    proof = least_crossing(empty)
    assert proof.proven
    assert proof.x is not None
    assert not proof.x.any()


def first_fit_decreasing(load: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    x = np.zeros((len(load), len(capacity)), dtype=np.int64)
    for c in np.argsort(-load):
        x[c, np.flatnonzero(load @ x + load[c] <= capacity)[0]] = 1
    return x
