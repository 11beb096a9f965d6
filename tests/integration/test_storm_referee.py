"""Storm's own schedulers, run outside Nimbus, put every executor where ours put it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import Unsupported
from headrace.lab.storm_problems import draw_storm_cluster, draw_tight_storm_cluster
from headrace.lab.storm_referee import RULES, Verdict, referee
from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.production import production
from headrace.model.read import validated
from headrace.storm.nimbus import java_command

# Beside the repository, where the machine has them.
DATA = Path(__file__).parents[3] / "shared" / "data"


def verdicts(problems: list[Problem], rule: str) -> list[Verdict]:
    """What the referee says; skipped where Storm's classes are not to be had."""
    try:
        java = java_command(RULES[rule].storm)
    except Unsupported as refusal:
        pytest.skip(f"Storm's classes are not to be had: {refusal.message}")
    return referee(problems, RULES[rule], java)


@pytest.fixture(scope="module")
def clusters() -> list[Problem]:
    return [build(validated(draw_storm_cluster(seed), {})) for seed in range(30)]


@pytest.mark.parametrize("rule", list(RULES))
def test_thirty_random_clusters_are_placed_as_storm_places_them(
    rule: str, clusters: list[Problem]
) -> None:
    found = verdicts(clusters, rule)
    assert {seed: v.first for seed, v in enumerate(found) if not v.equal} == {}
    assert sum(v.executors for v in found) > 1000


@pytest.mark.parametrize("rule", ["2.0", "2.3"])
def test_sixty_tight_clusters_are_placed_or_refused_as_storm_does(rule: str) -> None:
    tight = [build(validated(draw_tight_storm_cluster(seed), {})) for seed in range(60)]
    found = verdicts(tight, rule)
    assert {seed: v.first for seed, v in enumerate(found) if not v.equal} == {}
    if rule == "2.3":
        went_back = [v for v in found if v.went_back]
        assert sum(not v.refused for v in went_back) >= 10, "places found by going back"
        assert sum(bool(v.refused) for v in went_back) >= 10, "searches in vain"


@pytest.mark.parametrize("name", ["production_cluster", "production_cluster_large"])
@pytest.mark.parametrize("rule", ["2.0", "2.3"])
def test_production_clusters_are_placed_as_storm_places_them(name: str, rule: str) -> None:
    file = DATA / f"{name}.json"
    if not file.exists():
        pytest.skip(f"{file.name} is not on this machine")
    (verdict,) = verdicts([build(validated(production(file), {}))], rule)
    assert verdict.first == ""
    assert verdict.equal
