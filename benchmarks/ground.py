"""Loading, validating and judging at scale, and how soon the command line answers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import PRODUCTION, Row, median_command, within

COMPONENTS, TASKS_EACH, NODES = 40, 25_000, 1_000


def million_tasks(folder: Path) -> list[str]:
    """A topology of 1,000,000 tasks on 1,000 nodes and a compact plan for it, as files."""
    components: dict[str, object] = {"c0": {"spout": True, "tasks": TASKS_EACH, "rate": 1e6, "cpu": 1, "memory_mb": 1}}
    for i in range(1, COMPONENTS):
        inputs = {f"c{j}": "shuffle" for j in {i - 1, i // 2} if j < i}
        components[f"c{i}"] = {"tasks": TASKS_EACH, "inputs": inputs, "selectivity": 0.5, "bytes": 10, "cpu": 1, "memory_mb": 1}
    node = {"cpu": 1200, "memory_mb": 2048, "slots": 4, "bandwidth_mbps": 100000}
    app = {"format": "headrace/1", "topology": {"components": components}, "cluster": {"nodes": {f"n{{1..{NODES}}}": node}}}
    each = TASKS_EACH // NODES
    runs = [[f"n{n + 1}", 0, n * each + 1, (n + 1) * each] for n in range(NODES)]
    plan = {"format": "headrace/1", "plan": {"placement": {name: runs for name in components}}}
    files = [folder / "app.json", folder / "plan.json"]
    for file, content in zip(files, (app, plan), strict=True):
        file.write_text(json.dumps(content))
    return [str(file) for file in files]


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    runs = 1 if quick else 5
    yield Row("headrace --help", *within(median_command(["--help"], runs)[0], 0.4, "s"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, megabytes = median_command(["judge", *million_tasks(folder), "--json"], runs)
        yield Row("judge a compact plan of 1,000,000 tasks on 1,000 nodes (whole command)", *within(seconds, 3, "s"))
        yield Row("  its peak memory", *within(megabytes, 600, "MB"))
        if not PRODUCTION.exists():
            yield Row("production cluster, 50 topologies", "SKIPPED: the file is not there", "<= 1 s", False)
            return
        app, plan = str(folder / "production.json"), str(folder / "production-plan.json")
        median_command(["import", "production", str(PRODUCTION), "--out", app], 1)
        median_command(["place", app, "--by", "storm-even", "--out", plan], 1)
        seconds, _ = median_command(["judge", app, plan, "--json"], runs)
        yield Row("judge the production cluster, 50 topologies, 1,414 tasks, 80 nodes (whole command)", *within(seconds, 1, "s"))
