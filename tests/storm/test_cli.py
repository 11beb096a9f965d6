"""The commands of Storm, without Storm."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.cli.storm import storm
from tests.documents.blocks import DOCUMENTS, blocks
from tests.storm.states import cluster, word_count


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["storm", *words])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    content = word_count(place=("n1", 6700))
    (tmp_path / "state.json").write_text(json.dumps(cluster(content)))
    places = {row["name"]: {"node": "n1", "worker": 0} for row in content["executors"]}
    places["split.1"] = {"node": "n2", "worker": 1}
    plans = {"wc-1-100": {"name": "plan-1", "assignment": places}}
    text = json.dumps({"protocol": "headrace-storm/1", "plans": plans, "refusals": {}})
    (tmp_path / "plans.json").write_text(text)
    return tmp_path


def test_status_names_what_is_not_in_place(store: Path) -> None:
    done = run("status", "--store", str(store))
    assert done.exit_code == 0
    assert "plan-1, 1 not in place" in done.output
    content = json.loads(run("status", "--store", str(store), "--json").stdout)
    [topology] = content["storm"]["topologies"]
    assert topology["misplaced"] == ["wc/split.1"]


def test_plan_shows_every_worker(store: Path) -> None:
    done = run("plan", "--store", str(store))
    assert "n2 worker 1: split.1" in done.output
    assert "n1 worker 0: __acker.1, count.1" in done.output
    refused = run("plan", "other", "--store", str(store))
    assert refused.exit_code == 1
    assert "there is no plan for `other`; there are: wc" in refused.output


@pytest.mark.parametrize("command", ["status", "plan"])
def test_before_nimbus_has_spoken_there_is_a_line(tmp_path: Path, command: str) -> None:
    done = run(command, "--store", str(tmp_path))
    assert done.exit_code == 1
    assert "Nimbus has not sent the state" in done.output


def test_submit_needs_a_cluster_and_down_does_not(tmp_path: Path) -> None:
    done = run("submit", "word-count", "--folder", str(tmp_path))
    assert done.exit_code == 1
    assert "no Storm cluster is up" in done.output
    assert "no Storm cluster is up" in run("down", "--folder", str(tmp_path)).output


def test_up_refuses_a_wrong_file_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("format: headrace/1\ntopology: {name: x}\n")
    done = run("up", str(tmp_path / "cluster.yaml"), "--folder", str(tmp_path / "c"))
    assert done.exit_code == 1
    assert not (tmp_path / "c").exists()


def test_install_refuses_what_is_no_storm_home(tmp_path: Path, monkeypatch: Any) -> None:
    from headrace.storm import jars
    from headrace.storm.jars import Jars

    def find_jars(*_: object) -> Jars:
        return Jars("2.8.3", tmp_path)

    monkeypatch.setattr(jars, "find_jars", find_jars)
    done = run("install", "--to", str(tmp_path))
    assert done.exit_code == 1
    assert "is no STORM_HOME" in done.output


def documented() -> list[str]:
    return [
        line.removesuffix("&").strip()
        for document in DOCUMENTS
        for block in blocks(document)
        if block.needs == "storm"
        for line in block.code.splitlines()
        if line.startswith("headrace storm")
    ]


def test_the_guides_commands_are_those_that_there_are() -> None:
    lines = documented()
    assert len(lines) >= 6
    for line in lines:
        _, _, name, *words = shlex.split(line)
        command = storm.commands[name]
        assert isinstance(command, click.Command)
        command.make_context(name, words)  # refuses what it does not know
