"""What if: every change does what it says, to a copy, and a wrong one names what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import Infeasible, InvalidInput
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.read import Inputs, read, validated
from headrace.model.what_if import WhatIf, apply_change, multiply_rates

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICKSTART = str(EXAMPLES / "quickstart.yaml")
CAO = [str(EXAMPLES / "cao" / name) for name in ("flight.yaml", "vm-types.yaml")]


def quickstart() -> Inputs:
    return read([QUICKSTART])


def inputs_of(content: dict[str, Any]) -> Inputs:
    return validated({"format": "headrace/1", **content}, {})


def test_a_value_is_set_and_the_given_files_stay_as_they_are() -> None:
    before = quickstart()
    after = apply_change(
        before,
        WhatIf(
            settings=(("topology.components.split.tasks", 12), ("profile.split.big.cpu_ms", 0.2))
        ),
    )
    assert after.document.topology is not None
    assert before.document.topology is not None
    assert (
        before.document.topology.components["split"].tasks,
        after.document.topology.components["split"].tasks,
    ) == (4, 12)
    assert after.document.profile is not None
    assert after.document.profile["split"]["big"].cpu_ms == 0.2


def test_one_node_of_a_range_can_differ() -> None:
    nodes = nodes_of(
        apply_change(quickstart(), WhatIf(settings=(("cluster.nodes.small-2.cpu", 900),)))
    )
    assert [nodes[f"small-{i}"].cpu for i in (1, 2, 3)] == [200, 900, 200]
    together = nodes_of(
        apply_change(quickstart(), WhatIf(settings=(("cluster.nodes.small-{1..3}.cpu", 900),)))
    )
    assert [together[f"small-{i}"].cpu for i in (1, 2, 3)] == [900, 900, 900]


def test_keys_that_the_file_leaves_out_names_with_dots_and_entries_of_lists_can_be_set() -> None:
    content = {
        "topologies": [
            {
                "name": "a",
                "components": {"in.put": {"spout": True}, "in": {"inputs": {"in.put": "shuffle"}}},
            },
            {"name": "b", "components": {"x": {"spout": True}}},
        ],
        "cluster": {"nodes": {"n": {}}},
    }
    what_if = WhatIf(
        settings=(
            ("topologies.a.components.in.put.rate", 7),
            ("topologies[1].priority", 3),
            ("options.judge.x", 1),
        )
    )
    document = apply_change(inputs_of(content), what_if).document
    assert document.topologies is not None
    assert document.topologies[0].components["in.put"].rate == 7
    assert document.topologies[1].priority == 3
    assert document.options == {"judge": {"x": 1}}


def test_what_was_measured_task_by_task_becomes_totals_where_a_count_is_changed() -> None:
    problem = build(
        apply_change(quickstart(), WhatIf(settings=(("topology.components.count.tasks", 12),)))
    )
    assert problem.tasks[problem.components.index("count")] == 12
    assert all(s.shares is None for s in problem.streams)  # they were of six tasks
    content = {
        "topology": {
            "components": {
                "s": {"spout": True, "rate": 10},
                "b": {"tasks": 2, "inputs": {"s": "shuffle"}},
            }
        },
        "traffic": [["s.1", "b.1", 3, 30], ["s.1", "b.2", 7, 90]],
        "cluster": {"nodes": {"n": {}}},
    }
    one = build(
        apply_change(inputs_of(content), WhatIf(settings=(("topology.components.b.tasks", 1),)))
    )
    assert [(s.tuples_per_s, s.bytes) for s in one.streams] == [(10, 12)]
    assert len(one.pairs) == 0
    other = build(
        apply_change(inputs_of(content), WhatIf(settings=(("topology.components.b.memory_mb", 1),)))
    )
    assert len(other.pairs) == 2


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("topology.components.spilt.tasks", 3, r"`topology.components` has no `spilt` \(did you mean `split`\?\); there is: sentence, split"),
        ("topology.components.split.task", 3, r"has no `task` \(did you mean `tasks`\?\)"),
        ("topolgy.name", "x", r"no section `topolgy` \(did you mean `topology`\?\)"),
        ("cluster.nodes.smal-2.cpu", 3, r"has no `smal-2` \(did you mean `small-"),
        ("topology.components.split.tasks", -3, r"--set topology.components.split.tasks=-3: topology.components.split.tasks: is -3"),
        ("topology.components.split.tasks.x", 1, "`topology.components.split.tasks` is 4 and holds nothing"),
        ("streams[4].bytes", 1, r"no entry `\[4\]`; there is: \[0\] to \[0\]"),
    ],
)  # fmt: skip
def test_a_wrong_path_names_the_nearest_key_and_what_there_is(
    path: str, value: object, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        apply_change(quickstart(), WhatIf(settings=((path, value),)))


def test_a_factor_scales_all_that_grows_with_the_rates() -> None:
    content = {
        "topology": {"components": {"s": {"spout": True, "rate": 10, "cpu": 5}, "b": {"inputs": {"s": "shuffle"}, "cpu": 20, "bytes": 8}}},
        "cluster": {"nodes": {"n{1..2}": {"cpu": 100}}},
        "streams": [{"from": "s", "to": "b", "tuples_per_s": 12}],
        "history": {"s": [[0, 3], [1, 4]]},
    }  # fmt: skip
    slow, fast = (
        build(inputs_of(content)),
        build(apply_change(inputs_of(content), WhatIf(rate_factor=3))),
    )
    scaled = slow.scaled(3)
    assert fast.rate.tolist() == scaled.rate.tolist() == [12, 36]
    assert fast.demand.tolist() == scaled.demand.tolist()
    assert (
        [s.tuples_per_s for s in fast.streams] == [s.tuples_per_s for s in scaled.streams] == [36]
    )
    bare = {
        "tasks": {"a": {"cpu": 2}, "b": {"cpu": 3}},
        "traffic": [["a", "b", 5, 50]],
        "cluster": {"nodes": {"n": {}}},
    }
    twice = multiply_rates(inputs_of(bare).document, 2)
    assert twice.traffic == (("a", "b", 10, 100),)
    assert twice.tasks is not None
    assert [task.cpu for task in twice.tasks.values()] == [4, 6]
    for factor in (0.0, -1.0, float("inf")):
        with pytest.raises(InvalidInput, match="a factor must be above 0"):
            apply_change(quickstart(), WhatIf(rate_factor=factor))


def test_nodes_are_taken_away_one_by_one_or_as_a_range() -> None:
    assert list(nodes_of(apply_change(quickstart(), WhatIf(without=("small-2",))))) == [
        "big-1",
        "big-2",
        "small-1",
        "small-3",
    ]
    assert list(nodes_of(apply_change(quickstart(), WhatIf(without=("small-{1..3}",))))) == [
        "big-1",
        "big-2",
    ]
    with pytest.raises(
        InvalidInput,
        match=r"no node `small-7` \(did you mean `small-\d`\?\); it has big-1, big-2, small-1",
    ):
        apply_change(quickstart(), WhatIf(without=("small-7",)))
    with pytest.raises(
        Infeasible, match="`report` has no node left, since it may run only on big-1"
    ):
        apply_change(quickstart(), WhatIf(without=("big-1",)))
    with pytest.raises(Infeasible, match="no node is left"):
        apply_change(
            inputs_of({"cluster": {"nodes": {"n{1..2}": {}}}}), WhatIf(without=("n1", "n2"))
        )
    with pytest.raises(InvalidInput, match="no cluster to take nodes from"):
        apply_change(read(CAO), WhatIf(without=("n",)))


def test_pins_and_measured_facts_follow_a_node_that_is_gone() -> None:
    content = {
        "topology": {"components": {"s": {"spout": True, "nodes": ["n{1..3}"]}}},
        "cluster": {"nodes": {"n{1..3}": {}}},
        "inventory": {"n2": {"cpu": 100}},
    }
    after = apply_change(inputs_of(content), WhatIf(without=("n2",)))
    assert after.document.topology is not None
    assert after.document.topology.components["s"].nodes == ("n1", "n3")
    assert build(after).nodes == ("n1", "n3")


def test_machines_are_added_to_the_cluster_and_to_what_can_be_rented() -> None:
    nodes = nodes_of(apply_change(quickstart(), WhatIf(added=(("big", 2),))))
    assert [name for name in nodes if "new" in name] == ["big-new-1", "big-new-2"]
    assert (nodes["big-new-1"].cpu, nodes["big-new-1"].taken.cpu) == (
        400,
        0,
    )  # what others use on big-1 is not copied
    more = apply_change(read(CAO), WhatIf(added=(("vt4", 3),))).document.catalog
    assert more is not None
    assert more["vt4"].available == 7
    with pytest.raises(
        InvalidInput, match=r"no machine type `bog` \(did you mean `big`\?\); there is: big, small"
    ):
        apply_change(quickstart(), WhatIf(added=(("bog", 2),)))
    for count in (0, -1, 1.5, "two"):
        with pytest.raises(InvalidInput, match="how many must be a whole number above 0"):
            apply_change(quickstart(), WhatIf(added=(("big", count),)))


def test_prices_change() -> None:
    catalog = apply_change(read(CAO), WhatIf(prices=(("vt4", 0.1),))).document.catalog
    assert catalog is not None
    assert (catalog["vt4"].price, catalog["vt3"].price) == (0.1, 0.1856)
    for price in (0, -1, "cheap"):
        with pytest.raises(InvalidInput, match="a price must be a number above 0"):
            apply_change(read(CAO), WhatIf(prices=(("vt4", price),)))
    with pytest.raises(InvalidInput, match=r"no machine type `vt9` \(did you mean `vt"):
        apply_change(read(CAO), WhatIf(prices=(("vt9", 1),)))
    with pytest.raises(InvalidInput, match="there is no `catalog`, where prices stand"):
        apply_change(quickstart(), WhatIf(prices=(("big", 1),)))


def test_nothing_to_try_changes_nothing() -> None:
    inputs = quickstart()
    assert not WhatIf()
    assert apply_change(inputs, WhatIf()) is inputs
