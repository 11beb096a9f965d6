"""What the benchmarks make for themselves, where nothing comes from outside."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.model.build import build
from headrace.model.modules import load_module
from headrace.model.production import production
from headrace.model.read import read

GENERATOR = Path(__file__).parents[1] / "benchmarks" / "generated_clusters.py"


def test_a_generated_cluster_is_read_like_a_real_one_and_is_the_same_for_a_seed(
    tmp_path: Path,
) -> None:
    generate = load_module("generated_clusters", GENERATOR).generate_cluster
    drawn = generate(1, nodes=80, racks=2, topologies=50)
    assert drawn == generate(1, nodes=80, racks=2, topologies=50)
    assert drawn != generate(2, nodes=80, racks=2, topologies=50)
    file, app = tmp_path / "cluster.json", tmp_path / "app.json"
    file.write_text(json.dumps(drawn))
    app.write_text(json.dumps(production(file)))
    problem = build(read([app]))
    assert len(problem.nodes) == 80
    assert len(problem.topologies) == 50
    asked = (problem.demand[:, 0] * problem.tasks).sum() / problem.capacity[:, 0].sum()
    assert 0.7 < asked < 0.8


def test_a_file_that_is_there_is_used_and_a_missing_one_is_generated(tmp_path: Path) -> None:
    chosen = load_module("generated_clusters", GENERATOR).real_or_generated
    real = tmp_path / "real.json"
    made = chosen(real, 3, tmp_path, nodes=4, racks=2, topologies=2)
    assert made != real
    assert len(json.loads(made.read_text())["nodes"]) == 4
    real.write_text("{}")
    assert chosen(real, 3, tmp_path, nodes=4, racks=2, topologies=2) == real
