"""The judge against answers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.checks.problems import Content, problem_of
from headrace.errors import InvalidInput
from headrace.judge.report import Report, gap, judge
from headrace.model.problem import Assignment


def judged(content: Content, plan: list[tuple[int, int]], *, objective: str = "traffic") -> Report:
    """Judge a plan that lists node and slot of every task, by number."""
    node, slot = np.array(plan, dtype=np.int64).T
    return judge(problem_of(content), Assignment(node, slot), objective=objective)


def chain(
    target: Content,
    *,
    tasks: tuple[int, int] = (2, 4),
    grouping: object = "shuffle",
    source: Content | None = None,
) -> Content:
    """Two components joined by one stream of 120 tuples/s."""
    components: Content = {
        "a": {"spout": True, "tasks": tasks[0], "rate": 120, **(source or {})},
        "b": {"tasks": tasks[1], "inputs": {"a": grouping}, **target},
    }
    return {"components": components}


def nodes(count: int = 3, **facts: Any) -> Content:
    return {"nodes": {f"n{n}": {"slots": 4, **facts} for n in range(1, count + 1)}}


def test_shuffled_tuples_cross_in_proportion_to_the_tasks_elsewhere() -> None:
    # a.1 on n1; a.2 on n2; b: two on n1 (one beside a.1), one on n2 (not beside a.2), one on n3.
    # Each pair carries 120 / 2 / 4 = 15.
    plan = [(0, 0), (1, 0), (0, 0), (0, 1), (1, 1), (2, 0)]
    report = judged({"topology": chain({}), "cluster": nodes()}, plan)
    assert report.total_traffic == pytest.approx(8 * 15)
    assert report.inter_worker_traffic == pytest.approx(7 * 15)  # all but a.1 -> b.1
    assert report.inter_node_traffic == pytest.approx(
        5 * 15
    )  # a.1 keeps two of four at home, a.2 one
    assert report.nodes_used == 3
    assert report.workers_used == 5


def test_network_cost_is_what_the_file_says_and_uplinks_are_shown() -> None:
    cluster: Content = {
        "nodes": {"n1": {"rack": "r1"}, "n2": {"rack": "r1"}, "n3": {"rack": "r2"}},
        "network": {"worker": 0.5, "node": 2, "rack": 7},
        "racks": {"r2": {"uplink_mbps": 16}},
    }
    spout = {"spout": True, "rate": 1000, "bytes": 500}
    bolt = {"inputs": {"a": "shuffle"}, "tasks": 4}
    content: Content = {"topology": {"name": "t", "components": {"a": spout, "b": bolt}}}
    where = [(0, 0), (0, 0), (0, 1), (1, 0), (2, 0)]
    report = judged(content | {"cluster": cluster}, where)
    assert report.network_cost == 0 * 250 + 0.5 * 250 + 2 * 250 + 7 * 250
    mbps = 250 * 500 * 8 / 1e6
    assert dict(report.racks["r1"]) == {
        "nodes": 2,
        "tasks": 4,
        "out_mbps": mbps,
        "in_mbps": 0,
        "uplink_mbps": None,
    }
    assert (report.racks["r2"]["in_mbps"], report.racks["r2"]["uplink_mbps"]) == (mbps, 16)
    assert not any("uplink" in note for note in report.notes)
    cluster["racks"] = {"r1": {"uplink_mbps": 0.9}, "r2": {"uplink_mbps": 0.5}}
    narrow = judged(content | {"cluster": cluster}, where)
    assert [note for note in narrow.notes if "uplink" in note] == [
        "rack r1: uplink out needs 1 Mbit/s, there is 0.9",
        "rack r2: uplink in needs 1 Mbit/s, there is 0.5",
    ]
    assert narrow.feasible


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"network": {"node": 2, "rack": 1}}, "a higher level may not cost less"),
        ({"racks": {"r3": {"uplink_mbps": 1}}}, "no node is in rack `r3`"),
    ],
)
def test_a_network_that_cannot_be_is_refused(facts: Content, said: str) -> None:
    cluster = {"nodes": {"n1": {"rack": "r1"}, "n2": {"rack": "r2"}}, **facts}
    with pytest.raises(InvalidInput, match=said):
        judged({"tasks": {"a": {}}, "cluster": cluster}, [(0, 0)])


def test_network_distance_counts_workers_nodes_and_racks() -> None:
    cluster = {"nodes": {"n1": {"rack": "r1"}, "n2": {"rack": "r1"}, "n3": {"rack": "r2"}}}
    content: Content = {
        "tasks": {name: {} for name in "abcde"},
        "traffic": [["a", t, w] for t, w in zip("bcde", (1, 10, 100, 1000), strict=True)],
    }
    report = judged(content | {"cluster": cluster}, [(0, 0), (0, 0), (0, 1), (1, 0), (2, 0)])
    assert report.network_distance == 0 * 1 + 1 * 10 + 2 * 100 + 3 * 1000
    assert (report.inter_worker_traffic, report.inter_node_traffic, report.inter_rack_traffic) == (
        1110,
        1100,
        1000,
    )


def test_all_grouping_sends_every_tuple_to_every_task() -> None:
    report = judged(
        {"topology": chain({}, grouping="all"), "cluster": nodes()},
        [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (2, 0)],
    )
    assert report.total_traffic == pytest.approx(4 * 120)
    assert report.inter_node_traffic == pytest.approx(2 * 120)


def test_global_grouping_sends_every_tuple_to_the_first_task() -> None:
    report = judged(
        {"topology": chain({}, grouping="global"), "cluster": nodes()},
        [(0, 0), (1, 0), (0, 0), (1, 0), (1, 0), (2, 0)],
    )
    assert report.total_traffic == pytest.approx(120)
    assert report.inter_node_traffic == pytest.approx(60)


def test_local_or_shuffle_stays_in_the_worker_where_it_can() -> None:
    # a.1 shares its worker with b.1 and keeps its 60 there; a.2's worker has no b, so its 60 go to
    # all four, three of them on other nodes.
    plan = [(0, 0), (1, 0), (0, 0), (0, 1), (1, 1), (2, 0)]
    report = judged({"topology": chain({}, grouping="local-or-shuffle"), "cluster": nodes()}, plan)
    assert report.total_traffic == pytest.approx(120)
    assert report.inter_worker_traffic == pytest.approx(60)
    assert report.inter_node_traffic == pytest.approx(45)


def test_measured_shares_weigh_tasks_and_their_cpu() -> None:
    content: Content = {
        "topology": chain({}, tasks=(1, 2)),
        "cluster": nodes(2, cpu=100),
        "profile": {"b": {"*": {"cpu_ms": 1, "cpu_fixed": 3}}},
    }
    content["streams"] = [{"from": "a", "to": "b", "shares": [3, 1]}]
    report = judged(content, [(0, 0), (0, 0), (1, 0)])
    assert report.inter_node_traffic == pytest.approx(30)
    assert report.nodes["n1"]["cpu"] == pytest.approx(90 * 1 / 10 + 3)
    assert report.nodes["n2"]["cpu"] == pytest.approx(30 * 1 / 10 + 3)
    assert report.max_rate == pytest.approx((100 - 3) / 9)


def test_max_rate_leaves_out_what_others_take_and_what_does_not_grow() -> None:
    # n1: 120 tuples/s x 2 ms = 24 points, and 10 fixed; 100 - 40 taken - 10 = 50 points for the
    # growing part.
    content: Content = {
        "topology": chain({}, tasks=(1, 1)),
        "cluster": nodes(1, cpu=100, taken={"cpu": 40}),
    }
    content["profile"] = {"b": {"*": {"cpu_ms": 2, "cpu_fixed": 10}}}
    report = judged(content, [(0, 0), (0, 0)])
    assert report.max_rate == pytest.approx(50 / 24)
    assert str(report.bottleneck) == "node n1: cpu"
    assert report.throughput == pytest.approx(240)


def test_a_node_that_is_full_at_no_load_allows_no_rate_at_all() -> None:
    content: Content = {
        "topology": chain({}, tasks=(1, 1)),
        "cluster": nodes(2, cpu=50),
        "profile": {"a": {"*": {"cpu_ms": 0, "cpu_fixed": 60}}},
    }
    report = judged(content, [(0, 0), (1, 0)])
    assert report.max_rate == 0
    assert str(report.bottleneck) == "node n1: cpu"
    assert report.throughput == 0


def test_a_node_that_is_just_full_at_no_load_is_no_limit_for_others() -> None:
    content: Content = {
        "topology": {"components": {"x": {"spout": True, "tasks": 3}}},
        "cluster": nodes(1, cpu=0.3),
    }
    content["profile"] = {
        "x": {"*": {"cpu_ms": 0, "cpu_fixed": 0.1}}
    }  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    report = judged(content, [(0, 0)] * 3)
    assert report.feasible
    assert report.max_rate is None


def test_bandwidth_limits_the_rate_in_both_directions_apart() -> None:
    # 120 tuples/s x 1000 bytes = 0.96 Mbit/s out of n1, into n2 and n3 a half each.
    content: Content = {"topology": chain({}, tasks=(1, 2), source={"bytes": 1000})}
    report = judged(content | {"cluster": nodes(bandwidth_mbps=0.6)}, [(0, 0), (1, 0), (2, 0)])
    assert report.max_rate == pytest.approx(0.6 / 0.96)
    assert str(report.bottleneck) == "node n1: bandwidth out"
    assert [(v.kind, v.node, v.resource) for v in report.violations] == [
        ("overload", "n1", "bandwidth out")
    ]


def test_nothing_that_limits_means_no_limit() -> None:
    assert judged({"topology": chain({}), "cluster": nodes()}, [(0, 0)] * 6).max_rate is None


@pytest.mark.parametrize("workers", [7, 13, 40, 77, 100])
def test_what_stays_on_one_node_leaves_no_dust_on_its_network(workers: int) -> None:
    content: Content = {
        "topology": chain({}, tasks=(300, 170), source={"bytes": 100}),
        "cluster": nodes(2, slots=100, bandwidth_mbps=1),
    }
    report = judged(content, [(1, i % workers) for i in range(470)])
    assert report.inter_node_traffic == 0
    assert report.nodes["n2"]["out_mbps"] == 0
    assert report.nodes["n2"]["in_mbps"] == 0
    assert report.max_rate is None
    assert report.batch_seconds is None


def test_a_trickle_counts_beside_a_torrent() -> None:
    components = {
        "torrent": {"spout": True, "rate": 1e12}, "drain": {"inputs": {"torrent": "shuffle"}},
        "trickle": {"spout": True, "rate": 1}, "cup": {"inputs": {"trickle": "shuffle"}},
    }  # fmt: skip
    report = judged(
        {"topology": {"components": components}, "cluster": nodes()},
        [(0, 0), (0, 0), (1, 0), (2, 0)],
    )
    assert report.inter_node_traffic == 1


def test_who_sends_out_of_a_worker_pays_for_it() -> None:
    # a.1 sends 60: 15 to each b. One beside it, one on its node (0.5 ms), two on other nodes (2
    # ms).
    options = {"judge": {"send_worker_cpu_ms": 0.5, "send_node_cpu_ms": 2}}
    plan = [(0, 0), (1, 1), (0, 0), (0, 1), (1, 1), (2, 0)]
    report = judged({"topology": chain({}), "cluster": nodes(cpu=100), "options": options}, plan)
    assert report.nodes["n1"]["cpu"] == pytest.approx((15 * 0.5 + 30 * 2) / 10)
    assert report.nodes["n2"]["cpu"] == pytest.approx(
        45 * 2 / 10
    )  # a.2 has one b beside it and three elsewhere
    assert report.nodes["n3"]["cpu"] == 0
    assert report.max_rate == pytest.approx(100 / 9)


def test_the_node_that_receives_pays_for_its_end() -> None:
    # As above. n1 gets 30 of a.2's tuples, n2 15 of a.1's, n3 15 of each.
    options = {"judge": {"send_node_cpu_ms": 2, "receive_node_cpu_ms": 1}}
    plan = [(0, 0), (1, 1), (0, 0), (0, 1), (1, 1), (2, 0)]
    report = judged({"topology": chain({}), "cluster": nodes(cpu=100), "options": options}, plan)
    points = [report.nodes[name]["cpu"] for name in ("n1", "n2", "n3")]
    assert points == pytest.approx([(30 * 2 + 30) / 10, (45 * 2 + 15) / 10, 30 / 10])


def test_a_batch_takes_the_slowest_node_of_every_stage_in_waves() -> None:
    # Stage a: one task of 30 points: 0.3 s. Stage b: n1 has three tasks of 50 points on two cores:
    # two waves, 1.0 s; n2 one: 0.5 s. n2's quarter of the input is 30 x 1000 x 8 bit = 0.24 Mbit
    # over 0.48 Mbit/s: 0.5 s on n2 in and on n1 out, so n1: 1.0 + 0.5.
    content: Content = {
        "topology": chain({"cpu": 50}, tasks=(1, 4), source={"cpu": 30, "bytes": 1000})
    }
    content |= {
        "cluster": nodes(2, cpu=200, bandwidth_mbps=0.48),
        "options": {"judge": {"batch_interval_s": 2, "batch_overhead_s": 0.1}},
    }
    report = judged(content, [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)], objective="batch")
    assert report.batch_seconds == pytest.approx(2 * (0.3 + 1.5) + 0.1)
    assert str(report.bottleneck) == "stage b on node n1"


def test_weighted_utilisation_gives_more_weight_to_the_faster_type() -> None:
    # Kind 1 costs 1 ms on old and 3 ms on new machines: weights 3/4 and 1/4. Kind 2 costs 2 and 2:
    # a half each. Mean: 5/8 and 3/8.
    components = {
        "a": {"spout": True, "rate": 100},
        "b": {"inputs": {"a": "shuffle"}},
        "c": {"inputs": {"b": "shuffle"}},
    }
    same = {"old": {"cpu_ms": 1}, "new": {"cpu_ms": 3}}
    content: Content = {
        "topology": {"components": components},
        "profile": {"a": same, "b": same, "c": {"old": {"cpu_ms": 2}, "new": {"cpu_ms": 2}}},
        "cluster": {
            "nodes": {
                "o1": {"type": "old", "cpu": 100},
                "o2": {"type": "old", "cpu": 100},
                "n1": {"type": "new", "cpu": 50},
            }
        },
    }
    # a on o1: 10 of 100; b on n1: 30 of 50; c on o2: 20 of 100.
    report = judged(content, [(0, 0), (2, 0), (1, 0)])
    assert report.weighted_utilisation == pytest.approx(5 / 8 * (0.1 + 0.2) / 2 + 3 / 8 * 0.6)
    assert report.balance == pytest.approx(float(np.std([0.1, 0.2, 0.6])))


def test_only_machines_in_use_cost() -> None:
    content: Content = {
        "topology": chain({}, tasks=(1, 1)),
        "catalog": {"s": {"price": 0.25}, "l": {"price": 2}},
    }
    content["cluster"] = {"nodes": {"n1": {"type": "s"}, "n2": {"type": "s"}, "n3": {"type": "l"}}}
    assert judged(content, [(0, 0), (1, 0)]).cost == 0.5
    assert judged(content, [(0, 0), (2, 0)]).cost == 2.25


def test_every_kind_of_broken_rule_is_told_apart() -> None:
    topologies = [
        {
            "name": "one",
            "worker_max_heap_mb": 100,
            "components": {"x": {"spout": True, "tasks": 2, "memory_mb": 60, "apart": True}},
        },
        {
            "name": "two",
            "components": {"y": {"spout": True, "tasks": 2, "cpu": 70, "nodes": ["n2"]}},
        },
    ]
    cluster = {
        "nodes": {
            "n1": {"slots": 2, "cpu": 100, "taken": {"slots": [1]}},
            "n2": {"slots": 1, "cpu": 100},
        }
    }
    report = judged(
        {"topologies": topologies, "cluster": cluster}, [(0, 0), (0, 0), (0, 1), (0, 2)]
    )
    assert {
        (v.kind, v.node, v.resource, v.needed, v.available, v.task) for v in report.violations
    } == {
        ("overload", "n1", "cpu", 140, 100, None),
        ("slot taken", "n1", "slots", 1, 0, None),
        ("no such slot", "n1", "slots", 3, 2, None),
        ("worker heap", "n1", "memory_mb", 120, 100, None),
        ("pinned", "n1", "nodes", 1, 0, "two/y.1"),
        ("pinned", "n1", "nodes", 1, 0, "two/y.2"),
        ("apart", "n1", "apart", 2, 1, None),
    }
    shared = judged(
        {"topologies": topologies, "cluster": cluster}, [(0, 0), (1, 0), (1, 0), (1, 0)]
    )
    assert ("slot shared", "n2") in {(v.kind, v.node) for v in shared.violations}
    assert not report.feasible


def test_a_full_node_is_not_overloaded() -> None:
    content: Content = {
        "topology": {"components": {"x": {"spout": True, "tasks": 3, "cpu": 33.3}}},
        "cluster": nodes(1, cpu=99.9),
    }
    assert judged(content, [(0, 0)] * 3).feasible
    content["cluster"] = nodes(1, cpu=99.8)
    assert not judged(content, [(0, 0)] * 3).feasible


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (10, 10, 0),
        (0, 0, 0),
        (10, 5, 0.5),
        (5, 10, 0.5),
        (3, 0, 1),
        (None, 1, None),
        (1, None, None),
    ],
)
def test_the_gap_is_relative_to_the_larger_of_value_and_bound(
    value: float | None, limit: float | None, expected: float | None
) -> None:
    assert gap(value, limit) == expected


def test_a_task_sustains_no_more_than_its_one_thread() -> None:
    # 150 of 400 points: the node would carry 400 / 150 = 2.67 times that, one thread 100 / 150.
    content = {"tasks": {"t": {"cpu": 150}}, "cluster": nodes(1, cpu=400)}
    report = judged(content, [(0, 0)], objective="rate")
    assert report.max_rate == pytest.approx(100 / 150)
    assert str(report.bottleneck) == "task t: one thread"
    assert report.feasible  # the file asks for 150 points, and the node has them
    assert report.bound.kind == "thread"
    assert report.gap == 0
    assert report.survives.rate == pytest.approx(100 / 150)


def test_a_thread_fills_with_what_grows_and_what_does_not() -> None:
    # 120 tuples/s over 4 tasks at 20 ms: 60 points each, and 10 at no load: (100 - 10) / 60 = 1.5.
    profile = {"b": {"*": {"cpu_ms": 20, "cpu_fixed": 10}}}
    content = {"topology": chain({}), "cluster": nodes(cpu=1000), "profile": profile}
    report = judged(content, [(0, 0)] * 6)
    assert report.max_rate == pytest.approx(1.5)
    assert str(report.bottleneck) == "task b.1: one thread"
    assert report.throughput == pytest.approx(240)  # at the given rates, which it sustains


def test_cpu_that_does_not_grow_leaves_no_task_short_of_its_thread() -> None:
    profile = {"b": {"*": {"cpu_fixed": 150}}}
    content = {"topology": chain({}), "cluster": nodes(cpu=1000), "profile": profile}
    report = judged(content, [(0, 0)] * 6)
    assert report.max_rate is None
    assert report.bottleneck is None
