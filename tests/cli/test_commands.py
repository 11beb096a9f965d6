"""The commands as people and scripts meet them: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.place import SCHEDULERS

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICKSTART = str(EXAMPLES / "quickstart.yaml")
WORD_COUNT = [str(EXAMPLES / "muhammad" / name) for name in ("word-count.yaml", "cluster.yaml")]

TOO_BIG = """
format: headrace/1
topology:
  name: heavy
  components:
    source: {spout: true, tasks: 2, cpu: 300}
    sink: {tasks: 2, inputs: {source: shuffle}, cpu: 300}
cluster: {nodes: {"a{1..2}": {cpu: 400, slots: 1}}}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def done(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*arguments: str) -> dict[str, Any]:
    return json.loads(done(*arguments, "--json"))


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    return result.stderr


def test_place_prints_the_contracts_object() -> None:
    content = as_json("place", *WORD_COUNT, "--by", "storm-even")
    assert list(content) == ["format", "scheduler", "seed", "seconds", "plan", "report"]
    assert content["format"] == "headrace/1"
    assert content["plan"]["tasks"] == {"spout": 5, "split": 8, "count": 12, "__acker": 3}
    assert len(content["plan"]["assignment"]) == 28
    assert set(content["plan"]["assignment"]["split.1"]) == {"node", "worker"}
    wanted = {
        "feasible", "violations", "total_traffic", "inter_node_traffic", "inter_worker_traffic",
        "nodes_used", "workers_used", "max_rate",
        "batch_seconds", "cost", "bottleneck", "bound", "gap", "stopped",
    }  # fmt: skip
    assert wanted <= set(content["report"])
    assert set(content["report"]["bound"]) == {"of", "value", "proven", "kind"}


def test_same_inputs_and_seed_give_the_same_bytes() -> None:
    first, second = (
        json.loads(done("place", QUICKSTART, "--json", "--seed", "3")) for _ in range(2)
    )
    assert json.dumps({**first, "seconds": 0}) == json.dumps({**second, "seconds": 0})


def test_a_plan_file_stands_alone_and_is_judged_as_when_it_was_made(tmp_path: Path) -> None:
    for name in ("plan.json", "plan.yaml"):
        plan = str(tmp_path / name)
        made = as_json("place", QUICKSTART, "--by", "storm-even", "--out", plan)
        judged = as_json("judge", plan)
        assert judged["report"] == made["report"]
        assert judged["scheduler"] == "storm-even"


def test_a_plan_file_given_with_its_topology_is_what_is_judged(tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    made = as_json("place", *WORD_COUNT, "--by", "storm-even", "--out", plan)
    assert as_json("judge", plan, *WORD_COUNT)["report"] == made["report"]


def test_a_plan_for_another_topology_is_refused(tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    done("place", QUICKSTART, "--by", "storm-even", "--out", plan)
    assert "the plan is for another topology or cluster" in refused("judge", plan, *WORD_COUNT)


def test_compact_plans_read_back_the_same(tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    made = as_json("place", *WORD_COUNT, "--compact", "--out", plan)
    assert "assignment" not in made["plan"]
    assert all(len(runs[0]) == 4 for runs in made["plan"]["placement"].values())
    assert as_json("judge", plan)["report"] == made["report"]


def test_compare_lists_every_scheduler_once() -> None:
    results = as_json("compare", *WORD_COUNT)["results"]
    assert [r["scheduler"] for r in results] == list(SCHEDULERS)
    table = done("compare", *WORD_COUNT)
    assert all(name in table for name in SCHEDULERS)


def test_diff_says_what_moves_and_what_it_gains(tmp_path: Path) -> None:
    plans = [str(tmp_path / f"{by}.json") for by in ("storm-even", "a3-storm")]
    for by, plan in zip(("storm-even", "a3-storm"), plans, strict=True):
        done("place", *WORD_COUNT, "--by", by, "--out", plan)
    change = as_json("diff", *plans)["diff"]
    before, after = (json.loads(Path(plan).read_text())["plan"]["assignment"] for plan in plans)
    moved = {task for task in before if before[task]["node"] != after[task]["node"]}
    assert {m["task"] for m in change["moved"]} == moved
    assert change["stayed"] == 28 - len(moved)
    assert change["figures"]["nodes_used"] == {"before": 3, "after": 1}
    assert as_json("diff", plans[0], plans[0])["diff"]["moved"] == []


def test_explain_tells_what_holds_a_task_and_what_blocks_it(tmp_path: Path) -> None:
    app = tmp_path / "app.yaml"
    app.write_text("""
format: headrace/1
tasks: {a: {cpu: 60}, b: {cpu: 60}, c: {cpu: 30, nodes: [right]}}
traffic: [[a, b, 9], [a, c, 2]]
cluster: {nodes: {left: {cpu: 100}, right: {cpu: 100}}}
plan: {assignment: {a: {node: left}, b: {node: right}, c: {node: right}}}
""")
    a = as_json("explain", str(app), "--task", "a")["explanation"]
    assert (a["node"], a["holds"], a["total"]) == ("left", 0, 11)
    assert a["elsewhere"] == [
        {"node": "right", "traffic": 11, "change": -11, "blocked": "cpu needs 60, 10 is free"}
    ]
    c = as_json("explain", str(app), "--task", "c")["explanation"]
    assert c["elsewhere"][0]["blocked"] == "c is pinned to other nodes"
    assert "right would save 11/s, but is blocked" in done(
        "explain", str(app), "--task", "a"
    ).replace("\n", " ")
    assert "there is no task `d`" in refused("explain", str(app), "--task", "d")


def test_explain_says_what_it_would_take_to_fit(tmp_path: Path) -> None:
    app = tmp_path / "app.yaml"
    app.write_text(TOO_BIG)
    result = run("explain", str(app), "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["kind"] == "infeasible"
    assert (error["resource"], error["needed"], error["available"]) == ("cpu", 1200, 800)
    assert error["fix"] == "add 1 node like a1"


def test_a_plan_that_overloads_what_its_scheduler_does_not_guard_is_marked_not_refused(
    tmp_path: Path,
) -> None:
    app = tmp_path / "app.yaml"
    app.write_text(TOO_BIG)
    report = as_json("place", str(app), "--by", "storm-even")["report"]
    assert report["feasible"] is False
    assert report["gap"] is None
    assert report["violations"][0]["message"] == "node a1: cpu needed 600, free 400"


def test_refusals_are_one_json_object_on_stdout_and_words_on_stderr(tmp_path: Path) -> None:
    result = run("place", str(tmp_path / "missing.yaml"), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["kind"] == "invalid-input"
    assert "no such file" in result.stderr


def test_wrong_usage_is_status_2() -> None:
    assert run("place").exit_code == 2
    assert run("place", QUICKSTART, "--by", "no-such").exit_code == 2
    assert run("place", QUICKSTART, "--option", "alpha").exit_code == 2


def test_options_are_checked_by_name_and_type() -> None:
    assert "did you mean `alpha`?" in refused(
        "place", QUICKSTART, "--by", "a3-storm", "--option", "alpa=1"
    )
    assert "option alpha is 'high'; float is needed" in refused(
        "place", QUICKSTART, "--by", "a3-storm", "--option", "alpha=high"
    )
    assert "one of pair, group" in refused(
        "place", QUICKSTART, "--by", "a3-storm", "--option", "affinity=x"
    )
    assert "storm-even has no option `alpha`" in refused(
        "place", QUICKSTART, "--by", "storm-even", "--option", "alpha=1"
    )
    done("place", QUICKSTART, "--by", "a3-storm", "--option", "alpha=1")


def test_check_says_what_a_file_describes() -> None:
    summary = as_json("check", *WORD_COUNT)["check"]
    assert (summary["tasks"], summary["nodes"], summary["components"]) == (28, 9, 4)
    assert done("check", WORD_COUNT[0]).startswith("good: ")


def test_init_writes_a_file_that_can_be_placed_and_never_overwrites(tmp_path: Path) -> None:
    file = str(tmp_path / "mine.yaml")
    done("init", file)
    assert as_json("place", file)["report"]["feasible"]
    assert "exists already" in refused("init", file)


def test_schema_is_json_schema_with_every_section() -> None:
    schema = json.loads(done("schema"))
    assert {"topology", "cluster", "profile", "streams", "traffic", "catalog", "options"} <= set(
        schema["properties"]
    )


def test_schedulers_tell_their_source_and_maturity() -> None:
    rows = as_json("schedulers")["schedulers"]
    assert [row["name"] for row in rows if row["folder"] == "place"] == list(SCHEDULERS)
    assert all(
        row[key] for row in rows for key in ("name", "folder", "source", "maturity", "guards")
    )


def test_import_gives_a_file_that_can_be_placed(tmp_path: Path) -> None:
    source = tmp_path / "cluster.json"
    components = [
        {"id": "s", "kind": "spout", "tasks": 2, "cpu": 10, "memory_mb": 100, "inputs": []},
        {
            "id": "b",
            "kind": "bolt",
            "tasks": 3,
            "cpu": 10,
            "memory_mb": 100,
            "inputs": [{"from": "s", "stream": "default", "grouping": "shuffle"}],
        },
    ]
    nodes = [{"id": "n1", "rack": "r", "cpu": 100, "memory_mb": 1000, "slots": 2}]
    topology = {"name": "t", "priority": 1, "worker_max_heap_mb": 800.0, "components": components}
    source.write_text(
        json.dumps(
            {
                "source": "test",
                "cpu_unit": "100 = one core",
                "nodes": nodes,
                "topologies": [topology],
            }
        )
    )
    out = str(tmp_path / "app.yaml")
    assert run("import", "production", str(source), "--out", out).exit_code == 0
    assert as_json("place", out, "--by", "storm-even")["plan"]["tasks"] == {"t/s": 2, "t/b": 3}
    assert yaml.safe_load(Path(out).read_text())["format"] == "headrace/1"


def test_html_reports_are_written_where_asked(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done("compare", *WORD_COUNT, "--out", str(out))
    assert out.read_text().lstrip().lower().startswith("<!doctype html>")


def test_the_demo_plans_with_every_scheduler_and_writes_its_report(tmp_path: Path) -> None:
    out = tmp_path / "demo.html"
    printed = done("demo", "--plan-only", "--out", str(out))
    assert all(name in printed for name in SCHEDULERS)
    assert out.stat().st_size > 10_000


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell: str) -> None:
    assert "_HEADRACE_COMPLETE" in done("completion", shell)


def test_help_needs_no_heavy_library() -> None:
    import subprocess
    import sys

    code = (
        "import sys, headrace.cli as c; c.main(['--help'], standalone_mode=False); print([m for m "
        "in ('numpy', 'scipy', 'yaml', 'pyspark', 'rich') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["place", QUICKSTART, "--by", "storm-even"],
        ["compare", QUICKSTART, "--by", "storm-even", "--by", "rstorm"],
        ["explain", QUICKSTART, "--by", "storm-even"],
        ["move", "--blocks", "2x3:3x2"],
        ["schedulers"],
    ],
)
def test_json_needs_no_library_for_the_terminal(arguments: list[str]) -> None:
    import subprocess
    import sys

    code = f"""
import sys, headrace.cli as c
c.main({[*arguments, "--json"]!r}, standalone_mode=False)
print([m for m in sys.modules if m.split(".")[0] == "rich"])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
