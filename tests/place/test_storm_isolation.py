"""Storm's isolation scheduler draws machines at random; here the seed decides."""

from __future__ import annotations

from headrace.checks.problems import problem_of
from headrace.planner import place

ALONE = {"name": "alone", "workers": 2, "components": {"a": {"spout": True, "tasks": 2}}}
NINE = {"nodes": {f"n{i}": {"slots": 2} for i in range(9)}}
ISOLATED = problem_of({"topology": {**ALONE, "isolated_machines": 2}, "cluster": NINE})


def nodes(seed: int, **options: object) -> frozenset[str]:
    plan = place(ISOLATED, "storm-isolation", seed=seed, options=options)
    return frozenset(plan.node_of.values())


def test_another_seed_isolates_other_machines() -> None:
    chosen = [nodes(seed) for seed in range(20)]
    assert all(len(pair) == 2 for pair in chosen)
    assert len(set(chosen)) > 10
    assert frozenset.union(*chosen) == frozenset(ISOLATED.nodes), "no machine is left out"
    assert nodes(3) == chosen[3]


def test_without_the_shuffle_the_seed_does_not_matter() -> None:
    assert {nodes(seed, hosts="largest") for seed in range(5)} == {frozenset(("n0", "n1"))}


def test_the_report_says_that_machines_were_drawn() -> None:
    drawn = place(ISOLATED, "storm-isolation", seed=7).report.notes
    assert any("at random" in note and "seed 7" in note for note in drawn)
    shared = problem_of({"topology": ALONE, "cluster": NINE})
    for notes in (
        place(ISOLATED, "storm-isolation", options={"hosts": "largest"}).report.notes,
        place(shared, "storm-isolation").report.notes,
    ):
        assert not any("at random" in note for note in notes)
