"""headrace observe, from telemetry to a file that the planners read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner, Result

from headrace import spark as headrace_spark
from headrace.cli import main
from headrace.model.telemetry import Writer
from tests.observe.samples import APP, NOON, node, task, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., Result]


@pytest.fixture
def telemetry(tmp_path: Path) -> Path:
    """Twelve minutes of a word count, some of it sent twice, late, or wrong."""
    rows = word_count(12)
    ahead = [task(node="n9", arrival=NOON - timedelta(hours=1))] * 3
    with Writer(tmp_path / "telemetry", name="a") as writer:
        writer.write(
            "tasks",
            [*rows["tasks"], *rows["tasks"][:5], task(arrival=NOON + timedelta(hours=1)), *ahead],
        )
        writer.write("edges", rows["edges"])
        writer.write("nodes", [node(node=f"n{n}") for n in (1, 2, 3)])
    return tmp_path / "telemetry"


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in this process, on the tests' own session, which it must not end."""

    def running(**_: object) -> SparkSession:
        return spark

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)

    def stop(_: SparkSession) -> None:
        pass

    monkeypatch.setattr(headrace_spark, "session", running)
    monkeypatch.setattr(type(spark), "stop", stop)
    return invoke


def test_what_was_measured_is_planned_with(run: Run, telemetry: Path, tmp_path: Path) -> None:
    app, measured = tmp_path / "app.yaml", tmp_path / "measured.yaml"
    app.write_text(yaml.safe_dump(APP))
    result = run("observe", telemetry, "--out", measured, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)["report"]
    assert report["rows"]["tasks"] == {
        "events": 12 * 36 + 5,
        "late": 1,
        "quarantine": 3,
        "duplicates": 5,
    }
    assert report["heaviest_pairs"][0][:3] == ["split.1", "count.1", 350]
    clock = (
        "quarantine: 3 rows of tasks from node n9: event_time is after arrival: a clock is ahead"
    )
    assert report["notes"] == ["late: 1 rows of tasks", clock]
    planned = json.loads(run("place", app, measured, "--json").stdout)
    assert planned["report"]["total_traffic"] == pytest.approx(1600)
    assert any("history: say.rate" in note for note in planned["report"]["notes"])


def test_a_store_remembers_and_estimates_what_was_never_measured(
    run: Run, telemetry: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    result = run("observe", telemetry, "--store", store)
    assert result.exit_code == 0, result.output
    assert f"tasks: {12 * 36} events, 1 late, 3 quarantine" in result.output
    new = tmp_path / "new.yaml"
    components = {"source": {"spout": True}, "splitter": {"inputs": {"source": "shuffle"}}}
    new.write_text(yaml.safe_dump({**APP, "topology": {"name": "new", "components": components}}))
    estimated = yaml.safe_load(run("observe", "--store", store, "--for", new, "--json").stdout)
    assert estimated["profile"]["splitter"]["i7"]["flag"] == "estimated from split on i7"
    assert estimated["profile"]["splitter"]["i7"]["estimated"] is True
    assert set(estimated) == {"format", "profile", "inventory", "report"}


def test_a_question_that_cannot_be_answered_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(**_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(headrace_spark, "session", started)

    def said(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["observe", *map(str, arguments)])
        return result.exit_code, result.stderr

    assert said()[0] == 2
    assert said(tmp_path, "--follow")[0] == 2
    assert said(tmp_path) == (
        1,
        f"headrace: {tmp_path}: is not a telemetry folder; it needs at least one of the folders tasks, edges, nodes\n",
    )
    assert said("--store", tmp_path / "none")[0] == 1
    assert "percentiles such as `p95`" in said(tmp_path, "--traffic", "max")[1]


def test_no_java_is_said_as_such(telemetry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headrace_spark, "places_of_java", lambda: iter(()))
    result = CliRunner().invoke(main, ["observe", str(telemetry), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["resource"] == "java"


def test_rows_of_which_none_can_be_used_are_named_with_their_reasons(
    run: Run, tmp_path: Path
) -> None:
    with Writer(tmp_path) as writer:
        writer.write("tasks", [task(cpu_ms=-1.0)] * 2)
    result = run("observe", tmp_path)
    assert result.exit_code == 1
    assert "holds no row that can be used" in result.stderr
    assert "quarantine: 2 rows of tasks from node n1: cpu_ms is negative" in result.stderr
