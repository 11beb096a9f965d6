"""Clusters like the production ones, generated: the whole command beside storm-ras, and its growth.

The one we are judged by is larger than both files: 1,900 nodes of eight types in 21 racks, 36,000
tasks. These are drawn from a seed. Topologies are those of the two files, drawn with replacement;
the tasks of all their components grow or shrink by one log-normal factor. Machine types have 11 to
48 cores and 2 to 7 GB for each; racks hold one or two types. CPU and memory are then scaled so that
65 to 80 % of all CPU and 35 to 70 % of all memory are asked for, though every task fits some node.

Time is processor time of the whole command in a process of its own: reading, placing, judging and
the bound.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import LARGE_PRODUCTION, PRODUCTION, Row
from problems import EXAMPLES

from headrace.model.production import production

NODES, TYPES, RACKS, TASKS = 1_900, 8, 21, 36_000
SEEDS = range(1, 6)  # chosen before any result was seen
GROWTH = (250, 500, 1_000, 2_000)  # nodes, with as many tasks to each
MOST_TIMES, MOST_S = 4.0, 4.0  # of storm-ras's time, or seconds: the larger one counts
MOST_TRAFFIC = 0.85  # of storm-ras's
SPREAD = 0.5  # of the logarithm of the factor on task counts


def generate(seed: int, nodes: int = NODES, tasks: int = TASKS) -> dict[str, Any]:
    """A cluster in the layout of the production files."""
    rng = np.random.default_rng([seed, nodes])
    known = [t for file in (LARGE_PRODUCTION, PRODUCTION) for t in _content(file)["topologies"]]
    topologies: list[dict[str, Any]] = []
    missing = tasks
    while missing > 0:
        drawn = known[int(rng.integers(len(known)))]
        factor = float(rng.lognormal(0.0, SPREAD))
        parts = [
            {**part, "tasks": max(1, min(missing, round(factor * part["tasks"])))}
            for part in drawn["components"]
        ]
        missing -= sum(part["tasks"] for part in parts)
        name = f"topology-{len(topologies):03d}"
        topologies.append({**drawn, "name": name, "components": parts})
    return {"nodes": _nodes(rng, nodes, topologies), "topologies": topologies}


def _nodes(
    rng: np.random.Generator, nodes: int, topologies: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Nodes of eight types in racks of one or two types, large enough for the topologies."""
    cores = rng.integers(11, 49, TYPES).astype(np.float64)
    gigabytes = cores * rng.uniform(2.0, 7.0, TYPES)
    in_rack = [rng.choice(TYPES, int(rng.integers(1, 3)), replace=False) for _ in range(RACKS)]
    in_rack[: TYPES // 2] = np.arange(TYPES).reshape(-1, 2)  # every type is somewhere
    rack = np.sort(np.arange(nodes) % RACKS)
    kind = np.array([rng.choice(in_rack[r]) for r in rack])
    parts = [part for topology in topologies for part in topology["components"]]
    size = {}
    for key, each, share in (
        ("cpu", 100 * cores, rng.uniform(0.65, 0.80)),
        ("memory_mb", 1024 * gigabytes, rng.uniform(0.35, 0.70)),
    ):
        need = sum(part["tasks"] * part[key] for part in parts)
        scaled = each * need / (share * each[kind].sum())
        scaled *= max(1.0, 1.05 * max(part[key] for part in parts) / scaled[kind].max())
        size[key] = np.round(scaled, -2 if key == "cpu" else 0)
    return [
        {
            "id": f"r{rack[n]:02d}n{n:04d}",
            "rack": f"r{rack[n]:02d}",
            "cpu": float(size["cpu"][kind[n]]),
            "memory_mb": float(size["memory_mb"][kind[n]]),
            "slots": 50,
        }
        for n in range(nodes)
    ]


def _content(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command took and said."""

    cpu_s: float
    report: dict[str, Any]  # empty where it refused

    @property
    def verdict(self) -> str:
        """Feasible, or what is wrong."""
        if not self.report:
            return "refused"
        refused = len(self.report.get("unplaced") or ())
        if refused:
            return f"{refused} topologies refused"
        return "feasible" if self.report["feasible"] else "overloaded"


def run(file: Path, by: str) -> Outcome:
    """The whole command in a process of its own."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "place", str(file), "--by", by, "--json"],
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        _, _, used = os.wait4(process.pid, 0)
        out.seek(0)
        answer: dict[str, Any] = json.loads(out.read() or b"{}")
    return Outcome(used.ru_utime + used.ru_stime, answer.get("report") or {})


def compare(name: str, source: Path) -> Iterator[Row]:
    """Both schedulers on one cluster."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        file.write_text(json.dumps(production(source)), encoding="utf-8")
        ras, ours = run(file, "storm-ras"), run(file, "headrace")
    most = max(MOST_S, MOST_TIMES * ras.cpu_s)
    yield Row(
        f"{name}: whole command, processor; storm-ras {ras.cpu_s:.2f} s ({ras.verdict})",
        f"{ours.cpu_s:.2f} s ({ours.cpu_s / ras.cpu_s:.2f} x)",
        f"<= {most:.2f} s",
        ours.cpu_s <= most,
    )
    whole = ours.verdict == "feasible"
    yield Row("  nothing overloaded, none refused", ours.verdict, "feasible", whole)
    if not whole or ras.verdict != "feasible":
        return
    theirs = ras.report["inter_node_traffic"]
    ratio = ours.report["inter_node_traffic"] / theirs
    yield Row(
        "  its traffic / storm-ras's", f"{ratio:.3f}", f"<= {MOST_TRAFFIC}", ratio <= MOST_TRAFFIC
    )
    least = ours.report["bound"]["value"] / theirs
    yield Row("    no plan is below, by the bound of that command", f"{least:.3f}")


def growth() -> Iterator[Row]:
    """How processor time grows with nodes and tasks together, without the start of the command."""
    start_s = run(EXAMPLES / "quickstart.yaml", "headrace").cpu_s
    times: list[float] = []
    for nodes in GROWTH:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cluster.json"
            source = generate_file(Path(folder), 0, nodes, nodes * TASKS // NODES)
            file.write_text(json.dumps(production(source)), encoding="utf-8")
            times.append(run(file, "headrace").cpu_s - start_s)
    exponent = float(np.polyfit(np.log(GROWTH), np.log(times), 1)[0])
    shown = ", ".join(f"{seconds:.1f}" for seconds in times)
    yield Row(f"command at {', '.join(map(str, GROWTH))} nodes, less {start_s:.1f} s", f"{shown} s")
    yield Row("  grows with nodes to the power of", f"{exponent:.2f}", "<= 1.2", exponent <= 1.2)


def generate_file(folder: Path, seed: int, nodes: int = NODES, tasks: int = TASKS) -> Path:
    """A generated cluster as a file."""
    file = folder / f"like-{seed}-{nodes}.json"
    file.write_text(json.dumps(generate(seed, nodes, tasks)), encoding="utf-8")
    return file


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    if not LARGE_PRODUCTION.exists() or not PRODUCTION.exists():
        yield Row(
            "clusters like the production ones", "SKIPPED: the files are not there", "", False
        )
        return
    yield from compare("large production cluster", LARGE_PRODUCTION)
    with tempfile.TemporaryDirectory() as folder:
        for seed in list(SEEDS)[: 1 if quick else None]:
            yield from compare(f"1,900 nodes, seed {seed}", generate_file(Path(folder), seed))
    if not quick:
        yield from growth()
