"""Storm's own schedulers, run outside Nimbus, put every executor where ours put it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import Unsupported
from headrace.lab.storm_problems import draw_storm_cluster
from headrace.lab.storm_referee import RULES, referee
from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.production import production
from headrace.model.read import validated
from headrace.storm.jars import find_jars
from headrace.storm.java import java_command

# Beside the repository, where the machine has them.
DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def java() -> list[str]:
    """The command that starts a JVM with Storm's classes and ours."""
    try:
        return java_command(find_jars())
    except Unsupported as refusal:
        pytest.skip(f"Storm's classes are not to be had: {refusal.message}")


@pytest.fixture(scope="module")
def clusters() -> list[Problem]:
    return [build(validated(draw_storm_cluster(seed), {})) for seed in range(30)]


@pytest.mark.parametrize("rule", list(RULES))
def test_thirty_random_clusters_are_placed_as_storm_places_them(
    rule: str, clusters: list[Problem], java: list[str]
) -> None:
    verdicts = referee(clusters, RULES[rule], java)
    assert {seed: v.first for seed, v in enumerate(verdicts) if not v.equal} == {}
    assert sum(v.executors for v in verdicts) > 1000


@pytest.mark.parametrize("name", ["production_cluster", "production_cluster_large"])
def test_production_clusters_are_placed_as_storm_places_them(name: str, java: list[str]) -> None:
    file = DATA / f"{name}.json"
    if not file.exists():
        pytest.skip(f"{file.name} is not on this machine")
    problem = build(validated(production(file), {}))
    for rule in ("2.0", "2.3"):
        (verdict,) = referee([problem], RULES[rule], java)
        assert verdict.first == ""
        assert verdict.equal
