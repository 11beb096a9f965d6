"""The loop from the command line: simulated, with any rule and scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.cli.deciding import Duration
from headrace.model.output import text_for
from tests.control.worlds import word_count

EVENTS = "events: [{at: 150, lose: n1}, {at: 0, cost: split, factor: 1.2}]"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    document = word_count().document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    (tmp_path / "app.yaml").write_text(text_for("app.yaml", document))
    (tmp_path / "events.yaml").write_text(EVENTS)
    return [str(tmp_path / "app.yaml"), "--events", str(tmp_path / "events.yaml")]


def test_a_day_can_be_tried_with_any_rule_and_scheduler(files: list[str]) -> None:
    command = ["simulate", *files, "--adaptive", "--by", "a3-storm", "--rule", "muhammad"]
    command += ["--first", "storm-even", "--every", "1m", "--seconds-simulated", "300", "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["adaptive"]["decisions"] == len(found["decisions"]) == 5
    assert {(e["by"], e["rule"]) for e in found["decisions"]} == {("a3-storm", "muhammad")}
    assert any(e["cause"] == "lost" and e["applied"] for e in found["decisions"])
    assert all(e["reason"] for e in found["decisions"])
    shown = CliRunner().invoke(main, command[:-1]).stdout
    assert "moves [a3-storm, muhammad]: " in shown
    assert shown.splitlines()[-1].startswith("5 decisions, ")


def test_wrong_rules_and_options_are_refused_before_anything_starts(files: list[str]) -> None:
    command = ["simulate", *files, "--adaptive"]
    wrong = CliRunner().invoke(main, [*command, "--rule", "gian"])
    assert wrong.exit_code == 2
    assert "'gian' is not one of 'gain', 'muhammad'" in wrong.stderr
    wrong = CliRunner().invoke(main, [*command, "--rule", "once", "--improve", "5"])
    assert wrong.exit_code == 1
    assert "once has no option `improve_percent`" in wrong.stderr
    wrong = CliRunner().invoke(main, [*command, "--every", "soon"])
    assert "`soon` is no time; one looks like 30s, 5m or 1h" in wrong.stderr


def test_times_have_units() -> None:
    read = Duration().convert
    assert [read(text, None, None) for text in ("30s", "5m", "1h", "0.5d", "250ms", "7", 3)] == [
        30, 300, 3600, 43200, 0.25, 7, 3
    ]  # fmt: skip


def test_rules_are_listed_with_their_sources() -> None:
    found = json.loads(CliRunner().invoke(main, ["schedulers", "--json"]).stdout)["schedulers"]
    rules = {row["name"]: row for row in found if row["folder"] == "rule"}
    assert list(rules) == ["gain", "muhammad", "aniello", "once", "never"]
    assert "Eskandari" in rules["once"]["source"]
    assert {row["maturity"] for row in rules.values()} == {"ours", "inspired", "faithful"}
    assert all(row["guards"] for row in rules.values())
