"""`headrace profile`: machine types of a cluster file, lines, JSON and files to plan with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.cli.profiling import cost_line, wait_lines
from headrace.control import profiling_by_type
from headrace.control.profiling import Cost, Interval, Ramp
from headrace.control.profiling_by_type import ThreadLimit

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    big-{1..2}: {type: big, cpu: 400, memory_mb: 1024}
    small:      {type: small, cpu: 40, memory_mb: 256}
"""
APP = """
format: headrace/1
topology:
  name: pass
  components:
    number: {spout: true, rate: 1000}
    work: {inputs: {number: shuffle}, tasks: 2}
"""


def cost(component: str, cpu_ms: float, wall_ms: float, high: float | None = None) -> Cost:
    exact = Interval(cpu_ms, cpu_ms, cpu_ms)
    wall = Interval(wall_ms, wall_ms / 2, high or 2 * wall_ms)
    sent = {"work": 1.0} if component == "number" else {}
    return Cost(component, exact, Interval(3, 2, 4), wall, sent, dict.fromkeys(sent, 16.0), 0.9, 32)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster file, and costs without a measurement."""

    def measure(
        _: Ramp, limits: Sequence[ThreadLimit], say: Callable[[ThreadLimit], None]
    ) -> Iterator[tuple[ThreadLimit, list[Cost]]]:
        for limit in limits:
            say(limit)
            wall_ms = 0.2 * 100 / limit.points
            yield limit, [cost("number", 0.2, wall_ms), cost("work", 0.2, wall_ms)]

    monkeypatch.setattr(profiling_by_type, "profile_types", measure)
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return file


def test_all_types_of_the_file_are_profiled_and_the_result_plans(
    cluster: Path, tmp_path: Path
) -> None:
    app, out = tmp_path / "app.yaml", tmp_path / "profile.yaml"
    app.write_text(APP)
    asked = ["profile", "word-count", "--fleet", str(cluster)]
    done = CliRunner().invoke(main, [*asked, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert "on small, a thread has 40 points of CPU:\n  number: " in done.stderr
    assert "a thread does 2,000 (1,000 to 4,000) tuples/s" in done.stderr
    said = json.loads(done.stdout)
    assert list(said["profile"]["work"]) == ["big", "small"]
    assert [(c["type"], c["most_per_s"]["value"]) for c in said["report"]["costs"]] == [
        ("big", 5000), ("big", 5000), ("small", 2000), ("small", 2000),
    ]  # fmt: skip
    assert "report" not in out.read_text()
    (tmp_path / "profile.json").write_text(done.stdout)
    plan, files = tmp_path / "plan.json", [str(app), str(cluster)]
    for more in (
        ["profile.yaml", "--out", str(plan)],
        ["profile.yaml", str(plan)],
        ["profile.json"],
    ):
        placed = CliRunner().invoke(main, ["place", *files, str(tmp_path / more[0]), *more[1:]])
        assert placed.exit_code == 0, placed.output


def test_only_the_types_asked_for_are_profiled(cluster: Path) -> None:
    asked = ["profile", "word-count", "--fleet", str(cluster), "--json"]
    done = CliRunner().invoke(main, [*asked, "--on", "small"])
    assert list(json.loads(done.stdout)["profile"]["work"]) == ["small"]
    wrong = CliRunner().invoke(main, [*asked, "--on", "smal"])
    assert wrong.exit_code == 1
    assert "did you mean `small`?" in json.loads(wrong.stdout)["error"]["message"]


def test_one_machine_has_one_type() -> None:
    done = CliRunner().invoke(main, ["profile", "word-count", "--on", "i5", "--on", "i7"])
    assert done.exit_code == 2
    assert "without --fleet there is one machine: give one --on" in done.stderr


def test_a_rate_without_a_bound_says_so() -> None:
    assert "a thread does 5,000 (2,500 to 10,000) tuples/s" in cost_line(cost("work", 0.2, 0.2))
    free = Interval(0.2, 0.0, 0.4)
    line = cost_line(Cost("work", free, free, free, {}, {}, 0.1, 32))
    assert "a thread does 5,000 (2,500 or more) tuples/s" in line
    assert free.to_rate().high == math.inf


def test_waiting_that_the_limit_does_not_explain_is_said() -> None:
    assert wait_lines([cost("work", 0.2, 0.5)], 40) == []
    (line,) = wait_lines([cost("work", 0.2, 1.0)], 40)
    assert line.startswith("by the clock tuples took 2 times what their CPU explains")
