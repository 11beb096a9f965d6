"""Loading, validating and judging at scale, and how soon the command line answers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import PRODUCTION, Row, command, median_command, median_seconds, within

from headrace.model.build import build
from headrace.model.read import read
from headrace.planner import judge_current

COMPONENTS, TASKS_EACH, NODES = 40, 25_000, 1_000


def million_tasks(folder: Path) -> list[str]:
    """A topology of 1,000,000 tasks on 1,000 nodes and a compact plan for it, as files."""
    components: dict[str, object] = {
        "c0": {"spout": True, "tasks": TASKS_EACH, "rate": 1e6, "cpu": 1, "memory_mb": 1}
    }
    for i in range(1, COMPONENTS):
        inputs = {f"c{j}": "shuffle" for j in {i - 1, i // 2} if j < i}
        components[f"c{i}"] = {
            "tasks": TASKS_EACH,
            "inputs": inputs,
            "selectivity": 0.5,
            "bytes": 10,
            "cpu": 1,
            "memory_mb": 1,
        }
    node = {"cpu": 1200, "memory_mb": 2048, "slots": 4, "bandwidth_mbps": 100000}
    app = {
        "format": "headrace/1",
        "topology": {"components": components},
        "cluster": {"nodes": {f"n{{1..{NODES}}}": node}},
    }
    each = TASKS_EACH // NODES
    runs = [[f"n{n + 1}", 0, n * each + 1, (n + 1) * each] for n in range(NODES)]
    plan = {"format": "headrace/1", "plan": {"placement": {name: runs for name in components}}}
    files = [folder / "app.json", folder / "plan.json"]
    for file, content in zip(files, (app, plan), strict=True):
        file.write_text(json.dumps(content))
    return [str(file) for file in files]


def load_and_judge(files: list[str]) -> None:
    """What `headrace judge` does, in this process."""
    judge_current(build(read(files)))


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    runs = 1 if quick else 5
    yield Row("headrace --help", *within(median_command(["--help"], runs)[0], 0.4, "s"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = million_tasks(folder)
        yield Row(
            "load, validate and judge a compact plan: 1,000,000 tasks, 1,000 nodes",
            *within(median_seconds(lambda: load_and_judge(files), runs), 3, "s"),
        )
        seconds, megabytes = median_command(["judge", *files, "--json"], runs)
        yield Row("  as a command: peak memory", *within(megabytes, 600, "MB"))
        yield Row("  as a command: seconds, libraries' start included", f"{seconds:.2f} s")
        app, plan = str(folder / "production.json"), str(folder / "production-plan.json")
        command(["import", "production", str(PRODUCTION), "--out", app])
        command(["place", app, "--by", "storm-even", "--out", plan])
        seconds = median_seconds(lambda: load_and_judge([app, plan]), runs)
        yield Row(
            "load, validate and judge the production cluster: 50 topologies, 1,414 tasks, 80 nodes",
            *within(seconds, 1, "s"),
        )
