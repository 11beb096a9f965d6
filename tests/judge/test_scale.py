"""A million tasks are a normal size: judging them takes memory for tasks, not for their pairs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.checks.problems import Content, problem_of
from headrace.judge.report import judge
from headrace.model.problem import Problem

COMPONENTS, TASKS_EACH, NODES = 40, 25_000, 1_000
MOST_MB = 600


def million() -> Problem:
    """A chain of 40 components of 25,000 tasks, 25 of each on every node, from a compact plan.

    Every stream carries 1,000,000 tuples/s; components alternate between two slots of each node,
    two by two.
    """
    names = [f"c{i:02d}" for i in range(COMPONENTS)]
    each = TASKS_EACH // NODES
    components: dict[str, Any] = {names[0]: {"spout": True, "rate": 1_000_000}}
    components |= {name: {"inputs": {before: "shuffle"}} for before, name in pairwise(names)}
    content: Content = {
        "topology": {
            "components": {
                name: spec | {"tasks": TASKS_EACH, "cpu": 2, "bytes": 10}
                for name, spec in components.items()
            }
        },
        "cluster": {
            "nodes": {f"n{{1..{NODES}}}": {"slots": 2, "cpu": 4000, "bandwidth_mbps": 1000}}
        },
        "plan": {
            "placement": {
                name: [
                    [f"n{n + 1}", i // 2 % 2, n * each + 1, (n + 1) * each] for n in range(NODES)
                ]
                for i, name in enumerate(names)
            }
        },
    }
    return problem_of(content)


def judge_a_million() -> Content:
    problem = million()
    assert problem.current is not None
    report = judge(problem, problem.current)
    figures = {
        key: getattr(report, key)
        for key in (
            "feasible",
            "total_traffic",
            "inter_node_traffic",
            "inter_worker_traffic",
            "max_rate",
        )
    }
    return {
        "tasks": problem.task_count,
        "cpu": report.nodes["n7"]["cpu"],
        "peak_mb": peak_mb(),
        **figures,
    }


def peak_mb() -> float:
    """The most memory this process held.

    Linux carries the parent's peak into rusage; there the process' own mark is read.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(
            int(line.split()[1]) / 1024
            for line in status.read_text().splitlines()
            if line.startswith("VmHWM")
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def test_a_million_tasks_are_judged_in_little_memory() -> None:
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "tests.judge.test_scale"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert found["peak_mb"] < MOST_MB
    assert found["tasks"] == 1_000_000
    # 39 streams of 1,000,000; a node keeps a thousandth of each. Of those, 20 join components of
    # one slot and 19 do not.
    assert found["total_traffic"] == pytest.approx(39e6)
    assert found["inter_node_traffic"] == pytest.approx(39e6 * 0.999)
    assert found["inter_worker_traffic"] == pytest.approx(39e6 * 0.999 + 19e6 * 0.001)
    # 40 x 25 tasks of 2 points per node; 39 x 1000 tuples/s x 0.999 x 10 bytes = 3.12 Mbit/s each
    # way.
    assert found["cpu"] == pytest.approx(2000)
    assert found["max_rate"] == pytest.approx(2)
    assert found["feasible"]


def test_a_stream_with_one_task_of_a_million_elsewhere_still_crosses() -> None:
    problem = problem_of(
        {
            "topology": {
                "components": {
                    "a": {"spout": True, "rate": 1000},
                    "b": {"tasks": 999_999, "inputs": {"a": "shuffle"}},
                }
            },
            "cluster": {"nodes": {"n1": {"slots": 1}, "n2": {"slots": 1}}},
            "plan": {
                "placement": {
                    "a": [["n1", 0, 1, 1]],
                    "b": [["n1", 0, 1, 999_998], ["n2", 0, 999_999, 999_999]],
                }
            },
        }
    )
    assert problem.current is not None
    assert np.isclose(judge(problem, problem.current).inter_node_traffic, 1000 / 999_999, rtol=1e-6)


if __name__ == "__main__":
    print(json.dumps(judge_a_million()))
