"""For any window: what ran where, what flowed, which plan was in force and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.control.history import Entry, keep
from headrace.control.provenance import Flowed, Ran, provenance
from headrace.errors import InvalidInput
from headrace.model.telemetry import Writer


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A minute on two nodes, a move, a minute in two workers of one; the decisions beside it."""
    with Writer(tmp_path / "telemetry") as writer:
        for minute, node in ((0, "n2"), (1, "n1")):
            at = datetime.fromtimestamp(600 + 60 * minute + 10, UTC)
            stamps = {"event_time": at, "arrival": at, "topology": "words"}
            of = {"machine_type": "i7", "queue_length": 0, "memory_mb": 1.0}
            writer.write(
                "tasks",
                [
                    {**stamps, **of, "task": "line.1", "component": "line", "node": "n1",
                     "tuples_in": 0, "tuples_out": 100, "cpu_ms": 500.0, "worker": 0},
                    {**stamps, **of, "task": "word.1", "component": "word", "node": node,
                     "tuples_in": 100, "tuples_out": 7, "cpu_ms": 1500.0, "worker": minute},
                ],
            )  # fmt: skip
            edge = {"from_task": "line.1", "to_task": "word.1", "tuples": 100, "bytes": 4000}
            writer.write("edges", [{**stamps, **edge}])
    keep(tmp_path, Entry(655.0, True, True, "less traffic", plan="b", left="a"))
    keep(tmp_path, Entry(715.0, False, False, "nothing better", plan="b", left="b"))
    return tmp_path


def test_windows_say_what_ran_what_flowed_and_why(store: Path) -> None:
    from headrace.control.history import entries

    first, second = provenance(store / "telemetry", entries(store))
    assert (first.start_s, first.plan, first.why) == (600, "a", "")
    assert first.decisions == ("less traffic",)
    assert first.tasks == (Ran("line.1", "n1", 0, 100, 500.0), Ran("word.1", "n2", 100, 7, 1500.0))
    assert first.flows == (Flowed("line", "word", 100, 4000, 100, 100),)
    assert (second.plan, second.why) == ("b", "less traffic")
    assert second.flows == (Flowed("line", "word", 100, 4000, 0, 100),)
    assert "n1: 2 s of CPU in line.1, word.1" in second.lines()
    [only] = provenance(store / "telemetry", entries(store), begin_s=660)
    assert only == second
    with pytest.raises(InvalidInput, match="no samples of that time"):
        provenance(store / "telemetry", entries(store), begin_s=9999)


def test_history_shows_it(store: Path) -> None:
    found = CliRunner().invoke(main, ["history", str(store), "--provenance", "--json"])
    windows = json.loads(found.stdout)["windows"]
    assert [window["plan"] for window in windows] == ["a", "b"]
    shown = CliRunner().invoke(main, ["history", str(store), "--provenance"]).stdout
    assert "4,000 bytes, 100% between nodes, 100% between workers" in shown
    assert "4,000 bytes, 0% between nodes, 100% between workers" in shown
