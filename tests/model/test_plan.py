"""Plans: written and read back, in both spellings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.document import PlanSection
from headrace.model.plan import (
    COMPACT_ABOVE,
    assignment_section,
    counts_section,
    made_from,
    read_assignment,
)
from headrace.model.problem import UNPLACED, Assignment
from headrace.model.read import validated

from .conftest import Build
from .documents import documents, problem_of


@given(documents(), st.data(), st.booleans())
def test_a_plan_reads_back_as_it_was_written(
    document: dict[str, Any], data: st.DataObject, compact: bool
):
    problem = problem_of(document)
    draw = data.draw
    count = problem.task_count
    node = np.array(
        draw(st.lists(st.integers(0, len(problem.nodes) - 1), min_size=count, max_size=count)),
        dtype=np.int64,
    )
    worker = np.array(
        draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)), dtype=np.int64
    )
    if len(problem.topologies) > 1:  # a topology may be refused as a whole
        refused = problem.topology[problem.component_of] == draw(
            st.integers(0, len(problem.topologies))
        )
        node[refused], worker[refused] = UNPLACED, UNPLACED
    section = json.loads(
        json.dumps(assignment_section(problem, Assignment(node, worker), compact=compact))
    )
    assert list(section) == ["placement" if compact else "assignment"]
    back = read_assignment(problem, PlanSection.model_validate(section))
    assert back.node.tolist() == node.tolist()
    assert back.worker.tolist() == worker.tolist()


def test_a_compact_placement_lists_runs_of_tasks(built: Build):
    problem = built(
        "topology: {components: {a: {tasks: 4}, b: {tasks: 2}}}\ncluster: {nodes: {n1: {}, n2: {}}}"
    )
    assignment = Assignment(np.array([0, 0, 1, 0, 0, 0]), np.array([0, 0, 0, 0, 0, 1]))
    assert assignment_section(problem, assignment, compact=True) == {
        "placement": {
            "a": [["n1", 0, 1, 2], ["n2", 0, 3, 3], ["n1", 0, 4, 4]],
            "b": [["n1", 0, 1, 1], ["n1", 1, 2, 2]],
        }
    }
    assert assignment_section(problem, assignment)["assignment"]["b.2"] == {
        "node": "n1",
        "worker": 1,
    }


def test_plans_of_many_tasks_are_compact_unasked(built: Build):
    problem = built(
        f"topology: {{components: {{a: {{tasks: {COMPACT_ABOVE + 1}}}}}}}\n"
        f"cluster: {{nodes: {{n: {{}}}}}}"
    )
    zeros = np.zeros(problem.task_count, dtype=np.int64)
    assert assignment_section(problem, Assignment(zeros, zeros)) == {
        "placement": {"a": [["n", 0, 1, COMPACT_ABOVE + 1]]}
    }


def test_a_plan_may_use_both_spellings_but_place_no_task_twice(built: Build):
    text = "topology: {components: {a: {tasks: 2}, b: {}}}\ncluster: {nodes: {n: {}}}\n"
    both = "plan: {placement: {a: [[n, 1, 1, 2]]}, assignment: {b.1: {node: n, worker: 2}}}"
    current = built(text + both).current
    assert current is not None
    assert current.worker.tolist() == [1, 1, 2]
    with pytest.raises(InvalidInput, match=r"the plan places a\.2 twice"):
        built(text + both.replace("b.1", "a.2"))


def test_a_plan_that_leaves_out_one_of_several_topologies_is_whole(built: Build):
    text = (
        "topologies: [{name: x, components: {a: {tasks: 2}}}, {name: y, components: {a: {}}}]\n"
        "cluster: {nodes: {n: {}}}\n"
    )
    current = built(text + "plan: {assignment: {x/a.1: {node: n}, x/a.2: {node: n}}}").current
    assert current is not None
    assert current.node.tolist() == [0, 0, UNPLACED]
    with pytest.raises(InvalidInput, match=r"it leaves out 1 of 2 tasks of `x`, first x/a\.2"):
        built(text + "plan: {assignment: {x/a.1: {node: n}}}")


def test_a_plan_of_bare_tasks_names_them_alone(built: Build):
    text = "tasks: {p: {}, q: {}}\ncluster: {nodes: {n: {}, m: {}}}\n"
    current = built(text + "plan: {assignment: {p: {node: m}, q: {node: n}}}").current
    assert current is not None
    assert current.node.tolist() == [1, 0]
    with pytest.raises(
        InvalidInput, match="it names the task `r`, which the topology does not have"
    ):
        built(text + "plan: {assignment: {r: {node: m}}}")


def test_a_plan_that_only_counts_is_no_current_plan(built: Build):
    assert (
        built(
            "topology: {components: {a: {}}}\ncluster: {nodes: {n: {}}}\nplan: {tasks: {a: 3}}"
        ).current
        is None
    )


def test_counts_are_listed_by_component(built: Build):
    problem = built(
        "topology: {components: {a: {tasks: 4}, b: {tasks: 2}}}\ncluster: {nodes: {n1: {}}}"
    )
    assert counts_section(problem) == {"a": 4, "b": 2}
    assert counts_section(problem, [1]) == {"b": 2}


def test_a_plan_keeps_what_the_files_said_and_no_defaults():
    said = {
        "topology": {"components": {"a": {"tasks": 2}}},
        "streams": [{"from": "a", "to": "a"}],
        "options": {"x": {"y": 1}},
    }
    assert made_from(validated({"format": "headrace/1", **said, "seed": 3}, {}).document) == said


@given(documents())
def test_the_sections_kept_in_a_plan_make_the_same_problem(document: dict[str, Any]):
    inputs = validated(document, {})
    kept = made_from(inputs.document)
    again = build(validated({"format": "headrace/1", **json.loads(json.dumps(kept))}, {}))
    before = build(inputs)
    assert again.components == before.components
    assert again.rate.tolist() == before.rate.tolist()
    assert again.share.tolist() == before.share.tolist()
    assert again.pairs.tuples_per_s.tolist() == before.pairs.tuples_per_s.tolist()
    assert again.notes == before.notes
