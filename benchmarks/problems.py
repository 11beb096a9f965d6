"""Problems to compare schedulers on: random ones with a seed, and the files in examples/."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import PRODUCTION

from headrace.errors import HeadraceError
from headrace.lab.families import cases, random_sections
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import Problem
from headrace.model.production import production
from headrace.model.read import read, validated

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PAIRS = {
    "muhammad": (
        ["word-count", "word-count-4-workers", "exclamation", "exclamation-5-workers"],
        ["cluster", "cluster-5-slots"],
    ),
    "eskandari": (
        ["smart-home", "taxi-routes"],
        ["storm-2-high-2-low", "storm-2-high-4-low", "storm-8-high"],
    ),
    "nasiri": (["linear", "diamond", "star"], ["cluster-small", "cluster-medium"]),
}  # folder -> topologies, clusters


def problem_of(content: dict[str, Any]) -> Problem:
    """Build a problem from sections."""
    return build(validated({"format": FORMAT, **content}, {}))


def suite(quick: bool) -> Iterator[tuple[str, str, Problem]]:
    """Family, name and problem: micro-benchmarks, examples, the production cluster, random ones."""
    for family in ("micro-homogeneous", "micro-heterogeneous"):
        for case in cases(family)[:: 6 if quick else 1]:
            yield "micro-benchmarks", f"{case.name} {family}", problem_of(json.loads(case.sections))
    for folder, (topologies, clusters) in PAIRS.items():
        for topology in topologies:
            for cluster in clusters:
                files = [EXAMPLES / folder / f"{name}.yaml" for name in (topology, cluster)]
                try:
                    yield "examples", f"{folder}/{topology} on {cluster}", build(read(files))
                except HeadraceError as error:
                    print(f"left out: {folder}/{topology} on {cluster}: {error.message}")
    yield "examples", "quickstart", build(read([EXAMPLES / "quickstart.yaml"]))
    yield "production", "50 topologies on 80 nodes", production_problem()
    for seed in range(10 if quick else 200):
        yield "random", f"seed {seed}", problem_of(random_sections(seed))


def production_problem(path: Path = PRODUCTION) -> Problem:
    """A production cluster; by default the one with 80 nodes and 50 topologies."""
    return problem_of({key: value for key, value in production(path).items() if key != "format"})


def large_cluster(
    topologies: int = 11, tasks: int = 4_710, racks: int = 25, nodes_per_rack: int = 40
) -> Problem:
    """1,000 nodes in 25 racks with 11 topologies of 4,710 tasks each."""
    rng = np.random.default_rng(7)
    described: list[dict[str, Any]] = []
    for g in range(topologies):
        sizes = np.maximum(1, np.round(rng.dirichlet(np.full(12, 2.0)) * tasks)).astype(int)
        sizes[0] += tasks - int(sizes.sum())
        components: dict[str, Any] = {}
        for i, size in enumerate(sizes.tolist()):
            spec: dict[str, Any] = {
                "tasks": size,
                "cpu": int(rng.integers(5, 25)),
                "memory_mb": int(rng.integers(32, 200)),
                "bytes": 100,
            }
            spec |= (
                {"spout": True, "rate": 50_000}
                if i == 0
                else {"inputs": {f"c{int(rng.integers(0, i))}": "shuffle"}}
            )
            components[f"c{i}"] = spec
        described.append({"name": f"t{g}", "priority": g, "components": components})
    need = sum(c["tasks"] * c["cpu"] for t in described for c in t["components"].values())
    memory = sum(c["tasks"] * c["memory_mb"] for t in described for c in t["components"].values())
    count = racks * nodes_per_rack
    node = {"cpu": 1.3 * need / count, "memory_mb": 1.3 * memory / count, "slots": 8}
    nodes = {f"r{r}n{{1..{nodes_per_rack}}}": {**node, "rack": f"r{r}"} for r in range(racks)}
    return problem_of({"topologies": described, "cluster": {"nodes": nodes}})
