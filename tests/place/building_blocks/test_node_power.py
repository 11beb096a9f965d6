"""Node power against the thesis' tables: Muhammad, tables 3.1, 3.2, 3.8 to 3.10 and 4.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import Floats, Problem
from headrace.model.read import read_file, validated
from headrace.place.building_blocks.node_power import (
    NODE_FACTS,
    computation_power,
    gflops,
    keep_common_facts,
    list_missing_facts,
    node_power,
    rank_nodes,
)
from headrace.planner import place

EXAMPLES = Path(__file__).parents[3] / "examples" / "muhammad"


def problem_on(cluster: dict[str, Any], bound_by: str = "cpu") -> Problem:
    return build(
        validated(
            {
                "format": FORMAT,
                "topology": {"bound_by": bound_by},
                "tasks": {"a": {}},
                "cluster": cluster,
            },
            {},
        )
    )


def problem_of(file: str, bound_by: str) -> Problem:
    return problem_on(read_file(EXAMPLES / file).content["cluster"], bound_by)


def order(problem: Problem, power: Floats) -> str:
    """The last letters of the nodes' names, strongest first."""
    return "".join(problem.nodes[n][-1] for n in rank_nodes(problem, power))


@pytest.mark.parametrize(
    ("bound_by", "table"), [("cpu", "decbaf"), ("memory", "edcbfa")], ids=["table 3.1", "table 3.2"]
)
def test_computation_power_ranks_the_nodes_as_the_thesis_does(bound_by: str, table: str) -> None:
    problem = problem_of("six-nodes.yaml", bound_by)
    assert order(problem, computation_power(problem, 0.8)) == table


def test_alpha_point_two_ranks_as_for_a_memory_bound_topology() -> None:
    cpu, memory = problem_of("six-nodes.yaml", "cpu"), problem_of("six-nodes.yaml", "memory")
    assert computation_power(cpu, 0.2) == pytest.approx(computation_power(memory, 0.8))


def test_gflops_are_those_of_table_3_7() -> None:
    assert gflops(problem_of("five-nodes.yaml", "cpu")).round().tolist() == [22, 19, 9, 4, 4]


# Scores of nodes a to e as printed. The order of table 3.9 is e a b d c: b and d have 35.8 and 36.0
# and are both printed as 36.
@pytest.mark.parametrize(
    ("bound_by", "table", "printed"),
    [
        ("cpu", "abced", [39, 38, 33, 32, 33]),
        ("memory", "eadbc", [37, 36, 35, 36, 38]),
        ("network", "abecd", [59, 58, 56, 56, 57]),
    ],
    ids=["table 3.8", "table 3.9, its b and d in the order of their exact scores", "table 3.10"],
)
def test_node_power_ranks_the_nodes_as_the_thesis_does(
    bound_by: str, table: str, printed: list[int]
) -> None:
    problem = problem_of("five-nodes.yaml", bound_by)
    power = node_power(problem, 0.5, 0.25)
    assert power.round().tolist() == printed
    assert order(problem, power) == table


def test_computation_power_is_that_of_table_4_1() -> None:
    problem = problem_of("cluster.yaml", "cpu")
    assert computation_power(problem, 0.8)[[0, 3, 6]] == pytest.approx(
        [148317, 65384, 40918], abs=1
    )


def test_sockets_multiply_the_power() -> None:
    nodes = {
        "one": {"cores": 4, "ghz": 2, "flops_per_cycle": 8},
        "two": {"sockets": 2, "cores": 4, "ghz": 2, "flops_per_cycle": 8},
    }
    assert gflops(problem_on({"nodes": nodes})).tolist() == [64, 128]


def test_cores_that_are_not_given_are_those_of_the_cpu_points() -> None:
    problem = problem_on({"nodes": {"a": {"cpu": 250}, "b": {"cores": 4}}})
    assert gflops(problem).tolist() == [2.5, 4]
    # No memory and no bandwidth stated.
    assert node_power(problem, 0.5, 0.25).tolist() == [1.25, 2]


def test_cpu_points_count_all_sockets() -> None:
    problem = problem_on({"nodes": {"a": {"cpu": 400, "sockets": 2}, "b": {"cpu": 400}}})
    assert gflops(problem).tolist() == [4, 4]


FULL = {
    "cores": 2,
    "ghz": 2.0,
    "flops_per_cycle": 4,
    "memory_mb": 8192,
    "bandwidth_mbps": 1000,
}


@pytest.mark.parametrize("fact", ["ghz", "flops_per_cycle", "memory_mb", "bandwidth_mbps"])
def test_a_fact_that_one_node_does_not_give_ranks_none(fact: str) -> None:
    without = {key: value for key, value in FULL.items() if key != fact}
    problem = problem_on({"nodes": {"x": FULL, "y": without | {"cores": 3}}}, "network")
    assert order(problem, node_power(problem, 0.5, 0.25)) == "xy", "by what each one gives"
    power = node_power(keep_common_facts(problem), 0.5, 0.25)
    assert order(problem, power) == "yx", "three cores before two"
    assert list_missing_facts(problem, NODE_FACTS) == (
        f"node power leaves out `{fact}` for all nodes: `y` does not give it",
    )


def test_what_every_node_gives_is_not_mentioned() -> None:
    problem = problem_on({"nodes": {"x": FULL, "y": FULL | {"ghz": 3.0}}})
    assert list_missing_facts(problem, NODE_FACTS) == ()
    assert order(problem, gflops(keep_common_facts(problem))) == "yx", "3 GHz before 2"


def test_without_cores_or_cpu_of_one_node_cores_rank_none() -> None:
    problem = problem_on({"nodes": {"a": {"cores": 8}, "b": {"slots": 5}}})
    assert order(problem, gflops(problem)) == "ab"
    assert order(problem, gflops(keep_common_facts(problem))) == "ba", "more free slots"


def test_the_note_says_how_many_nodes_do_not_give_a_fact() -> None:
    nodes = {"x": FULL, "y": {"cores": 2}, "z": {"cores": 2}, "full": {"slots": 0}}
    [note] = list_missing_facts(problem_on({"nodes": nodes}), ["ghz"])
    assert note.endswith("`y` and 1 more do not give it")
    [note] = list_missing_facts(problem_on({"nodes": {"y": {}, "z": {}}}), ["ghz"])
    assert note.endswith("no node gives it")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("top-storm", ["ghz", "memory_mb"]),
        ("a3-storm", ["ghz", "memory_mb"]),
        ("ban-storm", ["ghz", "memory_mb", "bandwidth_mbps"]),
        ("gr-storm", ["ghz"]),
    ],
)
def test_the_report_says_which_facts_were_left_out(by: str, said: list[str]) -> None:
    nodes = {
        "x": FULL,
        "y": {"cores": 2, "flops_per_cycle": 4},
    }
    topologies = [{"name": name, "components": {"a": {"spout": True}}} for name in ("p", "q")]
    problem = build(
        validated(
            {"format": FORMAT, "topologies": topologies, "cluster": {"nodes": nodes}},
            {},
        )
    )
    notes = [n for n in place(problem, by).report.notes if n.startswith("node power")]
    assert [note.split("`")[1] for note in notes] == said, "each once, for both topologies"


def test_equal_nodes_go_by_free_slots_then_by_the_file() -> None:
    nodes = {
        "a": {"slots": 2},
        "b": {"slots": 4, "taken": {"slots": [0]}},
        "c": {"slots": 0},
        "d": {"slots": 3},
    }
    problem = problem_on({"nodes": nodes})
    assert order(problem, gflops(problem)) == "bda"


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_alpha_outside_zero_and_one_is_refused(alpha: float) -> None:
    with pytest.raises(InvalidInput, match="alpha"):
        computation_power(problem_of("six-nodes.yaml", "cpu"), alpha)
