"""A Storm cluster in one process follows plans, whatever happens to who makes them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.model.build import build
from headrace.model.read import validated
from headrace.planner import place
from headrace.run.addresses import free_port
from headrace.storm.state import NO_CYCLES, State, describe, misplaced, plans_for_nimbus
from tests.integration.storm_trial import (
    Fake,
    Local,
    java_for_trials,
    local_cluster,
    serve_fake,
    wait_until,
)

LIMIT_S = 6  # the time limit in storm.yaml
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
# Almost no tuples: in a local cluster, one on its way to a worker that has moved ends the process.
# Moves under load are in test_storm_cluster.py.
WORD_COUNT = {"rate": 0.001, "topology.workers": 3, "topology.acker.executors": 2}


@dataclass
class Trial:
    """A local cluster and the service that it asks, which may be away."""

    local: Local
    fake: Fake
    port: int
    service: ExitStack

    def start(self) -> None:
        self.service.enter_context(serve_fake(self.fake, self.local.host, self.port))

    def stop(self) -> None:
        self.service.close()

    def state(self, name: str) -> State:
        """A state that has the topology."""

        def look() -> State | None:
            state = self.fake.state
            has = state is not None and any(t.name == name for t in state.topologies)
            return state if has else None

        return wait_until(look, f"a state with {name}")

    def plan(self, name: str, by: str, title: str) -> dict[str, Any]:
        """A scheduler's plan of a topology, given to Nimbus."""
        state = self.state(name)
        others = tuple(t for t in state.topologies if t.name == name)
        state = State(state.at_s, state.storm, state.supervisors, others)
        content = describe(state, {}, {}, {}, acks=by not in NO_CYCLES)
        planned = place(build(validated(content, {})), by)
        plans = plans_for_nimbus(state, planned.problem, planned.assignment, title)
        self.fake.plans |= plans
        return plans

    def await_status(self, name: str, *words: str, within_s: float = 90) -> str:
        def look() -> str | None:
            status = self.local.status(name)
            return status if all(word in status for word in words) else None

        return wait_until(look, f"status of {name} with {words}", within_s)

    def end(self, name: str) -> None:
        """End a topology that works, and wait until its slots are free."""
        self.await_running(name)  # a worker that ends before it started ends its supervisor
        self.local.ask("kill", name=name)
        wait_until(lambda: self.local.topology(name) is None, f"the end of {name}")
        wait_until(
            lambda: all(t.name != name for t in (self.fake.state or self.state("wc")).topologies),
            f"a state without {name}",
        )

    def await_running(self, name: str) -> None:
        """Wait until every executor works: a supervisor of Storm that is moved on earlier ends."""

        def look() -> bool:
            found = self.local.topology(name)
            return found is not None and all(e["uptime_s"] > 0 for e in found["executors"])

        wait_until(look, f"{name} at work")

    def check_places(self, name: str, plan: dict[str, Any]) -> None:
        """Every executor comes to where the plan says, as Nimbus tells, and works there."""
        wait_until(lambda: not self.differences(name, plan), f"{name} where its plan says", 30)
        self.await_running(name)
        assert not self.differences(name, plan)

    def differences(self, name: str, plan: dict[str, Any]) -> list[str]:
        """Executors on another node than planned, and workers with other executors."""
        topology = self.local.topology(name)
        assert topology is not None
        [wanted] = [p["assignment"] for id, p in plan.items() if id == topology["id"]]
        ports = {port: s.node for s in self.state(name).supervisors for port in s.ports}
        names = executor_names(topology)
        # All are on this host; no two supervisors of a local cluster share a port.
        found = {
            names[e["first"]]: (ports.get(e["port"]), e["port"]) for e in topology["executors"]
        }
        if set(found) != set(wanted):
            return ["not these executors"]
        wrong = [n for n, place in wanted.items() if found[n][0] != place["node"]]
        workers: dict[Any, set[Any]] = {}
        for n, where in wanted.items():
            workers.setdefault((where["node"], where["worker"]), set()).add(found[n])
        wrong += [str(worker) for worker, slots in workers.items() if len(slots) > 1]
        return wrong if len(set(found.values())) == len(workers) else [*wrong, "worker count"]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    folder, port, fake = tmp_path_factory.mktemp("storm"), free_port(), Fake()
    timeouts = {
        "headrace.timeout.secs": LIMIT_S,
        "headrace.calm.secs": 0,  # the tests wait by themselves
        "nimbus.supervisor.timeout.secs": 5,
    }
    with ExitStack() as service, local_cluster(folder, port, timeouts) as local:
        found = Trial(local, fake, port, service)
        found.start()
        parameters = {**WORD_COUNT, "measures": str(folder / "measures")}
        local.ask("submit", kind="word-count", name="wc", parameters=parameters)
        yield found


@pytest.mark.parametrize("by", SCHEDULERS)
def test_every_executor_is_where_the_plan_of_a_scheduler_says(trial: Trial, by: str) -> None:
    if by in ("p-scheduler", "t3-scheduler", "i-scheduler"):
        pytest.importorskip("pymetis")
    plan = trial.plan("wc", by, f"plan of {by}")
    trial.await_status("wc", f"plan of {by} is in force")
    trial.check_places("wc", plan)
    wait_until(lambda: not misplaced(trial.state("wc"), plan), "the state that follows the plan")


def test_a_topology_without_a_plan_waits_and_then_gets_the_fallback(trial: Trial) -> None:
    plan = trial.plan("wc", "storm-even", "plan of wc")
    trial.await_status("wc", "plan of wc is in force")
    trial.check_places("wc", plan)
    before = trial.local.topology("wc")
    trial.local.ask("submit", kind="linear", name="second", parameters={"rate": 0.001})
    status = trial.await_status("second", "placed by DefaultScheduler")
    assert "has no plan for it" in status
    after = trial.local.topology("wc")
    assert before is not None
    assert after is not None
    assert places(before) == places(after)  # the fallback does not touch what has a plan
    plan = trial.plan("second", "storm-even", "second's own")
    trial.await_status("second", "second's own is in force")
    trial.check_places("second", plan)
    trial.end("second")


def test_a_refusal_goes_to_the_fallback_with_its_reason(trial: Trial) -> None:
    parameters = {"rate": 0.001, "topology.workers": 1}
    trial.local.ask("submit", kind="exclamation", name="refused", parameters=parameters)
    id = next(t.id for t in trial.state("refused").topologies if t.name == "refused")
    trial.fake.refusals[id] = "count.1 does not fit anywhere"
    trial.await_status("refused", "placed by DefaultScheduler", "count.1 does not fit anywhere")
    trial.end("refused")


def test_a_plan_for_executors_that_are_gone_changes_nothing(trial: Trial) -> None:
    plan = trial.plan("wc", "headrace", "good plan")
    trial.await_status("wc", "good plan is in force")
    [(id, good)] = [(i, p) for i, p in plan.items() if i.startswith("wc-")]
    bad = {**good["assignment"], "count.99": {"node": "n1", "worker": 0}}
    trial.fake.plans[id] = {"name": "bad plan", "assignment": bad}
    status = trial.await_status("wc", "good plan is in force", "bad plan cannot")
    assert "count.99, which is no executor of wc" in status
    trial.check_places("wc", plan)
    trial.fake.plans[id] = {
        "name": "elsewhere",
        "assignment": {n: {"node": "n9", "worker": 0} for n in good["assignment"]},
    }
    trial.await_status("wc", "good plan is in force", "node n9 is not there")
    trial.fake.plans[id] = good


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"body": b"<html>rubbish</html>"}, "not JSON"),
        ({"body": b'{"protocol": "other/7"}'}, "protocol is other/7"),
        ({"body": b'{"protocol": "headrace-storm/1", "plans": {"x": 5}}'}, "not a JSON object"),
        ({"delay_s": 60.0}, f"no answer within {LIMIT_S} s"),
    ],
    ids=["rubbish", "another protocol", "half a plan", "slow"],
)
def test_wrong_and_late_answers_leave_the_plan_in_force(
    trial: Trial, trouble: dict[str, Any], words: str
) -> None:
    plan = trial.plan("wc", "storm-even", "the first plan")
    trial.await_status("wc", "the first plan is in force")
    for name, value in trouble.items():
        setattr(trial.fake, name, value)
    try:
        trial.await_status("wc", "the first plan is in force", words)
        trial.check_places("wc", plan)
    finally:
        trial.fake.body, trial.fake.delay_s = None, 0.0
    trial.stop()  # ends what still waits for a slow answer
    trial.start()


def test_headrace_away_leaves_the_plan_and_new_topologies_get_the_fallback(trial: Trial) -> None:
    plan = trial.plan("wc", "a3-storm", "plan before")
    trial.await_status("wc", "plan before is in force")
    trial.stop()
    try:
        trial.await_status("wc", "plan before is in force", "nobody answers there")
        trial.local.ask("submit", kind="linear", name="late", parameters={"rate": 0.001})
        trial.await_status("late", "placed by DefaultScheduler", "nobody answers there")
        trial.check_places("wc", plan)
    finally:
        trial.start()
    trial.end("late")


def test_a_rebalance_to_other_counts_waits_for_a_plan_of_its_own(trial: Trial) -> None:
    plan = trial.plan("wc", "storm-even", "four counts")
    trial.await_status("wc", "four counts is in force")
    trial.check_places("wc", plan)
    trial.local.ask("rebalance", name="wc", executors={"count": 2})
    trial.await_status("wc", "four counts cannot be put into force", within_s=60)

    def has_two() -> bool:
        [wc] = [t for t in trial.state("wc").topologies if t.name == "wc"]
        return sum(executor.component == "count" for executor in wc.executors) == 2

    wait_until(has_two, "a state with two counts")
    plan = trial.plan("wc", "headrace", "two counts")
    trial.await_status("wc", "two counts is in force")
    trial.check_places("wc", plan)


def test_hook_and_topology_count_the_same_tuples(trial: Trial) -> None:
    folder = trial.local.folder
    parameters = {
        **WORD_COUNT,
        "rate": 400,
        "tuples": 2000,
        "measures": str(folder / "exact"),
        "topology.workers": 3,
    }
    trial.local.ask("submit", kind="word-count", name="exact", parameters=parameters)
    trial.plan("exact", "storm-even", "exact's plan")
    trial.await_status("exact", "exact's plan is in force")
    own = wait_until(lambda: finished(folder / "exact", 2000, 10), "the end of all tuples", 180)
    total = sum(own.values())
    wait_until(
        lambda: sum(users(hook_pairs(folder / "telemetry", "exact")).values()) >= total,
        "the hook's last file",
    )
    counted = hook_pairs(folder / "telemetry", "exact")
    topology = trial.local.topology("exact")
    assert topology is not None
    numbers = task_names(topology)
    assert users(counted) == {(numbers[a], b): n for (a, b), n in own.items()}
    wait_until(lambda: acker_counts(trial, counted), "Storm's own counters of the ackers", 60)
    trial.end("exact")


def test_a_supervisor_that_dies_is_planned_around(trial: Trial) -> None:
    plan = trial.plan("wc", "storm-even", "three nodes")
    trial.await_status("wc", "three nodes is in force")
    trial.check_places("wc", plan)
    trial.local.ask("lose", name="n3")
    wait_until(lambda: "n3" not in trial.state("wc").nodes, "the loss of n3", 60)
    trial.await_status("wc", "n3", within_s=60)
    plan = trial.plan("wc", "storm-even", "two nodes")
    trial.await_status("wc", "two nodes is in force")
    trial.check_places("wc", plan)


def test_a_blacklisted_host_gets_nothing_until_it_is_trusted_again(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    plans.mkdir()
    everything = ("word.1", "exclaim1.1", "exclaim2.1")
    plan = {"assignment": {task: {"node": "n2", "worker": 0} for task in everything}}
    (plans / "any.json").write_text(json.dumps({"format": "headrace/1", "plan": plan}))
    trial = "org.headrace.storm.referee.BlacklistTrial"
    done = subprocess.run(
        [*java_for_trials(tmp_path), trial, str(plans), str(tmp_path / "kept")],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    answers = [line.removeprefix("answer ") for line in done.stdout.splitlines()]
    before, after = (json.loads(line) for line in answers if line.startswith("{"))
    assert before["nodes"] == ["n1"]
    assert "node n2 is blacklisted" in before["status"]
    assert after["nodes"] == ["n2"]
    assert "is in force" in after["status"]


def places(topology: dict[str, Any]) -> set[tuple[int, str, int]]:
    return {(e["first"], e["host"], e["port"]) for e in topology["executors"]}


def finished(folder: Path, tuples: int, words: int) -> dict[tuple[int, str], int] | None:
    """The topology's own counters (from Storm's task, to task), once all of them are written."""
    found: dict[tuple[int, str], int] = {}
    acked = 0
    for file in folder.glob("[!.]*.json"):
        content = json.loads(file.read_text())
        acked += content["acked"]
        for source, count in content["received"].items():
            found[int(source), content["task"]] = count
    done = acked == tuples and sum(found.values()) == tuples * (1 + words)
    return found if done else None


def users(pairs: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """The pairs of the topology's own components."""
    return {pair: n for pair, n in pairs.items() if "__" not in pair[0] + pair[1]}


def hook_pairs(folder: Path, topology: str) -> dict[tuple[str, str], int]:
    found: Counter[tuple[str, str]] = Counter()
    for file in (folder / "edges").glob("[!.]*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            if row["topology"] == topology:
                found[row["from_task"], row["to_task"]] += row["tuples"]
    return dict(found)


def executor_names(topology: dict[str, Any]) -> dict[int, str]:
    """First task -> name of its executor."""
    counts: Counter[str] = Counter()
    found: dict[int, str] = {}
    for one in sorted(topology["executors"], key=lambda row: row["first"]):
        counts[one["component"]] += 1
        found[one["first"]] = f"{one['component']}.{counts[one['component']]}"
    return found


def task_names(topology: dict[str, Any]) -> dict[int, str]:
    counts: Counter[str] = Counter()
    found: dict[int, str] = {}
    for one in sorted(topology["executors"], key=lambda row: row["first"]):
        for task in range(one["first"], one["last"] + 1):
            counts[one["component"]] += 1
            found[task] = f"{one['component']}.{counts[one['component']]}"
    return found


def acker_counts(trial: Trial, counted: dict[tuple[str, str], int]) -> bool:
    """Whether Storm's statistics, which sample nothing here, say the same of the ackers."""
    topology = trial.local.topology("exact")
    assert topology is not None
    inputs = topology["component_pages"]["__acker"]["inputs"]
    executed = sum(one["executed"] for one in inputs.values())
    return executed == sum(n for (_, to), n in counted.items() if to.startswith("__acker"))
