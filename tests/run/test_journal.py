"""The journal of a run: what each line says, and what a crash leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.model.document import Node
from headrace.model.topology import Topology
from headrace.run.batches import BatchDone
from headrace.run.journal import ANYWHERE, NAME, Journal, measures, runs_of
from headrace.run.placement import Placement
from headrace.run.seats import TaskReport

TOPOLOGY = (
    Topology("words").spout("feed", tasks=1).bolt("count", inputs={"feed": "shuffle"}, tasks=2)
)
FEED = TaskReport("work", "feed", 0, ("h1",), 5.0, 0, 30, 10.0, 50.0,
                  (("count", 0, 10, 100), ("count", 1, 20, 200)))  # fmt: skip
COUNTS = [TaskReport("work", "count", n, ("h",), 6.0, 10 + 10 * n, 0, 20.0, 80.0) for n in (0, 1)]
REPORTS = [(FEED, "n1"), (COUNTS[0], "n1"), (COUNTS[1], "n2")]
DONE = BatchDone(7, 1.5, "first", 30, 200, 300, (), ended=100.0)
PLACES = {("feed", 0): ("n1", 0), ("count", 0): ("n1", 0), ("count", 1): ("n2", 1)}
PLAN = Placement(
    "first", {"feed": 1, "count": 2}, PLACES, {"n1": Node(cpu=100), "n2": Node(cpu=50)}
)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()]


def test_what_a_batch_did_is_added_up_by_node_component_and_stream() -> None:
    found = measures(REPORTS)
    assert found["nodes"] == {"n1": [30.0, 80.0, 200.0, 0.0], "n2": [20.0, 80.0, 0.0, 200.0]}
    assert found["components"] == {"feed": [0, 30, 10.0], "count": [30, 0, 40.0]}
    assert found["streams"] == [["feed", "count", 30, 300, 20]]


def test_a_journal_begins_with_what_runs_and_names_each_plan_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for _ in range(2):
        journal.record(TOPOLOGY, DONE, REPORTS, PLAN, None)
    other = Placement("second", PLAN.tasks, PLACES, PLAN.nodes)
    journal.record(TOPOLOGY, DONE, REPORTS, other, None)
    journal.end("it broke")
    lines = lines_of(tmp_path)
    assert [line["kind"] for line in lines] == [
        "begin", "plan", "batch", "batch", "plan", "batch", "end",
    ]  # fmt: skip
    document = lines[0]["document"]
    assert document["cluster"]["nodes"] == {"n1": {"cpu": 100.0}, "n2": {"cpu": 50.0}}
    assert document["topology"]["name"] == "words"
    assert lines[1]["placement"] == {"count": [["n1", 0, 1, 1], ["n2", 1, 2, 2]],
                                     "feed": [["n1", 0, 1, 1]]}  # fmt: skip
    assert (lines[2]["batch"], lines[2]["plan"], lines[2]["at_s"]) == (7, "first", 100.0)
    assert lines[-1]["failure"] == "it broke"


def test_without_a_plan_tasks_are_where_they_ran(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for _ in range(2):
        journal.record(TOPOLOGY, DONE, REPORTS, None, None)
    kinds = [(line["kind"], line.get("name")) for line in lines_of(tmp_path)]
    assert kinds == [("begin", None), ("plan", ANYWHERE), ("batch", None), ("batch", None)]


def test_a_line_that_a_crash_cut_off_is_ended(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"kind": "batch", "ba')
    Journal(tmp_path).record(TOPOLOGY, DONE, REPORTS, PLAN, None)
    text = (tmp_path / NAME).read_text().splitlines()
    assert text[0] == '{"kind": "batch", "ba'
    assert json.loads(text[1])["kind"] == "begin"


@pytest.mark.parametrize(
    ("numbers", "runs"),
    [
        ([0, 1, 2], [["n", 0, 1, 3]]),
        ([0, 2], [["n", 0, 1, 1], ["n", 0, 3, 3]]),
    ],
)
def test_tasks_in_a_row_are_one_entry(numbers: list[int], runs: list[list[Any]]) -> None:
    assert runs_of({("c", n): ("n", 0) for n in numbers}) == {"c": runs}
