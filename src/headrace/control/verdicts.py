"""What people say of plans: files in the run's folder that the loop writes and reads.

`loop.json` says that a loop listens and how it decides; `verdicts.jsonl` has a line for every plan
that somebody accepted or refused: one that a decision proposed, or one of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.control.history import Entry, find_plan
from headrace.control.planning import LoopSettings
from headrace.errors import HeadraceError, InvalidInput
from headrace.model.files import append_line, write_whole
from headrace.registry import find

if TYPE_CHECKING:
    from headrace.control.on_spark import OnSpark

NAME, LOOP = "verdicts.jsonl", "loop.json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's word on a plan."""

    at_s: float
    plan: str  # fingerprint
    accept: bool
    reason: str = ""
    section: Mapping[str, Any] | None = None  # counts and places of a plan that no decision has


def name_plan(section: Mapping[str, Any]) -> str:
    """The fingerprint of a plan's counts and places."""
    return hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()[:16]


def listens(store: Path, settings: LoopSettings, pid: int) -> None:
    """Say that a loop takes verdicts here, and how it decides."""
    store.mkdir(parents=True, exist_ok=True)
    facts = {
        "pid": pid,
        "advise": settings.advise,
        "objective": settings.objective,
        "by": find("place", settings.by).name,
        "rule": find("rule", settings.rule).name,
        "interval_s": settings.interval_s,
    }
    write_whole(store / LOOP, json.dumps(facts))


def keep_verdict(store: Path, verdict: Verdict) -> None:
    """Add a verdict; it is on disk when this returns."""
    append_line(store / NAME, json.dumps(asdict(verdict)))


def verdicts(store: Path) -> list[Verdict]:
    """All verdicts of a store; a line that a crash cut off is left out."""
    try:
        lines = (store / NAME).read_text(encoding="utf-8").split("\n")
    except OSError:
        return []
    found: list[Verdict] = []
    for line in filter(None, lines):
        try:
            found.append(Verdict(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def carry_out(world: OnSpark, verdict: Verdict) -> Entry:
    """Put an accepted plan in force; a decision as any other, kept with its reason."""
    history = world.history()
    section = verdict.section or find_plan(history, verdict.plan)
    proposal = next((e for e in reversed(history) if e.proposed == verdict.plan), None)
    left = history[-1].plan if history else ""
    entry = Entry(
        world.now(), True, True, _words(verdict, proposal), plan=verdict.plan, left=left,
        before=proposal.before if proposal else {}, after=proposal.after if proposal else {},
        moved_tasks=proposal.moved_tasks if proposal else 0,
        moved_mb=proposal.moved_mb if proposal else 0.0,
        by=proposal.by if proposal else "", cause="approved",
        plans={verdict.plan: section} if section and find_plan(history, verdict.plan) is None
        else {},
    )  # fmt: skip
    try:
        if section is None:
            raise InvalidInput(f"no decision has a plan {verdict.plan}")
        world.put_in_force(section)
    except HeadraceError as error:
        refusal = f"the accepted plan cannot run: {error.message}"
        entry = Entry(world.now(), False, False, refusal, plan=left, left=left, cause="approved")
    world.keep(entry)
    return entry


def _words(verdict: Verdict, proposal: Entry | None) -> str:
    why = verdict.reason or (proposal.reason if proposal is not None else "")
    return f"accepted by a person{': ' if why else ''}{why}"


def newest_accepted(found: Sequence[Verdict], seen: int) -> Verdict | None:
    """The last accepting verdict among those that were not looked at yet."""
    return next((verdict for verdict in reversed(found[seen:]) if verdict.accept), None)
