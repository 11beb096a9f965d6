"""The plan in force: who ran elsewhere, a new plan file, a plan without cores."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headrace.errors import HeadraceError, Infeasible
from headrace.run.placement import PlanInForce, check_cores
from headrace.run.rehearsal import rehearse
from headrace.run.task import where_am_i
from tests.run.topologies import plan, settings, values, word_count


def test_tasks_that_ran_elsewhere_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where_am_i.cache_clear()
    monkeypatch.setenv("HEADRACE_NODE", "b")
    in_force = PlanInForce(word_count(), plan(nodes=("a", "b")))
    hosts = {"a": "127.0.0.2", "b": "127.0.0.3"}
    (done,) = rehearse(
        word_count(),
        [values(0, 60)],
        settings(tmp_path, hosts=hosts, telemetry=tmp_path / "telemetry"),
        in_force,
    )
    where_am_i.cache_clear()
    assert done.misplaced == (
        "sentence.1",
        "split.1",
        "split.3",
        "count.2",
    )  # every other task is planned on a
    assert done.remote_bytes == 0
    assert set(pq.read_table(tmp_path / "telemetry" / "tasks")["node"].to_pylist()) == {"b"}


def test_a_changed_plan_file_is_the_new_plan_and_a_bad_one_is_refused(tmp_path: Path) -> None:
    topology, file, said = word_count(), tmp_path / "plan.json", list[str]()

    def write(node: str, count: int) -> None:
        tasks = {"sentence": 2, "split": 3, "count": count}
        runs = {name: [[node, 0, 1, n]] for name, n in tasks.items()}
        file.write_text(
            json.dumps(
                {
                    "format": "headrace/1",
                    "plan": {"placement": runs, "tasks": tasks},
                    "version": node * count,
                }
            )
        )

    write("a", 2)
    in_force = PlanInForce(topology, file=file, say=said.append)
    assert (now := in_force.current()) is not None
    assert now.node(("count", 1)) == "a"
    write("b", 4)
    assert (now := in_force.current()) is not None
    assert (now.node(("count", 3)), now.tasks["count"]) == ("b", 4)
    file.write_text("{")
    assert in_force.current() is now
    assert "a new plan" in said[0]
    assert "is refused" in said[1]


def test_a_plan_without_cores_is_refused_before_the_start() -> None:
    topology, one_node = word_count(), plan(nodes=("a",))
    check_cores(topology, one_node, {"a": 3})
    with pytest.raises(Infeasible) as refusal:
        check_cores(topology, one_node, {"a": 2})
    assert (refusal.value.needed, refusal.value.available, refusal.value.task) == (3, 2, "split.3")
    assert (
        "3 tasks at once on node a (split.1, split.2, split.3), which has 2 cores"
        in refusal.value.message
    )
    with pytest.raises(
        Infeasible, match=r"puts sentence\.1 on node a, which is not there; there are: b"
    ):
        check_cores(topology, one_node, {"b": 9})
    with pytest.raises(HeadraceError):
        PlanInForce(topology, one_node, check=lambda p: check_cores(topology, p, {"a": 2}))
