"""What a real Nimbus said: Storm 2.8.3, three supervisors, word count and exclamation.

`nimbus-2.8.3.json` was recorded from a cluster that `headrace storm up` started, with Storm's
default scheduler and settings; of the settings only those that matter here are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from headrace.checks.problems import problem_of
from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.judge.report import judge
from headrace.model.build import build
from headrace.model.load_aware import settle
from headrace.model.problem import Problem
from headrace.model.read import read
from headrace.observe.storm import storm
from headrace.observe.storm.nimbus import nimbus_document

RECORDED = Path(__file__).parent / "nimbus-2.8.3.json"
CONTENT: dict[str, Any] = json.loads(RECORDED.read_text())


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return storm(str(RECORDED), "wc")[0]


@pytest.fixture(scope="module")
def problem(document: dict[str, Any]) -> Problem:
    return problem_of(document)


def test_counts_are_divided_by_each_executors_own_time(document: dict[str, Any]) -> None:
    # 9,491 in 108 s and 9,513 in 107 s; splits 95,130 in 107 s and 94,900 in 108 s.
    rate = 9491 / 108 + 9513 / 107
    assert document["topology"]["components"]["sentence"]["rate"] == pytest.approx(rate, rel=1e-5)
    streams = {(s["from"], s["to"]): s for s in document["streams"]}
    assert streams["sentence", "split"]["tuples_per_s"] == pytest.approx(rate, rel=1e-5)
    words = 95130 / 107 + 94900 / 108
    assert streams["split", "count"]["tuples_per_s"] == pytest.approx(words, rel=1e-5)
    assert streams["split", "count"]["selectivity"] == pytest.approx(10)


def test_groupings_workers_and_ackers_are_those_of_the_settings(document: dict[str, Any]) -> None:
    topology = document["topology"]
    assert topology["workers"] == 3
    assert topology["ackers"] == {"tasks": 3, "cpu": 10.0, "memory_mb": 128.0}
    inputs = {name: c.get("inputs") for name, c in topology["components"].items()}
    assert inputs == {
        "sentence": None,
        "split": {"sentence": [{"stream": "default", "grouping": "load-aware"}]},
        "count": {"split": [{"stream": "default", "grouping": "fields", "fields": ["word"]}]},
    }


def test_what_the_other_topology_uses_is_taken(document: dict[str, Any]) -> None:
    # Exclamation has port 16701 of 198.18.0.4; word count 16700 of all three.
    nodes = document["cluster"]["nodes"]
    assert {name: node.get("taken") for name, node in nodes.items()} == {
        "198.18.0.2": None,
        "198.18.0.3": None,
        "198.18.0.4": {"slots": [1]},
    }
    assert {node["cpu"] for node in nodes.values()} == {200.0}


def test_the_running_plan_comes_with_it(problem: Problem) -> None:
    assert problem.current is not None
    where = [problem.nodes[n] for n in problem.current.node[problem.tasks_of(1)]]
    assert problem.components[1] == "sentence"
    assert where == ["198.18.0.3", "198.18.0.2"]
    assert set(problem.current.worker.tolist()) == {0}


def test_the_splits_got_what_the_model_says(problem: Problem) -> None:
    # Measured: 0, 9,490, 9,513 and 0 sentences; two splits share a worker with no spout.
    assert problem.current is not None
    split = problem.tasks_of(problem.components.index("split"))
    predicted = settle(problem, problem.current).share[split]
    measured = np.array([0, 9490, 9513, 0]) / 19003
    assert predicted == pytest.approx(measured, abs=0.005)


def test_ackers_got_what_the_model_says(problem: Problem) -> None:
    executors = next(t for t in CONTENT["topologies"] if t["name"] == "wc")["executors"]
    measured = sum(
        value / row["uptime_s"]
        for row in executors
        if row["component"] == "__acker"
        for stream, value in row["executed"].items()
        if not stream.startswith("__system")
    )
    assert problem.rate[problem.components.index("__acker")] == pytest.approx(measured, rel=0.01)


def test_executors_that_do_not_report_are_counted_in_a_note() -> None:
    content = json.loads(RECORDED.read_text())
    wc = next(t for t in content["topologies"] if t["name"] == "wc")
    wc["executors"] = [e for e in wc["executors"] if (e["component"], e["first"]) != ("count", 4)]
    document, notes = nimbus_document(content, "wc", "here")
    assert any(note.startswith("1 of 13 executors do not report") for note in notes)
    assert document["topology"]["components"]["count"]["tasks"] == 4
    assert "plan" not in document


def test_a_topology_has_to_be_named_where_several_run() -> None:
    with pytest.raises(InvalidInput, match="2 topologies run there: shout, wc"):
        storm(str(RECORDED))
    with pytest.raises(InvalidInput, match=r"no topology `wcc` runs there \(did you mean `wc`\?\)"):
        storm(str(RECORDED), "wcc")


def test_the_document_is_written_and_can_be_judged(tmp_path: Path) -> None:
    out = tmp_path / "running.yaml"
    words = ["import", "storm", str(RECORDED), "--topology", "wc", "--out", str(out)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    problem = build(read([out]))
    assert problem.current is not None
    report = judge(problem, problem.current, bounded=False)
    assert report.feasible
    # Sentences, words, acks and what ackers answer.
    assert report.total_traffic == pytest.approx(2 * 176.8 + 1767.8 + 2121.4, rel=0.01)


def test_an_address_that_is_none_is_refused_in_words() -> None:
    result = CliRunner().invoke(main, ["import", "storm", "nimbus://"])
    assert result.exit_code == 1
    assert "is no address; one looks like nimbus://host:6627" in result.output
