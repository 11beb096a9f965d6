"""What people see: the answer first, whole figures at any width, and nothing that a name can do."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.cli.help import EXAMPLES
from headrace.model.starter import STARTER

TOO_MUCH = """
format: headrace/1
topology:
  name: heavy
  components: {source: {spout: true, tasks: 4, cpu: 90}}
cluster: {nodes: {a: {cpu: 100, slots: 4}, b: {cpu: 100, slots: 4}}}
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    file = tmp_path / "app.yaml"
    file.write_text(STARTER)
    return str(file)


def run(*arguments: str, columns: int | None = None, given: str | None = None) -> Result:
    environment = {"COLUMNS": str(columns)} if columns else {}
    found = CliRunner(env=environment).invoke(main, list(arguments), input=given)
    assert not isinstance(found.exception, Exception) or isinstance(found.exception, SystemExit)
    return found


def test_place_answers_first_then_says_where_tasks_go(app: str) -> None:
    verdict, empty, first, second, *_ = run("place", app).stdout.splitlines()
    assert verdict == (
        "Proven optimal: 18,570 of 48,420 tuples/s cross between nodes. "
        "big-1 is the bottleneck with 20 % of its cpu left."
    )
    assert empty == ""
    assert first == "big-1  split 1-3, count 1-5, report"
    assert second == "big-2  sentence 1-2, split 4, count 6"


def test_a_plan_that_breaks_a_rule_says_so_first_and_fails_if_strict(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(TOO_MUCH)
    app = str(tmp_path / "app.yaml")
    loose = run("place", app, "--by", "storm-even")
    assert loose.exit_code == 0
    assert loose.stdout.startswith("Not feasible: node ")
    strict = run("place", app, "--by", "storm-even", "--strict")
    assert (strict.exit_code, strict.stdout.splitlines()[0]) == (
        3,
        loose.stdout.splitlines()[0],
    )
    assert run("compare", app, "--by", "storm-even", "--by", "ro-mod", "--strict").exit_code == 3


def test_strict_is_no_failure_where_the_plan_is_whole(app: str) -> None:
    assert run("place", app, "--strict", "--by", "headrace", "--steps", "1000").exit_code == 0


def test_compare_is_sorted_and_ends_with_who_wins(app: str) -> None:
    by = [word for name in ("ro-mod", "storm-even", "headrace") for word in ("--by", name)]
    lines = run("compare", app, *by).stdout.splitlines()
    names = [line.split()[0] for line in lines if line.startswith((" ro", " st", " he"))]
    assert names == ["headrace", "storm-even", "ro-mod"]
    assert lines[-1].startswith("Least traffic between nodes: headrace (18,570); highest sustaine")
    rows = json.loads(run("compare", app, *by, "--json").stdout)["results"]
    assert [row["scheduler"] for row in rows] == ["ro-mod", "storm-even", "headrace"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_tables_drop_columns_and_never_digits(app: str, columns: int) -> None:
    by = [word for name in ("storm-even", "headrace") for word in ("--by", name)]
    shown = run("compare", app, *by, columns=columns).stdout
    assert max(map(len, shown.splitlines())) <= columns
    table = [line.split() for line in shown.splitlines() if line.startswith((" head", " storm"))]
    rows = {row[0]: row for row in table}
    assert rows["headrace"][1:4] == ["yes", "18,570", "1.00"]
    assert rows["storm-even"][1:4] == ["yes", "36,350", "1.96"]
    assert ("no room for:" in shown) == (columns < 100)


def test_a_long_name_is_cut_in_its_middle_and_its_figures_stay(app: str) -> None:
    text = STARTER.replace("big-{1..2}", "n" * 90 + "-{1..2}")
    shown = run("place", "-", columns=60, given=text).stdout
    assert max(map(len, shown.splitlines())) <= 60
    assert "320 / 400" in shown
    assert any("…" in line and line.rstrip().endswith("320 / 400") for line in shown.splitlines())


def test_escape_sequences_of_names_never_reach_the_terminal(tmp_path: Path) -> None:
    text = STARTER.replace("word-count", '"\\e[31mred\\e[0m"').replace("report:", '"\\e]0;x\\a":')
    (tmp_path / "app.yaml").write_text(text)
    app = str(tmp_path / "app.yaml")
    for command in (["place"], ["check"], ["explain", "--task", "nobody.1"], ["compare"]):
        few = ["--by", "storm-even"] if command == ["compare"] else []
        found = run(command[0], app, *command[1:], *few)
        assert "\x1b" not in found.output
        assert "\x07" not in found.output
    assert "�]0;x�" in run("place", app, "--by", "storm-even").stdout


def test_a_dash_is_standard_input_and_can_be_read_once() -> None:
    assert run("check", "-", given=STARTER).exit_code == 0
    wrong = run("check", "-", given="format: headrace/1\ntopologie: {}\n")
    assert "standard input:2: topologie: unknown key" in wrong.stderr
    assert "is given twice" in run("check", "-", "-", given=STARTER).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["place", "app.yaml", "--out", "plan.txt"],
        ["compare", "app.yaml", "--out", "plan"],
        ["import", "flux", "app.yaml", "--out", "app.html"],
        ["export", "spark", "plan.json", "--out", "x.html"],
        ["demo", "--out", "x.json"],
    ],
)
def test_an_ending_that_says_nothing_is_refused_before_any_work(arguments: list[str]) -> None:
    found = run(*arguments)
    assert found.exit_code == 2
    assert "does not end in" in found.stderr


def test_machines_are_rented_beside_a_cluster_where_that_is_asked_for(app: str) -> None:
    def planned(*arguments: str) -> dict[str, object]:
        return json.loads(run("plan", app, *arguments, "--json").stdout)["plan"]

    assert "machines" not in planned("--rate", "3000")
    assert planned("--rent", "--rate", "3000")["machines"]
    assert planned("--budget", "1.2")["machines"]


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, command in group.commands.items():
        here = (*path, name)
        if isinstance(command, click.Group):
            found += commands(command, here)
        else:
            found.append((" ".join(here), command))
    return found


def test_every_command_has_json_and_two_examples_that_it_accepts() -> None:
    known = commands(main)
    assert {name for name, _ in known} == set(EXAMPLES)
    for name, command in known:
        assert any("--json" in p.opts for p in command.params), name
        assert len(EXAMPLES[name]) >= 2
        for example in EXAMPLES[name]:
            if f"headrace {name}" not in example:
                continue
            words = example.split(f"headrace {name}", 1)[1].strip(')"').split()
            ends = [i for i, word in enumerate(words) if word in ("|", ">", "&&")]
            command.make_context(name, words[: min([*ends, len(words)])])
        shown = run(*name.split(), "--help").stdout
        assert f"Examples:\n  {EXAMPLES[name][0]}" in shown


def test_help_lists_the_options_of_schedulers() -> None:
    shown = run("place", "--help").stdout
    assert "a3-storm          alpha=0.8, affinity='pair', leftovers='modulo'" in shown


def test_versions_are_those_that_a_bug_report_needs() -> None:
    lines = dict(line.split(" ", 1) for line in run("--version").stdout.splitlines())
    wanted = "headrace python numpy numba scipy pyspark pymetis java platform"
    assert set(lines) == set(wanted.split())
    assert lines["python"].startswith("3.")


LARGE = """
format: headrace/1
topology:
  name: large
  components:
    a: {spout: true, tasks: 300, rate: 900, cpu: 7}
    b: {tasks: 400, inputs: {a: shuffle}, cpu: 9, selectivity: 1.3}
    c: {tasks: 350, inputs: {b: fields, a: shuffle}, cpu: 11}
    d: {tasks: 200, inputs: {c: shuffle, b: shuffle}, cpu: 13}
cluster: {nodes: {"n-{1..40}": {cpu: 400, slots: 4}, "m-{1..30}": {cpu: 230, slots: 4}}}
"""


def test_ctrl_c_keeps_the_best_plan_and_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(LARGE)
    words = ["place", "app.yaml", "--steps", "2000000000", "--out", "plan.json"]
    terminal, behind = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=behind,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(behind)
    said = ""
    until = time.monotonic() + 240
    while "best " not in said and time.monotonic() < until:
        said += os.read(terminal, 4096).decode(errors="replace")
    assert "headrace places 1,250 tasks on 70 nodes" in said
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=240)
    os.close(terminal)
    assert process.returncode == 130
    assert "tuples/s cross between nodes" in out.decode()
    report = json.loads((tmp_path / "plan.json").read_text())["report"]
    assert (report["feasible"], report["stopped"]) == (True, "interrupted")
