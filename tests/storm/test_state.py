"""What Nimbus says becomes a problem, and a plan becomes what Nimbus takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.document import Node
from headrace.model.problem import UNPLACED
from headrace.model.read import validated
from headrace.planner import place
from headrace.storm.state import (
    NO_CYCLES,
    State,
    current_plan,
    describe,
    executor_names,
    misplaced,
    plans_for_nimbus,
    read_state,
)
from tests.storm.states import cluster, executor, supervisor, word_count

SCHEDULERS = (
    "storm-even",
    "storm-ras",
    "a3-storm",
    "ban-storm",
    "top-storm",
    "gr-storm",
    "p-scheduler",
    "t3-scheduler",
    "i-scheduler",
    "aniello-online",
    "headrace",
)


def problem_of(state: State, measured: dict[str, Any] | None = None, **known: Node) -> Any:
    return build(validated(describe(state, known, measured or {}, {}), {}))


def test_executors_are_tasks_and_supervisors_are_nodes() -> None:
    problem = problem_of(read_state(cluster(word_count())))
    names = {problem.task_name(t) for t in range(problem.task_count)}
    assert names == {e["name"] for e in word_count()["executors"]}
    assert sorted(problem.nodes) == ["n1", "n2"]


def test_every_component_sends_to_the_ackers() -> None:
    problem = problem_of(read_state(cluster(word_count())))
    acker = problem.components.index("__acker")
    sources = {problem.components[s.source] for s in problem.streams if s.target == acker}
    assert sources == {"sentence", "split", "count"}


def test_a_blacklisted_supervisor_and_one_without_slots_are_not_planned_on() -> None:
    content = cluster(word_count(), nodes=("n1",))
    content["supervisors"] += [supervisor("n2", blacklisted=True), supervisor("n3", ports=[])]
    assert list(problem_of(read_state(content)).nodes) == ["n1"]


def test_files_know_of_nodes_what_storm_does_not() -> None:
    state = read_state(cluster(word_count()))
    known = {"n1": Node(bandwidth_mbps=100.0), "gone": Node(bandwidth_mbps=1.0)}
    found = describe(state, known, {}, {})["cluster"]["nodes"]
    assert found["n1"]["bandwidth_mbps"] == 100
    assert found["n1"]["slots"] == 2
    assert set(found) == {"n1", "n2"}


def test_the_current_plan_is_where_nimbus_has_the_executors() -> None:
    state = read_state(cluster(word_count(place=("n2", 6701))))
    problem = problem_of(state)
    running = current_plan(state, problem)
    assert {problem.nodes[n] for n in running.node} == {"n2"}
    assert set(running.worker) == {1}


def test_executors_on_a_lost_node_have_no_place() -> None:
    state = read_state(cluster(word_count(place=("n3", 6700))))
    assert (current_plan(state, problem_of(state)).node == UNPLACED).all()


@pytest.mark.parametrize("by", SCHEDULERS)
def test_every_scheduler_of_storm_gives_nimbus_a_place_for_every_executor(by: str) -> None:
    if by in ("p-scheduler", "t3-scheduler", "i-scheduler"):
        pytest.importorskip("pymetis")
    state = read_state(cluster(word_count()))
    content = describe(state, {}, {}, {}, acks=by not in NO_CYCLES)
    planned = place(build(validated(content, {})), by)
    plans = plans_for_nimbus(state, planned.problem, planned.assignment, "plan-1")
    names = {e.name for e in state.topologies[0].executors}
    assert set(plans) == {"wc-1-100"}
    assert set(plans["wc-1-100"]["assignment"]) == names
    for where in plans["wc-1-100"]["assignment"].values():
        assert where["node"] in ("n1", "n2")
        assert where["worker"] in (0, 1)


def test_plans_of_several_topologies_are_separate_and_share_no_slot() -> None:
    state = read_state(cluster(word_count("a"), word_count("b")))
    planned = place(problem_of(state), "headrace")
    plans = plans_for_nimbus(state, planned.problem, planned.assignment, "plan-1")
    assert set(plans) == {"a-1-100", "b-1-100"}
    slots = [
        {(p["node"], p["worker"]) for p in plan["assignment"].values()} for plan in plans.values()
    ]
    assert not slots[0] & slots[1]
    assert all("/" not in name for plan in plans.values() for name in plan["assignment"])


def test_tasks_of_one_executor_have_its_name() -> None:
    content = word_count()
    content["executors"] = [{**executor("split.1", 1), "last": 2}, executor("split.2", 3)]
    names = executor_names(read_state(cluster(content)))
    assert names["wc"] == {"split.1": "split.1", "split.2": "split.1", "split.3": "split.2"}


def two_streams() -> dict[str, Any]:
    """Word count with a second stream from split to count."""
    content = word_count()
    more = {"from": "split", "stream": "tick", "grouping": "all"}
    content["components"]["count"]["inputs"].append(more)
    return content


def test_measured_pairs_of_executors_that_are_gone_are_left_out() -> None:
    rows = [["split.1", "count.1", 5.0, 50.0], ["split.9", "count.1", 5.0, 50.0]]
    found = describe(read_state(cluster(two_streams())), {}, {"traffic": rows}, {})
    assert found["traffic"] == rows[:1]


def test_pairs_are_planned_on_only_where_streams_do_not_say_it() -> None:
    rows = [["split.1", "count.1", 5.0, 50.0], ["sentence.1", "split.1", 5.0, 50.0]]
    streams = [stream("sentence", "split"), stream("split", "__acker"), stream("split", "count")]
    measured = {"traffic": rows, "streams": streams}
    found = describe(read_state(cluster(two_streams())), {}, measured, {})
    assert found["traffic"] == rows[:1]
    assert [(s["from"], s["to"]) for s in found["streams"]] == [("sentence", "split")]
    assert found["topology"]["components"]["sentence"]["rate"] == 50


def stream(source: str, target: str) -> dict[str, Any]:
    return {"from": source, "to": target, "stream": "default", "tuples_per_s": 50.0,
            "selectivity": 1.0}  # fmt: skip


def test_shuffle_is_load_aware_unless_the_topology_turns_it_off() -> None:
    def grouping(**conf: Any) -> str:
        content = word_count()
        content["conf"] |= conf
        found = describe(read_state(cluster(content)), {}, {}, {})
        return found["topology"]["components"]["split"]["inputs"]["sentence"][0]["grouping"]

    assert grouping() == "load-aware"
    assert grouping(**{"topology.disable.loadaware.messaging": True}) == "shuffle"


def test_ackers_that_get_nothing_are_components_without_streams() -> None:
    state = read_state(cluster(word_count()))
    acked = describe(state, {}, {"streams": [stream("split", "__acker")]}, {})["topology"]
    silent = describe(state, {}, {"streams": [stream("sentence", "split")]}, {})["topology"]
    assert acked["ackers"] == 1
    assert "__acker" not in acked["components"]
    assert "ackers" not in silent
    assert silent["components"]["__acker"]["tasks"] == 1


def test_what_an_acker_costs_is_planned_with() -> None:
    measured = {"profile": {"__acker": {"*": {"cpu_ms": 0.5}}}}
    problem = problem_of(read_state(cluster(word_count())), measured)
    assert problem.task_count == 7


def test_executors_that_are_elsewhere_are_found() -> None:
    state = read_state(cluster(word_count(place=("n1", 6700))))
    names = [e.name for e in state.topologies[0].executors]
    here = {name: {"node": "n1", "worker": 1} for name in names}  # any port will do
    assert not misplaced(state, {"wc-1-100": {"assignment": here}})
    there = {**here, "split.1": {"node": "n2", "worker": 0}}
    assert misplaced(state, {"wc-1-100": {"assignment": there}}) == ["wc/split.1"]


def test_executors_that_should_share_a_worker_and_do_not_are_found() -> None:
    content = word_count(place=("n1", 6700))
    content["executors"][0]["port"] = 6701
    state = read_state(cluster(content))
    names = [e.name for e in state.topologies[0].executors]
    plan = {name: {"node": "n1", "worker": 0} for name in names}
    assert len(misplaced(state, {"wc-1-100": {"assignment": plan}})) == len(names)


def test_a_state_of_another_protocol_is_refused() -> None:
    with pytest.raises(InvalidInput, match="headrace-storm/9"):
        read_state({**cluster(), "protocol": "headrace-storm/9"})


@pytest.mark.parametrize("content", [None, [], {}, {"protocol": "headrace-storm/1"}, "x"])
def test_what_is_no_state_is_refused(content: Any) -> None:
    with pytest.raises(InvalidInput):
        read_state(content)


def test_shares_of_keys_reach_the_problem() -> None:
    measured = {"streams": [{**stream("split", "count"), "shares": [0.9, 0.1]}]}
    problem = problem_of(read_state(cluster(word_count())), measured)
    count = problem.components.index("count")
    [found] = [s for s in problem.streams if s.target == count]
    assert np.allclose(found.received(2), [0.9, 0.1])
