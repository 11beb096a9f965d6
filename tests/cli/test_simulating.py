"""headrace simulate, and compare --simulate."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from headrace.cli import main
from headrace.model.examples import example

QUICK = str(example("quickstart.yaml"))


def run(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, list(words))
    return found.exit_code, found.stdout


def test_json_is_the_contract() -> None:
    code, text = run("simulate", QUICK, "--by", "storm-even", "--seconds-simulated", "2", "--json")
    assert code == 0
    content = json.loads(text)
    assert content["format"] == "headrace/1"
    assert content["plan"] == "storm-even"
    assert content["simulated_seconds"] == 2
    summary = content["summary"]
    assert set(summary["throughput_per_s"]) == {"mean", "low", "high"}
    assert {"mean", "p50", "p95", "p99"} <= set(summary["latency_ms"])
    assert summary["entered"] == summary["completed"] + summary["pending"] + summary["lost"]
    assert summary["stable"] is True
    assert 0 < summary["nodes"]["big-1"]["cpu"] < 1
    assert len(content["series"]["at_s"]) == len(content["series"]["throughput_per_s"])


def test_several_schedulers_are_a_table_and_an_unstable_plan_is_shown(tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    words = ("simulate", QUICK, "--by", "storm-even", "--by", "rstorm", "--seconds-simulated", "4")
    code, text = run(*words, "--out", str(page))
    assert code == 0
    assert "rstorm" in text
    assert "no" in text
    assert "Unstable." in page.read_text()


def test_a_plan_file_is_simulated(tmp_path: Path) -> None:
    plan = str(tmp_path / "p.json")
    assert run("place", QUICK, "--by", "storm-even", "--out", plan)[0] == 0
    for words in ((plan,), (QUICK, "--plan", plan)):
        code, text = run("simulate", *words, "--seconds-simulated", "2")
        assert code == 0
        assert "tuples/s" in text


def test_an_unknown_node_is_refused(tmp_path: Path) -> None:
    events = tmp_path / "e.yaml"
    events.write_text("events: [{at: 1, lose: big-3}]")
    result = CliRunner().invoke(
        main, ["simulate", QUICK, "--by", "storm-even", "--events", str(events)]
    )
    assert result.exit_code == 1
    assert "there is no node `big-3` (did you mean `big-" in result.stderr


def test_the_page_draws_what_is_lost(tmp_path: Path) -> None:
    events, page = tmp_path / "e.yaml", tmp_path / "x.html"
    words = ("simulate", QUICK, "--by", "storm-even", "--seconds-simulated", "3")
    assert run(*words, "--out", str(page))[0] == 0
    assert ">lost</text>" not in page.read_text()
    events.write_text("events: [{at: 1, lose: big-2}]")
    assert run(*words, "--events", str(events), "--out", str(page))[0] == 0
    assert ">lost</text>" in page.read_text()


def test_compare_adds_what_was_simulated() -> None:
    words = ("compare", QUICK, "--by", "storm-even", "--by", "dstorm", "--simulate")
    code, text = run(*words, "--json")
    assert code == 0
    simulated = json.loads(text)["simulated"]
    assert set(simulated) == {"storm-even", "dstorm"}
    assert simulated["storm-even"]["latency_ms"]["p99"] > 0
    code, text = run(*words)
    assert "p99 ms" in text
