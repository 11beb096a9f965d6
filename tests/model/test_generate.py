"""Generated documents: as the papers describe them, valid, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.model.generate import (
    cao_budgets,
    cao_pipeline,
    nasiri_scenario,
    random_catalog,
    random_cluster,
    random_topology,
)
from headrace.model.read import validated
from headrace.model.workload import Workload

NASIRI = Path(__file__).parents[2] / "examples" / "nasiri"


@pytest.mark.parametrize("layout", ["linear", "diamond", "star"])
@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_nasiris_cases_are_those_of_the_examples(layout: Any, size: Any) -> None:
    content = {
        **yaml.safe_load((NASIRI / f"{layout}.yaml").read_text()),
        **yaml.safe_load((NASIRI / f"cluster-{size}.yaml").read_text()),
    }
    theirs, ours = (
        Workload(validated(content, {})).problem(),
        Workload(validated(nasiri_scenario(layout, size), {})).problem(),
    )
    assert ours.components == theirs.components
    assert ours.nodes == theirs.nodes
    assert ours.rate.tolist() == pytest.approx(theirs.rate.tolist())
    assert ours.cpu_rate.ravel().tolist() == pytest.approx(theirs.cpu_rate.ravel().tolist())
    assert ours.capacity.tolist() == theirs.capacity.tolist()


def test_a_pipeline_is_as_section_5_1_has_it() -> None:
    content = cao_pipeline(20, 45, seed=3)
    components = content["topology"]["components"]
    assert len(components) == 20
    assert sum(len(spec.get("inputs", {})) for spec in components.values()) >= 45
    assert all(f"w{v - 1}" in components[f"w{v}"]["inputs"] for v in range(1, 20))
    assert len(content["catalog"]) == 16
    prices = [machine["price"] for machine in content["catalog"].values()]
    assert prices == sorted(prices)
    for costs in content[
        "profile"
    ].values():  # 5 to 500 million instructions: the better the machine, the faster
        times = [cost["cpu_ms"] for cost in costs.values()]
        assert times == sorted(times, reverse=True)
    budgets = cao_budgets(content)
    assert len(budgets) == 6
    assert budgets[-1] == pytest.approx(1.1 * 20 * max(prices))
    assert all(b > 1.1 * 20 * min(prices) for b in budgets)


def test_the_same_seed_gives_the_same_document_and_another_gives_another() -> None:
    assert (
        cao_pipeline(10, 15, seed=1) == cao_pipeline(10, 15, seed=1) != cao_pipeline(10, 15, seed=2)
    )
    assert random_topology(10, seed=1) == random_topology(10, seed=1) != random_topology(10, seed=2)
    assert random_cluster(10, seed=1) == random_cluster(10, seed=1) != random_cluster(10, seed=2)
    assert random_catalog(seed=1) == random_catalog(seed=1) != random_catalog(seed=2)


@pytest.mark.parametrize("seed", range(5))
def test_random_documents_are_valid(seed: int) -> None:
    content = random_topology(25, kinds=4, seed=seed) | random_cluster(12, kinds=4, seed=seed)
    problem = Workload(validated(content, {})).problem()
    assert len(problem.components) == 25
    assert len(problem.nodes) == 12
    assert (problem.rate > 0).all()
