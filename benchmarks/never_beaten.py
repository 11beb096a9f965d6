"""No scheduler beats headrace in the objective it is asked for: every problem lost is printed.

    python benchmarks/never_beaten.py                                   # all of it: hours
    python benchmarks/never_beaten.py --objective batch --set random --first 40 --count 20
    python benchmarks/never_beaten.py --keep never_beaten.jsonl         # resumes where it ended

Problems are 300 of the scoreboard's random family with other seeds than its own, 100 of the same
kind in several racks with prices for what crosses, and the papers' problems of the scoreboard.
Every scheduler gets each of them; those that search, `optimal` included, have one second of
processor time. Headrace's own plans for the other objectives are rivals too. Only feasible plans
count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

from headrace.errors import HeadraceError
from headrace.judge.report import judge
from headrace.lab.families import FAMILIES, build_problem, case, cases, random_sections
from headrace.lab.scoreboard import ratio_to
from headrace.model.problem import Assignment, Problem
from headrace.planner import FIGURES, OBJECTIVES, place
from headrace.registry import introduction, names

SECONDS = 1.0
NEAR = 1e-6  # as a share: figures so near are equal
FIRST_SEED = 1000  # of both random sets
SIZES = {"random": 300, "racks": 100, "papers": None}  # None: all there are
QUICK = 4  # problems of each set


@dataclass(frozen=True, slots=True)
class Outcome:
    """How headrace did on a problem, in one objective."""

    set: str
    name: str
    objective: str
    ours: float  # to be small; inf where no feasible plan was found
    best: float  # of the others
    by: str  # who made that

    @property
    def ratio(self) -> float:
        """Above 1 where headrace is beaten."""
        return ratio_to(self.ours, self.best)

    @property
    def lost(self) -> bool:
        """Whether another scheduler was better."""
        return self.ratio > 1 + NEAR


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    for chosen, size in SIZES.items():
        found: list[Outcome] = []
        for name, problem in problems(chosen, 0, QUICK if quick else size):
            found += outcomes(chosen, name, problem, OBJECTIVES)
        yield from table(chosen, found)


def table(chosen: str, found: Sequence[Outcome]) -> Iterator[Row]:
    """A row for every objective, then one for every problem lost."""
    for objective in dict.fromkeys(one.objective for one in found):
        mine = [one for one in found if one.objective == objective]
        lost = [one for one in mine if one.lost]
        gained = sum(one.ratio < 1 - NEAR for one in mine)
        usual = statistics.median(one.ratio for one in mine)
        yield Row(
            f"{objective}, {len(mine)} {chosen} problems: beaten by any scheduler "
            f"(better than all on {gained}, median of headrace over the best other {usual:.4f})",
            str(len(lost)),
            "0",
            not lost,
        )
        for one in lost:
            yield Row(f"  {one.name}: {one.ours:.9g}, {one.by} {one.best:.9g}", f"{one.ratio:.6f}")


def problems(chosen: str, first: int, count: int | None) -> Iterator[tuple[str, Problem]]:
    """Problems of a set by name, from the number `first` on."""
    if chosen == "papers":
        every = [one for family in FAMILIES if family != "random" for one in cases(family)]
        for one in every[first : None if count is None else first + count]:
            yield f"{one.family}: {one.name}", build_problem(one.sections)
        return
    last = SIZES[chosen] if count is None else min(first + count, SIZES[chosen] or count)
    for seed in range(FIRST_SEED + first, FIRST_SEED + (last or 0)):
        sections = random_sections(seed) if chosen == "random" else racked_sections(seed)
        yield f"seed {seed}", build_problem(case(chosen, str(seed), sections).sections)


def racked_sections(seed: int) -> dict[str, Any]:
    """A random problem in two to four racks; half of them with bandwidths."""
    sections, rng = random_sections(seed), np.random.default_rng([seed, 30])
    racks = int(rng.integers(2, 5))
    narrow = rng.random() < 0.5
    for i, node in enumerate(sections["cluster"]["nodes"].values()):
        node["rack"] = f"r{i % racks}"
        if narrow:
            node["bandwidth_mbps"] = int(rng.choice([100, 1000]))
    sections["cluster"]["network"] = {"worker": 0, "node": 1, "rack": int(rng.integers(2, 6))}
    return sections


def outcomes(
    chosen: str, name: str, problem: Problem, objectives: Sequence[str]
) -> Iterator[Outcome]:
    """Headrace against all others, in each objective."""
    ours = {objective: plan(problem, "headrace", objective) for objective in objectives}
    others = {by: plan(problem, by, "traffic") for by in names("place") if by != "headrace"}
    others |= {f"headrace for {objective}": found for objective, found in ours.items()}
    for objective in objectives:
        rivals = dict(others)
        for by in names("place"):
            known = introduction("place", by).objectives
            if by != "headrace" and objective != "traffic" and objective in known:
                rivals[f"{by} for {objective}"] = plan(problem, by, objective)
        del rivals[f"headrace for {objective}"]
        figures = {by: figure(problem, found, objective) for by, found in rivals.items()}
        best = min(figures, key=figures.__getitem__)
        value = figure(problem, ours[objective], objective)
        if min(value, figures[best]) < np.inf:
            yield Outcome(chosen, name, objective, value, figures[best], best)


def plan(problem: Problem, by: str, objective: str) -> Assignment | None:
    """A scheduler's plan within a second of processor time; None where it has none."""
    try:
        asked = {"objective": objective, "seconds": SECONDS, "bounded": False}
        found = place(problem, by, clock=time.process_time, **asked)  # pyright: ignore[reportArgumentType]
    except HeadraceError:
        return None
    return found.assignment if found.report.feasible else None


def figure(problem: Problem, found: Assignment | None, objective: str) -> float:
    """The objective's figure of a feasible plan as something to be small; inf without a plan."""
    if found is None:
        return np.inf
    value = getattr(judge(problem, found, bounded=False), FIGURES[objective])
    if objective != "rate":
        return np.inf if value is None else float(value)
    return 0.0 if value is None else 1 / value if value > 0 else np.inf


def main() -> int:
    """Measure a slice; the exit status says whether headrace was ever beaten."""
    parser = argparse.ArgumentParser(description="Look for problems on which headrace is beaten.")
    parser.add_argument("--objective", action="append", choices=OBJECTIVES, help="absent: all")
    parser.add_argument("--set", action="append", choices=list(SIZES), help="absent: all")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, help="of problems; absent: all")
    parser.add_argument("--keep", type=Path, help="a file of results: what it has is not run again")
    asked = parser.parse_args()
    objectives, lost = tuple(asked.objective or OBJECTIVES), False
    known = kept(asked.keep)
    for chosen in asked.set or SIZES:
        found: list[Outcome] = []
        for name, problem in problems(chosen, asked.first, asked.count):
            done = [known[key] for o in objectives if (key := (chosen, name, o)) in known]
            if len(done) < len(objectives):
                done = list(outcomes(chosen, name, problem, objectives))
                keep(asked.keep, done)
            found += done
        for row in table(chosen, found):
            print(f"{row.what}  {row.value}", flush=True)
            lost |= row.holds is False
    return 1 if lost else 0


def kept(file: Path | None) -> dict[tuple[str, str, str], Outcome]:
    """The results of a file, by set, problem and objective."""
    if file is None or not file.exists():
        return {}
    found = [Outcome(**json.loads(line)) for line in file.read_text().splitlines()]
    return {(one.set, one.name, one.objective): one for one in found}


def keep(file: Path | None, found: Sequence[Outcome]) -> None:
    """Add results to a file."""
    if file is not None:
        fields = Outcome.__slots__
        lines = [json.dumps({key: getattr(one, key) for key in fields}) + "\n" for one in found]
        with file.open("a") as kept_file:
            kept_file.writelines(lines)


if __name__ == "__main__":
    raise SystemExit(main())
