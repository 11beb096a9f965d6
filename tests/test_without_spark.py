"""Headrace where Spark is not installed: planning works, and all else is refused in words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("pyspark", "py4j", "pyarrow", "pandas")
# In a process of its own: here other tests have imported everything.
SCRIPT = """
import json, sys
sys.modules.update(dict.fromkeys({packages}))
from click.testing import CliRunner
from headrace.cli import main

answers = []
for words in json.load(sys.stdin):
    result = CliRunner().invoke(main, words)
    trace = None if isinstance(result.exception, SystemExit | None) else repr(result.exception)
    answers.append([result.exit_code, result.stdout, result.stderr, trace])
json.dump(answers, sys.stdout)
"""
CLUSTER = "cluster: {nodes: {n1: {cpu: 100}}}"
TOPOLOGY = "topology: {components: {a: {spout: true, rate: 5}, b: {inputs: {a: shuffle}}}}"
NEED_SPARK = {
    "run": ["run", "word-count"],
    "fleet up": ["fleet", "up", "FILE"],
    "observe": ["observe", "FOLDER"],
    "import spark-log": ["import", "spark-log", "FOLDER"],
    "lab run": ["lab", "run", "muhammad"],
    "lab report": ["lab", "report", "--store", "FOLDER"],
    "demo": ["demo", "--out", "FOLDER/demo.html"],
}
DO_NOT = {
    "place": ["place", "FILE", "--by", "storm-even", "--out", "FOLDER/plan.json"],
    "judge": ["judge", "FOLDER/plan.json", "--json"],
    "export": ["export", "spark", "FOLDER/plan.json"],
    "lab list": ["lab", "list"],
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str, str]]:
    """What every command answers there: status, what it printed, and an error of Python's."""
    folder = tmp_path_factory.mktemp("bare")
    file = folder / "app.yaml"
    file.write_text(f"format: headrace/1\n{TOPOLOGY}\n{CLUSTER}\n")
    commands = {
        name: [word.replace("FILE", str(file)).replace("FOLDER", str(folder)) for word in words]
        for name, words in {**NEED_SPARK, **DO_NOT}.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(packages=PACKAGES)],
        input=json.dumps(list(commands.values())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("command", NEED_SPARK)
def test_what_needs_spark_says_so_in_one_line(
    command: str, answers: dict[str, tuple[int, str, str, str]]
) -> None:
    status, _, stderr, trace = answers[command]
    assert (status, trace) == (1, None)
    refusal, fix = stderr.splitlines()
    assert refusal.startswith(f"headrace: `{command}` needs Spark, which is not installed")
    assert "pip install 'headrace[spark]'" in fix


@pytest.mark.parametrize("command", DO_NOT)
def test_all_else_works(command: str, answers: dict[str, tuple[int, str, str, str]]) -> None:
    status, _, stderr, trace = answers[command]
    assert (status, trace) == (0, None), stderr


def test_the_node_agent_needs_pyarrow_and_says_so(tmp_path: Path) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({PACKAGES})); "
    call = "sys.argv[1:] = ['x']; from headrace.observe.node_agent import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", blocked + call],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "needs Spark, which is not installed" in done.stderr


def test_planning_does_not_import_spark() -> None:
    names = "import headrace.cli, headrace.planner, headrace.model.topology, headrace.run, sys; "
    found = f"print([name for name in {PACKAGES} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", names + found], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
