"""`check` warns of files that are valid and probably do not say what is meant."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.model.starter import STARTER

FILE = """
format: headrace/1
topology:
  name: words
  components:
    source: {spout: true, rate: 10}
    sink: {inputs: {source: shuffle}, %s}
%s
cluster: {nodes: {"a-{1..2}": {cpu: 400, memory_mb: 4096, slots: 2}%s}}
%s
"""


def warnings(text: str, *arguments: str) -> list[str]:
    found = CliRunner().invoke(main, ["check", "-", *arguments, "--json"], input=text)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)["check"]["warnings"]


def test_the_starter_file_has_nothing_to_warn_of() -> None:
    assert warnings(STARTER) == []


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("", "    other: {}", "", ""), "components.other: a bolt without inputs gets no tuples"),
        (("tasks: 4, max_tasks: 2", "", "", ""), "sink.tasks: 4 tasks, and `max_tasks` is 2"),
        (("memory_mb: 10, state_mb: 20", "", "", ""), "20 MB of state do not fit into `memory_mb`"),
        (("", "", ", b: {cpu: 1, taken: {cpu: 2}}", ""), "b.taken: 2 cpu taken of 1: nothing is"),
        (("", "", ', "n-{1..}": {}', ""), "`{1..}` is no range and is taken as a name"),
        (("", "", ', "n-{1..100001}": {}', ""), "stands for 100,001 nodes"),
        (("", "", "", "options: {a3-strom: {}}"), "no scheduler `a3-strom` (did you mean `a3-st"),
        (("", "", "", "options: {a3-storm: {alfa: 1}}"), "has no option `alfa` (did you mean"),
        (("", "", "", "options: {a3-storm: {alpha: x}}"), "option alpha is 'x'; float is needed"),
    ],
)
def test_what_is_probably_not_meant_is_warned_of(parts: tuple[str, ...], said: str) -> None:
    (only,) = warnings(FILE % parts)
    assert said in only
    assert only.startswith("standard input:")


def test_warnings_go_to_stderr_and_are_no_failure() -> None:
    text = FILE % ("tasks: 4, max_tasks: 2", "", "", "")
    found = CliRunner().invoke(main, ["check", "-"], input=text)
    assert (found.exit_code, found.stderr.count("warning: ")) == (0, 1)


def test_a_range_of_too_many_nodes_is_an_error() -> None:
    found = CliRunner().invoke(
        main, ["check", "-"], input=FILE % ("", "", ', "n-{1..2000000}": {}', "")
    )
    assert found.exit_code == 1
    assert "a range of more than 1,000,000 names" in found.stderr


def test_keys_that_the_scheduler_ignores_are_named() -> None:
    text = FILE % ("apart: true, nodes: [a-1]", "", "", "")
    assert warnings(text) == []
    ignored = warnings(text, "--by", "storm-even")
    assert [line.rpartition(": ")[2] for line in ignored] == [
        "storm-even does not look at `nodes`",
        "storm-even does not look at `apart`",
    ]
    alone = text.replace("name: words", "name: words\n  isolated_machines: 1")
    assert "headrace does not look at `isolated_machines`" in warnings(alone)[0]


@pytest.mark.parametrize("by", ["storm-even", "storm-ras", "dstorm", "a3-storm"])
def test_what_is_said_to_be_ignored_changes_no_plan(by: str) -> None:
    def assignment(text: str) -> object:
        found = CliRunner().invoke(main, ["place", "-", "--by", by, "--json"], input=text)
        return json.loads(found.stdout)["plan"]["assignment"]

    free = FILE % ("tasks: 2", "", "", "")
    ruled = FILE % ("tasks: 2, apart: true, nodes: [a-2, a-1]", "", "", "")
    assert assignment(ruled) == assignment(free)
