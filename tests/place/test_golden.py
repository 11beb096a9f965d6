"""Worked examples: every tests/golden/<scheduler>.yaml lists some that a person can redo by hand.

    - example: the heaviest pair shares a slot     # a sentence: what the example shows
      source: Muhammad, fig. 3.4                   # where it comes from, or "by hand"
      files: [examples/muhammad/a3-example.yaml]   # files of the repository, and / or
      input: {cluster: {..}}                       # sections that replace those of the files
      by: a3-storm                                 # default: the golden file's name
      options: {alpha: 0.2}                        # and objective, seed, steps
      expect:                                      # at least one; what is absent is not checked
        nodes: {n1: [b, e], n2: [a]}               # all tasks of every node in use
        workers: {n1: {0: [b, e]}, n2: {0: [a]}}   # the same with slots
        groups: [[b, e], [a]]                      # who shares a worker, whichever it is
        node_groups: [[b, e, a]]                   # who shares a node, whichever it is
        report: {nodes_used: 1, bound.proven: true}    # figures; dots lead into the report
        error: free slots                          # a refusal that says this, and nothing else

A file named after a sizer holds workloads, whose tasks are counted and placed. Task names may be
ranges: split.{1..8}. The derivation is in comments beside the expectation. It comes from the paper
or from pencil and paper, never from our own output.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.build import build
from headrace.model.components import expand
from headrace.model.document import FORMAT
from headrace.model.problem import Assignment, Problem
from headrace.model.read import Inputs, parse, read_file, validated
from headrace.model.workload import Workload
from headrace.planner import Plan, place, size
from headrace.registry import entries

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
# A name that both have means the scheduler.
SIZERS = {e.name for e in entries("size")} - {e.name for e in entries("place")}

Groups = list[list[str]]


class Strict(BaseModel):
    """A mapping whose unknown keys are errors: a misspelt expectation would check nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Expect(Strict):
    nodes: dict[str, list[str]] | None = None
    workers: dict[str, dict[int, list[str]]] | None = None
    groups: Groups | None = None
    node_groups: Groups | None = None
    report: dict[str, Any] | None = Field(None, min_length=1)
    error: str | None = Field(None, min_length=1)


class Example(Strict):
    example: str = Field(min_length=10)
    source: str = Field(min_length=5)
    by: str = ""
    files: list[str] = []
    input: dict[str, Any] = {}
    options: dict[str, Any] = {}
    objective: str = "traffic"
    seed: int = 0
    steps: int | None = None
    expect: Expect

    def inputs(self) -> Inputs:
        """The files, with the example's own sections in the place of theirs."""
        content: dict[str, Any] = {"format": FORMAT}
        for name in self.files:
            content |= read_file(ROOT / name).content
        return validated(content | self.input, {})

    def plan(self, by: str) -> Plan:
        """What the scheduler makes of the problem, or the sizer of the workload."""
        if by in SIZERS:
            work = Workload(self.inputs())
            return size(work, by, options=self.options, seed=self.seed, steps=self.steps)
        return place(
            build(self.inputs()),
            by,
            options=self.options,
            objective=self.objective,
            seed=self.seed,
            steps=self.steps,
        )


def raw_examples() -> Iterable[Any]:
    """One case per example; a file that cannot be read is a case too, so that it fails alone."""
    for path in sorted(GOLDEN.glob("*.yaml")):
        try:
            content = parse(path.name, path.read_text(encoding="utf-8"))
            examples = (
                cast("list[Any]", content) if isinstance(content, list) and content else [content]
            )
        except InvalidInput as error:
            examples: list[Any] = [error]
        for number, raw in enumerate(examples, start=1):
            yield pytest.param(path.stem, raw, id=f"{path.stem}-{number}")


@pytest.mark.parametrize(("file", "raw"), list(raw_examples()))
def test_the_worked_example_comes_out(file: str, raw: object) -> None:
    if isinstance(raw, InvalidInput):
        pytest.fail(raw.message)
    check(example_of(raw), file)


@pytest.mark.parametrize("name", [entry.name for entry in entries("place")])
def test_every_scheduler_has_a_worked_example(name: str) -> None:
    assert (GOLDEN / f"{name}.yaml").exists()


def test_every_golden_file_is_named_after_an_algorithm() -> None:
    known = {entry.name for entry in entries()}
    assert [path.stem for path in GOLDEN.glob("*.yaml") if path.stem not in known] == []


def example_of(raw: object) -> Example:
    """An example as its file states it; every key it does not know is an error."""
    example = Example.model_validate(raw)
    if not example.expect.model_fields_set:
        raise AssertionError(f"`{example.example}` expects nothing")
    return example


def check(example: Example, file: str) -> None:
    """Run an example and compare what it expects."""
    expect, by = example.expect, example.by or file
    try:
        planned = example.plan(by)
    except HeadraceError as error:
        if expect.error is None:
            raise
        if expect.error not in error.message:
            raise AssertionError(
                f"a refusal with `{expect.error}` was expected, and it says: {error.message}"
            ) from error
        return
    assert expect.error is None, (
        f"a refusal with `{expect.error}` was expected, and there is a plan"
    )
    assert planned.assignment is not None
    assert planned.report is not None
    workers = tasks_by_worker(planned.problem, planned.assignment)
    if expect.workers is not None:
        wanted = {
            node: {slot: names(tasks) for slot, tasks in slots.items()}
            for node, slots in expect.workers.items()
        }
        assert workers == wanted
    nodes = {
        node: sorted(task for tasks in slots.values() for task in tasks)
        for node, slots in workers.items()
    }
    if expect.nodes is not None:
        assert nodes == {node: names(tasks) for node, tasks in expect.nodes.items()}
    if expect.groups is not None:
        assert sorted(tasks for slots in workers.values() for tasks in slots.values()) == sorted(
            map(names, expect.groups)
        )
    if expect.node_groups is not None:
        assert sorted(nodes.values()) == sorted(map(names, expect.node_groups))
    report = planned.report.to_json()
    found = {figure: look_up(report, figure) for figure in expect.report or {}}
    for figure, value in (expect.report or {}).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        assert found[figure] == (pytest.approx(value, rel=1e-6, abs=1e-9) if number else value), (
            f"{figure} of {found}"
        )


def names(tasks: Iterable[str]) -> list[str]:
    return sorted(name for task in tasks for name in expand(task))


def tasks_by_worker(problem: Problem, assignment: Assignment) -> dict[str, dict[int, list[str]]]:
    """Node -> slot -> its tasks by name; tasks of refused topologies are nowhere."""
    found: dict[str, dict[int, list[str]]] = {}
    for task in range(problem.task_count):
        node, slot = int(assignment.node[task]), int(assignment.worker[task])
        if node >= 0:
            found.setdefault(problem.nodes[node], {}).setdefault(slot, []).append(
                problem.task_name(task)
            )
    return {
        node: {slot: sorted(tasks) for slot, tasks in slots.items()}
        for node, slots in found.items()
    }


def look_up(report: object, figure: str) -> object:
    """`bound.value` is report["bound"]["value"]; a figure the report does not have is an error."""
    value = report
    for key in figure.split("."):
        assert isinstance(value, dict), f"the report has no `{figure}`"
        assert key in value, f"the report has no `{figure}`"
        value = cast("dict[str, object]", value)[key]
    return value


# The runner itself: an expectation that is wrong or misspelt must not pass.

ONE_TASK: dict[str, Any] = {
    "example": "one task on the only node there is",
    "source": "by hand",
    "input": {"tasks": {"a": {}}, "cluster": {"nodes": {"n1": {"slots": 1}}}},
}


def test_a_right_expectation_passes() -> None:
    expect = {
        "nodes": {"n1": ["a"]},
        "workers": {"n1": {0: ["a"]}},
        "groups": [["a"]],
        "node_groups": [["a"]],
    }
    check(
        example_of(
            {
                **ONE_TASK,
                "expect": {**expect, "report": {"nodes_used": 1, "bound.of": "inter_node_traffic"}},
            }
        ),
        "storm-even",
    )


@pytest.mark.parametrize(
    "expect",
    [
        {"nodes": {"n1": []}},
        {"nodes": {"n1": ["a", "b"]}},
        {"workers": {"n1": {1: ["a"]}}},
        {"groups": [["a"], ["b"]]},
        {"node_groups": []},
        {"report": {"nodes_used": 2}},
        {"report": {"feasible": False}},
        {"report": {"no_such_figure": 1}},
        {"error": "slots"},
        {},
    ],
)
def test_a_wrong_expectation_fails(expect: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        check(example_of({**ONE_TASK, "expect": expect}), "storm-even")


@pytest.mark.parametrize(
    "change",
    [
        {"expect": {"node": {"n1": ["a"]}}},
        {"expects": {}},
        {"expect": {"report": {}}},
        {"source": ""},
    ],
)
def test_a_misspelt_or_empty_key_is_an_error(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        example_of({**ONE_TASK, "expect": {"groups": [["a"]]}, **change})


def test_an_expected_refusal_is_compared_by_its_message() -> None:
    full: dict[str, Any] = {
        **ONE_TASK,
        "input": {
            "tasks": {"a": {}},
            "cluster": {"nodes": {"n1": {"slots": 1, "taken": {"slots": [0]}}}},
        },
    }
    check(example_of({**full, "expect": {"error": "free slot"}}), "storm-even")
    with pytest.raises(AssertionError):
        check(example_of({**full, "expect": {"error": "another message"}}), "storm-even")
