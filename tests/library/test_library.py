"""The library as someone uses it who has never seen the inside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError

HEAVY = ("numba", "scipy", "rich", "pyspark", "pandas", "pyarrow", "networkx")


@pytest.fixture(scope="module")
def case() -> hr.Case:
    return hr.load(hr.example("quickstart.yaml"))


def run_python(code: str, **options: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_headrace_loads_nothing_heavy() -> None:
    code = "import sys, headrace; print([m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_names_stay_functions_after_folders_of_the_same_name_are_imported() -> None:
    code = (
        "import headrace.place.storm_even, headrace.size, headrace.judge.report, headrace.move\n"
        "import headrace as hr\n"
        "print(callable(hr.place), callable(hr.size), callable(hr.judge), callable(hr.move))"
    )
    assert run_python(code).split() == ["True"] * 4


def test_every_public_name_is_there_and_documented() -> None:
    for name in hr.__all__:
        thing = getattr(hr, name)
        assert thing.__doc__, name
    assert set(hr.__all__) <= set(dir(hr))
    with pytest.raises(AttributeError, match=r"no attribute 'plase'"):
        getattr(hr, "plase")  # noqa: B009 - the name is the point


def test_a_case_can_be_built_in_python_or_from_sections(case: hr.Case) -> None:
    topology = hr.Topology("t").spout("a", rate=5, cpu=10).bolt("b", inputs={"a": "shuffle"})
    cluster = hr.Cluster().add("n{1..2}", cpu=100, slots=1)
    built = hr.case(topology, cluster)
    sections = hr.case(built.to_dict())
    assert hr.place(built).node_of == hr.place(sections).node_of
    assert hr.case(case.to_dict()).problem.components == case.problem.components


def test_a_wrong_case_is_refused_by_name() -> None:
    with pytest.raises(hr.InvalidInput, match=r"slotz.*did you mean `slots`"):
        hr.case(hr.Cluster().add("n", slotz=1))
    with pytest.raises(hr.InvalidInput, match=r"`n` is given twice"):
        hr.Cluster().add("n").add("n")
    with pytest.raises(hr.InvalidInput, match=r"section `cluster` is given twice"):
        hr.case(hr.Cluster().add("n"), cluster={"nodes": {"m": {}}})
    with pytest.raises(hr.InvalidInput, match=r"no file"):
        hr.load()


def test_a_plan_says_where_tasks_are_and_prints_in_two_lines(case: hr.Case) -> None:
    plan = hr.place(case)
    assert plan.node_of["report.1"] == "big-1"
    assert list(plan.node_of) == list(plan.worker_of)
    assert len(repr(plan).splitlines()) == 2
    assert "<svg" in plan._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert plan.html().startswith("<!doctype html>")
    frame = plan.to_frame()
    assert dict(zip(frame["task"], frame["node"], strict=True)) == plan.node_of


def test_a_saved_plan_stands_alone(case: hr.Case, tmp_path: Path) -> None:
    plan = hr.place(case, by="storm-even")
    for name in ("plan.json", "plan.yaml"):
        again = hr.load_plan(plan.save(tmp_path / name))
        assert again.scheduler == "storm-even"
        assert again.node_of == plan.node_of
        assert again.report.inter_node_traffic == plan.report.inter_node_traffic
    sized = hr.size(case, rate=3000)
    assert hr.load_plan(sized.save(tmp_path / "sized.json")).tasks == sized.tasks


def everything_on(node: str) -> Any:
    def place(problem: hr.Problem) -> dict[str, str]:
        return {problem.task_name(task): node for task in range(problem.task_count)}

    return place


def test_any_function_is_a_scheduler(case: hr.Case) -> None:
    plan = hr.place(case, by=everything_on("big-1"))
    assert plan.scheduler == "place"
    assert plan.report.nodes_used == 1
    assert not plan.report.feasible


def test_a_function_gets_its_options_and_the_request(case: hr.Case) -> None:
    seen: dict[str, Any] = {}

    def mine(problem: hr.Problem, request: hr.Request, *, factor: float = 1.0) -> Any:
        seen.update(seed=request.seed, objective=request.objective, factor=factor)
        return everything_on("big-2")(problem)

    hr.place(case, by=mine, seed=7, objective="rate", factor=2)
    assert seen == {"seed": 7, "objective": "rate", "factor": 2.0}
    with pytest.raises(hr.InvalidInput, match=r"no option `facto`.*did you mean `factor`"):
        hr.place(case, by=mine, facto=2)


def test_what_a_function_gets_wrong_is_named(case: hr.Case) -> None:
    with pytest.raises(hr.InvalidInput, match=r"place: .*node `nowhere`"):
        hr.place(case, by=everything_on("nowhere"))
    with pytest.raises(hr.InvalidInput, match=r"leaves out 12 of 13 tasks"):
        hr.place(case, by=lambda problem: {"split.1": "big-1"})
    with pytest.raises(hr.InvalidInput, match=r"gave int; an Assignment or {task: node} is needed"):
        hr.place(case, by=lambda problem: 5)
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(
        hr.InvalidInput, match=r"gave 1 entries of `node`; the problem has 13 tasks"
    ):
        hr.place(case, by=lambda problem: hr.Assignment(one, one))


def test_compare_keeps_refusals_and_broken_plug_ins_as_rows(case: hr.Case) -> None:
    def broken(problem: hr.Problem) -> Any:
        raise KeyError("oops")

    def shy(problem: hr.Problem) -> Any:
        raise hr.Unsupported("not this one", fix="another")

    table = hr.compare(case, by=["headrace", broken, shy])
    assert [type(row).__name__ for row in table] == ["Plan", "Refusal", "Refusal"]
    assert table.best is not None
    assert table.best.scheduler == "headrace"
    assert "KeyError" in str(table["broken"].error)  # pyright: ignore[reportAttributeAccessIssue]
    frame = table.to_frame()
    assert list(frame["scheduler"]) == ["headrace", "broken", "shy"]
    assert frame["refusal"][2] == "not this one"
    assert "refused: not this one" in repr(table)
    assert "<table" in table._repr_html_()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(hr.InvalidInput, match=r"`shi` was not compared.*did you mean `shy`"):
        table["shi"]


def test_a_refusal_is_an_exception_with_fields(case: hr.Case) -> None:
    with pytest.raises(hr.Infeasible) as refused:
        hr.place(case.what_if(rate_factor=10))
    assert refused.value.resource == "cpu"
    assert refused.value.needed > refused.value.available  # pyright: ignore[reportOptionalOperand]
    assert isinstance(refused.value, HeadraceError)


def test_judge_takes_plans_of_any_origin(case: hr.Case, tmp_path: Path) -> None:
    plan = hr.place(case)
    file = plan.save(tmp_path / "plan.json")
    for given in (plan, plan.assignment, plan.node_of, str(file)):
        assert hr.judge(case, given).report.inter_node_traffic == plan.report.inter_node_traffic


def test_from_one_plan_to_another(case: hr.Case) -> None:
    even, plan = hr.place(case, by="storm-even"), hr.place(case)
    change, steps = hr.diff(even, plan), hr.move(even, plan)
    assert change.moved_mb > 0
    assert steps.moves.units <= change.moved_mb
    assert steps.to_json()["report"]["makespan"] == steps.moves.makespan
    order = hr.move_safely(even, plan, max_moves=3)
    assert len(order.moves) <= 3
    streams = hr.explain(plan)
    assert isinstance(streams, list)
    assert sum(s.crossing for s in streams) == pytest.approx(plan.report.inter_node_traffic)


def test_all_stages_with_a_catalog(case: hr.Case) -> None:
    sections = {k: v for k, v in case.to_dict().items() if k in ("topology", "profile")}
    del sections["topology"]["components"]["report"]["nodes"]
    catalog = {
        "big": {"price": 0.4, "cpu": 400, "memory_mb": 8192},
        "small": {"price": 0.1, "cpu": 200, "memory_mb": 4096},
    }
    plan = hr.plan(hr.case(sections, catalog=catalog), rate=3000)
    assert plan.stages is not None
    assert plan.machines is not None
    assert plan.report.cost == pytest.approx(
        sum(catalog[kind]["price"] * n for kind, n in plan.machines.items())
    )


def test_a_module_in_the_current_folder_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def all_on_first(problem):\n"
        "    return {problem.task_name(t): problem.nodes[0] for t in range(problem.task_count)}\n"
    )
    command = [sys.executable, "-m", "headrace.cli", "place", str(hr.example("quickstart.yaml"))]
    done = subprocess.run(
        [*command, "--by", "mine:all_on_first", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["scheduler"] == "mine:all_on_first"
    assert content["report"]["nodes_used"] == 1
    for wrong, said in (("mine:all_on_last", "no function"), ("yours:f", "no module `yours`")):
        done = subprocess.run(
            [*command, "--by", wrong], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
