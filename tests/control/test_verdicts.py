"""What people say of plans, and what the loop makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from headrace.control.history import Entry, entries, keep
from headrace.control.on_spark import OnSpark
from headrace.control.verdicts import (
    NAME,
    Verdict,
    carry_out,
    keep_verdict,
    name_plan,
    newest_accepted,
    verdicts,
)
from headrace.errors import Infeasible

SECTION = {"tasks": {"a": 1}, "placement": {"a": [["n1", 0, 1, 1]]}}


@dataclass
class World:
    """Takes plans, or refuses them."""

    store: Path
    taken: list[Mapping[str, Any]] = field(default_factory=list[Any])
    refuses: bool = False

    def now(self) -> float:
        return 100.0

    def history(self) -> Sequence[Entry]:
        return entries(self.store)

    def keep(self, entry: Entry) -> None:
        keep(self.store, entry)

    def put_in_force(self, section: Mapping[str, Any]) -> None:
        if self.refuses:
            raise Infeasible("node n1 has 0 cores")
        self.taken.append(section)


def proposal(store: Path) -> Entry:
    plan = name_plan(SECTION)
    entry = Entry(
        50.0, True, False, "gains 31 %", plan="old", left="old", proposed=plan,
        after={"batch_seconds": 0.5}, moved_tasks=3, by="headrace", plans={plan: SECTION},
    )  # fmt: skip
    keep(store, entry)
    return entry


def test_an_accepted_plan_is_put_in_force_and_kept_as_a_decision(tmp_path: Path) -> None:
    world, proposed = World(tmp_path), proposal(tmp_path)
    entry = carry_out(cast("OnSpark", world), Verdict(99.0, proposed.proposed, True))
    assert world.taken == [SECTION]
    assert (entry.applied, entry.plan, entry.left) == (True, proposed.proposed, "old")
    assert (entry.cause, entry.moved_tasks) == ("approved", 3)
    assert entry.reason == "accepted by a person: gains 31 %"
    assert entries(tmp_path)[-1] == entry


def test_a_plan_of_ones_own_is_kept_with_its_places(tmp_path: Path) -> None:
    world = World(tmp_path)
    verdict = Verdict(99.0, name_plan(SECTION), True, "tried in the page", SECTION)
    entry = carry_out(cast("OnSpark", world), verdict)
    assert entry.plans == {name_plan(SECTION): SECTION}
    assert entry.reason == "accepted by a person: tried in the page"


def test_a_plan_that_cannot_run_changes_nothing(tmp_path: Path) -> None:
    world, proposed = World(tmp_path, refuses=True), proposal(tmp_path)
    entry = carry_out(cast("OnSpark", world), Verdict(99.0, proposed.proposed, True))
    assert (entry.applied, entry.move, entry.plan) == (False, False, "old")
    assert "cannot run: node n1 has 0 cores" in entry.reason
    unknown = carry_out(cast("OnSpark", world), Verdict(99.0, "f" * 16, True))
    assert not unknown.applied


def test_only_new_accepting_verdicts_count(tmp_path: Path) -> None:
    assert verdicts(tmp_path) == []
    for plan, accept in (("a", True), ("b", False), ("c", True), ("d", False)):
        keep_verdict(tmp_path, Verdict(1.0, plan, accept))
    with (tmp_path / NAME).open("a") as file:
        file.write('{"torn": ')
    found = verdicts(tmp_path)
    assert [one.plan for one in found] == ["a", "b", "c", "d"]
    assert [getattr(newest_accepted(found, seen), "plan", None) for seen in range(5)] == [
        "c",
        "c",
        "c",
        None,
        None,
    ]
