"""Topologies in Python, and the same as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.run import Keyed, Parquet, Topology
from headrace.run.placement import read_placement
from tests.run.topologies import BY_WORD, COUNTS, split, word_count


def test_a_topology_can_be_planned_and_the_plan_read_back(tmp_path: Path) -> None:
    app, cluster, plan = (tmp_path / name for name in ("app.json", "cluster.yaml", "plan.json"))
    topology = word_count()
    app.write_text(json.dumps(topology.document()))
    cluster.write_text("format: headrace/1\ncluster:\n  nodes:\n    n{1..2}: {cpu: 400, type: t}\n")
    result = CliRunner().invoke(
        main, ["place", str(app), str(cluster), "--by", "storm-even", "--out", str(plan)]
    )
    assert result.exit_code == 0, result.output
    placement = read_placement(plan, topology)
    assert placement.tasks == {"sentence": 2, "split": 3, "count": 2}
    assert {node for node, _ in placement.places.values()} == {"n1", "n2"}
    assert placement.nodes["n1"].type == "t"


def test_the_section_says_what_was_declared() -> None:
    section = word_count().section()
    assert section["name"] == "word-count"
    assert section["components"]["count"] == {
        "tasks": 2,
        "inputs": {"split": {"grouping": "fields", "fields": ["word"]}},
    }
    assert section["components"]["split"]["inputs"] == {"sentence": "shuffle"}


REFUSED: list[tuple[Callable[[Topology], Topology], str]] = [
    (lambda t: t.bolt("split", split, inputs={"sentence": "shuffle"}), "`split` is given twice"),
    (lambda t: t.bolt("x", split, inputs={"sentense": "shuffle"}), "did you mean `sentence`"),
    (lambda t: t.bolt("x", split, inputs={"sentence": "shufle"}), "`x`: inputs.sentence"),
    (lambda t: t.bolt("x", split, inputs={"sentence": "fields"}), "names no fields"),
    (lambda t: t.bolt("x", split, inputs={}), "a bolt needs inputs"),
    (lambda t: t.bolt("a.b", split, inputs={"sentence": "shuffle"}), "holds no `.`"),
    (lambda t: t.bolt("x", split, inputs={"sentence": "shuffle"}, state=COUNTS), "one is grouped by shuffle"),
    (lambda t: t.bolt("x", split, inputs={"split": {"grouping": "fields", "fields": ["a", "b"]}}, state=COUNTS), "1 key columns"),
    (lambda t: t.bolt("x", split, inputs={"split": BY_WORD, "sentence": "global"}, state=COUNTS), "not both"),
    (lambda t: t.sink("counts", Parquet("x")), "did you mean `count`"),
    (lambda t: t.with_tasks({"nobody": 3}), "`nobody`, which there is not"),
    (lambda t: t.bolt("x", split, inputs={"sentence": "shuffle"}, form=cast(Any, "rows")), "not one of arrow, pandas, tuple"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_cannot_run_is_refused(change: Callable[[Topology], Topology], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        change(word_count()).check_runnable()
    assert message in refusal.value.message


def test_a_topology_needs_a_spout_and_state_needs_its_key() -> None:
    with pytest.raises(InvalidInput, match="there is no spout"):
        Topology("empty").check()
    with pytest.raises(InvalidInput, match="no column `word`"):
        Keyed(pa.schema([("n", pa.int64())]), ("word",))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            {"assignment": {"sentence.1": {"node": "a"}}},
            "2 tasks of `sentence` and does not place sentence.2",
        ),
        ({"assignment": {"other.1": {"node": "a"}}}, "no such component"),
        ({"assignment": {"sentence.one": {"node": "a"}}}, "tasks are called component.N"),
        (
            {
                "placement": {
                    "sentence": [["a", 0, 1, 2]],
                    "split": [["a", 0, 1, 3], ["b", 0, 3, 3]],
                }
            },
            "places split.3 twice",
        ),
    ],
)
def test_a_plan_for_another_topology_is_refused(
    plan: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps(
            {
                "format": "headrace/1",
                "plan": {**plan, "tasks": {"sentence": 2, "split": 3, "count": 2}},
            }
        )
    )
    with pytest.raises(InvalidInput) as refusal:
        read_placement(file, word_count())
    assert message in refusal.value.message
