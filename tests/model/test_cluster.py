"""Nodes, their types and what is measured about them; what a task costs on them."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.components import expand
from headrace.model.problem import CPU, MEMORY

from .conftest import Build

APP = (
    "topology: {components: {a: {spout: true, rate: 100, cpu: 7, memory_mb: 64, tasks: 2}, b: "
    "{inputs: {a: shuffle}, tasks: 4}}}\n"
)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("n", ["n"]),
        ("n-{1..3}", ["n-1", "n-2", "n-3"]),
        ("n{08..10}", ["n08", "n09", "n10"]),
        ("n{0..1}", ["n0", "n1"]),
        ("r{1..2}n{1..2}x", ["r1n1x", "r1n2x", "r2n1x", "r2n2x"]),
        ("n{2..2}", ["n2"]),
        ("n{a..b}", ["n{a..b}"]),
    ],
)
def test_a_range_stands_for_its_names(pattern: str, names: list[str]):
    assert list(expand(pattern)) == names


def test_what_a_node_does_not_say_does_not_limit(built: Build):
    problem = built(APP + "cluster: {nodes: {n: {}}}")
    assert problem.capacity.tolist() == [[np.inf, np.inf]]
    assert problem.bandwidth_mbps.tolist() == [np.inf]
    assert problem.slots.tolist() == [4]


def test_taken_slots_and_resources_are_not_free(built: Build):
    text = (
        "cluster: {nodes: {n: {cpu: 100, memory_mb: 50, slots: 3, taken: {slots: [1], cpu: 30, "
        "memory_mb: 70}}, m: {cpu: 1, slots: 1}}}"
    )
    problem = built(APP + text)
    assert problem.free.tolist() == [[70, 0], [1, np.inf]]
    assert problem.free_slots.tolist() == [2, 1]
    assert problem.slot_taken.tolist() == [[False, True, False], [False, True, True]]


def test_measured_facts_replace_stated_ones_and_are_noted(built: Build):
    stated = "cluster: {nodes: {n1: {type: big, cpu: 100}, n2: {cpu: 50}}}\n"
    problem = built(
        APP + stated + "inventory: {n1: {type: small, cpu: 80, slots: 9, rack: r1}, n2: {cpu: 50}}"
    )
    assert problem.capacity[:, CPU].tolist() == [80, 50]
    assert problem.slots.tolist() == [9, 4]
    assert problem.types == ("small", "")
    assert problem.racks == ("r1", "")
    # what the cluster did not state is no override
    assert problem.notes == ("inventory: n1.type big -> small", "inventory: n1.cpu 100.0 -> 80.0")


def test_an_inventory_can_be_the_cluster(built: Build):
    assert built(APP + "inventory: {n1: {cpu: 80}}").nodes == ("n1",)


def test_further_resources_have_an_axis_of_their_own(built: Build):
    text = """
topology: {components: {a: {spout: true, resources: {gpu: 1}}}}
cluster: {nodes: {n1: {resources: {gpu: 2, disk: 5}}, n2: {}}}
"""
    problem = built(text)
    assert problem.resources == ("cpu", "memory_mb", "disk", "gpu")
    assert problem.demand.tolist() == [[0, 0, 0, 1]]
    assert problem.capacity[:, 2:].tolist() == [[5, 2], [np.inf, np.inf]]


def test_a_profile_costs_rate_times_milliseconds_plus_a_fixed_part(built: Build):
    text = (
        "cluster: {nodes: {n1: {type: big}, n2: {type: small}}}\n"
        'profile: {b: {big: {cpu_ms: 2, cpu_fixed: 3}, "*": {cpu_ms: 5}}}'
    )
    problem = built(APP + text)
    # 100 tuples/s over 4 tasks: 25 * 2 / 10 + 3 on big, 25 * 5 / 10 on small; `a` is not profiled
    assert problem.task_cpu(0).tolist() == [7, 7, 8, 8, 8, 8]
    assert problem.task_cpu(1).tolist() == [7, 7, 12.5, 12.5, 12.5, 12.5]
    assert problem.mean_demand[:, CPU] == pytest.approx([7, 7, 10.25, 10.25, 10.25, 10.25])
    assert problem.task_demand(0)[:, MEMORY].tolist() == [64, 64, 0, 0, 0, 0]


def test_a_profile_goes_before_a_stated_cpu_and_is_noted(built: Build):
    problem = built(APP + 'cluster: {nodes: {n: {}}}\nprofile: {a: {"*": {cpu_ms: 1}}}')
    assert problem.task_cpu(0)[:2].tolist() == [5, 5]
    assert problem.notes == ("profile: a.cpu 7 -> measured cost per tuple",)


def test_a_profile_of_thread_points_alone_is_no_cost_per_tuple(built: Build):
    text = (
        'cluster: {nodes: {n: {}}}\nprofile: {a: {"*": {threads: {1: {rate: 2, cpu: 6.73, memory: '
        "23.9}}}}}"
    )
    problem = built(APP + text)
    assert problem.profiled.tolist() == [False, False]
    assert problem.task_cpu(0)[0] == 7


def test_uneven_shares_cost_unevenly(built: Build):
    text = (
        'cluster: {nodes: {n: {}}}\nprofile: {b: {"*": {cpu_ms: 1}}}\n'
        "streams: [{from: a, to: b, shares: [1, 0, 2, 1]}]"
    )
    assert built(APP + text).task_cpu(0)[2:].tolist() == [2.5, 0, 5, 2.5]


def test_pinned_components_may_use_their_nodes_alone(built: Build):
    problem = built(
        APP.replace("tasks: 4", 'tasks: 4, nodes: ["n-{2..3}"], apart: true')
        + 'cluster: {nodes: {"n-{1..3}": {}}}'
    )
    assert problem.allowed is not None
    assert problem.allowed.tolist() == [[True, True, True], [False, True, True]]
    assert problem.apart.tolist() == [False, True]


def test_prices_come_from_the_catalog_by_type(built: Build):
    problem = built(
        APP + "cluster: {nodes: {n1: {type: a}, n2: {type: b}}}\ncatalog: {b: {price: 3}}"
    )
    assert problem.price == pytest.approx([np.nan, 3], nan_ok=True)


def test_an_absent_number_of_workers_is_one_per_usable_node(built: Build):
    nodes = (
        "cluster: {nodes: {n1: {}, n2: {slots: 0}, n3: {slots: 1, taken: {slots: [0]}}, n4: {}, "
        "n5: {}}}"
    )
    assert built(APP + nodes).worker_count(0) == 3
    assert (
        built(
            APP.replace("tasks: 4", "tasks: 1").replace("tasks: 2", "tasks: 1") + nodes
        ).worker_count(0)
        == 2
    )
    assert built(APP.replace("topology: {", "topology: {workers: 9, ") + nodes).worker_count(0) == 9
