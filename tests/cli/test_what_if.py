"""What if, on the command line: every command that plans shows the figures before and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICKSTART = str(EXAMPLES / "quickstart.yaml")
CAO = [str(EXAMPLES / "cao" / name) for name in ("flight.yaml", "vm-types.yaml")]


def as_json(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "command",
    [
        ["place", QUICKSTART, "--by", "storm-even"],
        ["size", QUICKSTART, "--rate", "3000"],
        ["plan", QUICKSTART, "--rate", "3000"],
        ["explain", QUICKSTART, "--by", "storm-even"],
        ["explain", QUICKSTART, "--by", "storm-even", "--task", "count.3"],
        ["compare", QUICKSTART, "--by", "storm-even", "--by", "tstorm"],
    ],
)
def test_every_command_that_plans_tells_both_sides(command: list[str]) -> None:
    plain, tried = as_json(*command), as_json(*command, "--rate-factor", "1.1")
    assert tried["what_if"] == ["--rate-factor 1.1"]
    before = tried["without_what_if"]
    if "report" in plain:
        assert before["report"] == plain["report"]
        assert tried["report"]["total_traffic"] == pytest.approx(
            1.1 * plain["report"]["total_traffic"]
        )
    elif "results" in plain:
        assert [r["report"] for r in before["results"]] == [r["report"] for r in plain["results"]]
    else:
        assert before["explanation"] == plain["explanation"]
        assert before["explanation"] != tried["explanation"]
    assert set(plain) == set(tried) - {"what_if", "without_what_if"}


def test_provision_and_judge_tell_both_sides_too(tmp_path: Path) -> None:
    tried = as_json("provision", *CAO, "--by", "botm", "--budget", "1.856", "--price", "vt4=0.1856")
    assert tried["report"]["max_rate"] > tried["without_what_if"]["report"]["max_rate"]
    plan = str(tmp_path / "plan.json")
    as_json("place", QUICKSTART, "--by", "storm-even", "--out", plan)
    judged = as_json("judge", plan, "--set", "cluster.nodes.big-2.cpu=10")
    assert (judged["without_what_if"]["report"]["feasible"], judged["report"]["feasible"]) == (
        True,
        False,
    )
    refused = CliRunner().invoke(
        main, ["judge", plan, "--without", "small-1"], catch_exceptions=False
    )
    assert refused.exit_code == 1
    assert "it names the node `small-1`, which the cluster does not have" in refused.stderr


def test_people_see_the_figures_before_and_after() -> None:
    result = CliRunner().invoke(
        main,
        ["place", QUICKSTART, "--by", "storm-even", "--without", "small-1"],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    assert "What if --without small-1" in result.stdout
    assert "without it" in result.stdout
    assert "nodes used" in result.stdout


def test_a_change_may_be_what_makes_a_plan_possible(tmp_path: Path) -> None:
    file = tmp_path / "full.yaml"
    file.write_text(
        "format: headrace/1\ntopology: {components: {s: {spout: true, cpu: 80}, b: {inputs: {s: shuffle}, cpu: 80}}}\n"
        "cluster: {nodes: {n1: {type: x, cpu: 100}}}\n"
    )
    tried = as_json("place", str(file), "--add", "x=1")
    assert tried["report"]["feasible"]
    assert tried["without_what_if"]["error"]["kind"] == "infeasible"
    shown = (
        CliRunner()
        .invoke(main, ["place", str(file), "--add", "x=1"], catch_exceptions=False)
        .stdout
    )
    assert "Without it there is no plan" in shown


def test_a_change_that_is_refused_ends_with_status_1() -> None:
    for wrong in (
        ["--set", "topology.components.spilt.tasks=3"],
        ["--without", "nowhere"],
        ["--add", "big=x"],
        ["--price", "big=3"],
    ):
        result = CliRunner().invoke(main, ["place", QUICKSTART, "--by", "storm-even", *wrong])
        assert result.exit_code == 1
        assert wrong[0] in result.stderr
    assert CliRunner().invoke(main, ["place", QUICKSTART, "--set", "novalue"]).exit_code == 2
