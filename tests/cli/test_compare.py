"""`headrace compare --stage`: sizers, provisioners and movers side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICKSTART = str(EXAMPLES / "quickstart.yaml")
CAO = [str(EXAMPLES / "cao" / name) for name in ("flight.yaml", "vm-types.yaml")]
NASIRI = [str(EXAMPLES / "nasiri" / name) for name in ("linear.yaml", "cluster-testbed.yaml")]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments], catch_exceptions=False)


def results(*arguments: str) -> dict[str, dict[str, Any]]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return {row["scheduler"]: row for row in json.loads(done.stdout)["results"]}


def test_sizers_are_compared_by_the_rate_they_reach() -> None:
    rows = results(*NASIRI, "--stage", "size", "--by", "nasiri", "--by", "lsa")
    assert rows["nasiri"]["report"]["max_rate"] > 0
    assert "thread points" in rows["lsa"]["error"]["message"]
    shown = run(*NASIRI, "--stage", "size", "--by", "nasiri", "--by", "lsa").output
    assert "max rate" in shown
    assert "lsa: no component has thread points" in shown


def test_provisioners_are_compared_by_rate_within_a_budget_and_by_cost_for_a_rate() -> None:
    asked = ["--stage", "provision", "--by", "optimal", "--by", "vm-greedy"]
    within = results(*CAO, *asked, "--budget", "1.86")
    assert within["optimal"]["report"]["max_rate"] > within["vm-greedy"]["report"]["max_rate"]
    enough = run(*CAO, *asked, "--rate", "60").output
    assert "cost" in enough
    assert "vm-greedy spends a budget" in enough


def test_movers_are_compared_on_blocks_and_on_plans(tmp_path: Path) -> None:
    blocks = results("--stage", "move", "--blocks", "4x3:4x2")
    assert blocks["mod"]["report"]["makespan"] >= blocks["optimal"]["report"]["makespan"]
    plans = [str(tmp_path / f"{name}.json") for name in ("old", "new")]
    for by, file in zip(("storm-even", "mt-scheduler"), plans, strict=True):
        placed = CliRunner().invoke(main, ["place", QUICKSTART, "--by", by, "--out", file])
        assert placed.exit_code == 0, placed.output
    moved = results("--stage", "move", *plans, "--by", "optimal", "--by", "one-by-one")
    alone, together = (moved[m]["report"]["makespan"] for m in ("one-by-one", "optimal"))
    assert alone >= together > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stage", "move"], "two plan files"),
        (["--stage", "move", QUICKSTART], "two plan files"),
        (["--stage", "move", "--blocks", "4x3:4x2", QUICKSTART, QUICKSTART], "two plan files"),
        ([QUICKSTART, "--rate", "5"], "--rate and --budget are for"),
        ([QUICKSTART, "--blocks", "4x3:4x2"], "--blocks is for --stage move"),
        ([], "give the files to plan"),
        ([*NASIRI, "--stage", "size", "--by", "nasri"], "did you mean `nasiri`"),
        ([*NASIRI, "--stage", "size", "--budget", "3"], "a budget is for provisioners"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.exit_code != 0
    assert said in done.output + done.stderr


def test_a_file_that_no_algorithm_can_read_is_refused_once() -> None:
    result = run("--stage", "size", str(EXAMPLES / "nasiri" / "linear.yaml"))
    assert result.exit_code == 1
    assert "headrace: no cluster: give a file with `cluster`" in result.stderr
    assert "refused" not in result.stdout
