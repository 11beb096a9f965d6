"""No scheduler beats headrace in the objective it is asked for: every problem lost is printed.

    python benchmarks/never_beaten.py                                   # all of it: an hour or two
    python benchmarks/never_beaten.py --objective batch --set random --first 40 --count 20
    python benchmarks/never_beaten.py --keep plans.jsonl                # resumes where it ended
    python benchmarks/never_beaten.py --keep plans.jsonl --again headrace    # rivals' are known

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

from headrace.errors import HeadraceError
from headrace.judge.report import judge
from headrace.lab.families import FAMILIES, build_problem, case, cases, random_sections
from headrace.lab.scoreboard import ratio_to
from headrace.model.problem import Assignment, Problem
from headrace.planner import FIGURES, place
from headrace.registry import introduction, names

OBJECTIVES = ("traffic", "network", "rate", "batch", "nodes", "balance")  # latency is simulated
SECONDS = 1.0
NEAR = 1e-6  # as a share: figures so near are equal
FIRST_SEED = 1000  # of both random sets
SIZES = {"random": 300, "racks": 100, "papers": None}  # None: all there are
QUICK = 4  # problems of each set


@dataclass(frozen=True, slots=True)
class Figures:
    """What a scheduler's plan for an objective is worth, in every objective."""

    set: str
    name: str
    by: str
    asked: str  # the objective it was made for
    values: dict[str, float]  # to be small; inf where there is no feasible plan

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Which plan this is."""
        return self.set, self.name, self.by, self.asked


Kept = dict[tuple[str, str, str, str], Figures]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How headrace did on a problem, in one objective."""

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

    def row(self) -> Row:
        """A problem that was lost."""
        line = f"  {self.name}: {self.objective} {self.ours:.9g}, {self.by} {self.best:.9g}"
        return Row(line, f"{self.ratio:.6f}")


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    for chosen, size in SIZES.items():
        found: list[Outcome] = []
        for name, problem in problems(chosen, 0, QUICK if quick else size):
            found += outcomes(name, plans(chosen, name, problem, OBJECTIVES, {}, None), OBJECTIVES)
        yield from table(chosen, found)
        yield from (one.row() for one in found if one.lost)


def table(chosen: str, found: Sequence[Outcome]) -> Iterator[Row]:
    """A row for every objective."""
    for objective in dict.fromkeys(one.objective for one in found):
        mine = [one for one in found if one.objective == objective]
        lost = sum(one.lost for one in mine)
        gained = sum(one.ratio < 1 - NEAR for one in mine)
        usual = statistics.median(one.ratio for one in mine)
        yield Row(
            f"{objective}, {len(mine)} {chosen} problems: beaten by any scheduler "
            f"(better than all on {gained}, median of headrace over the best other {usual:.4f})",
            str(lost),
            "0",
            not lost,
        )


def problems(chosen: str, first: int, count: int | None) -> Iterator[tuple[str, Problem]]:
    """Problems of a set by name, from the number `first` on; of random ones there are more."""
    if chosen == "papers":
        every = [one for family in FAMILIES if family != "random" for one in cases(family)]
        for one in every[first : None if count is None else first + count]:
            yield f"{one.family}: {one.name}", build_problem(one.sections)
        return
    last = (SIZES[chosen] or 0) if count is None else first + count
    for seed in range(FIRST_SEED + first, FIRST_SEED + last):
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


def plans(
    chosen: str,
    name: str,
    problem: Problem,
    objectives: Sequence[str],
    known: Kept,
    file: Path | None,
) -> list[Figures]:
    """Every scheduler's plans; those that are not known yet are made, and kept."""
    found: list[Figures] = []
    for by in names("place"):
        able = introduction("place", by).objectives
        for asked in [one for one in objectives if one in able] or ["traffic"]:
            one = known.get((chosen, name, by, asked))
            if one is None:
                values = values_of(problem, plan(problem, by, asked))
                one = Figures(chosen, name, by, asked, values)
                keep(file, one)
            found.append(one)
    return found


def outcomes(name: str, found: Sequence[Figures], objectives: Sequence[str]) -> Iterator[Outcome]:
    """Headrace against all others, in each objective."""
    for objective in objectives:
        ours = {one.by: one for one in found if one.asked == objective}["headrace"]
        best = min((o for o in found if o is not ours), key=lambda one: one.values[objective])
        by = best.by if best.by != "headrace" else f"headrace for {best.asked}"
        if min(ours.values[objective], best.values[objective]) < np.inf:
            value = ours.values[objective]
            yield Outcome(name, objective, value, best.values[objective], by)


def plan(problem: Problem, by: str, objective: str) -> Assignment | None:
    """A scheduler's plan within a second of processor time; None where it has none."""
    try:
        asked = {"objective": objective, "seconds": SECONDS, "bounded": False}
        found = place(problem, by, clock=time.process_time, **asked)  # pyright: ignore[reportArgumentType]
    except HeadraceError:
        return None
    return found.assignment if found.report.feasible else None


def values_of(problem: Problem, found: Assignment | None) -> dict[str, float]:
    """A feasible plan's figure in every objective as something to be small; inf without a plan."""
    if found is None:
        return dict.fromkeys(OBJECTIVES, np.inf)
    report = judge(problem, found, bounded=False)
    values = {objective: getattr(report, FIGURES[objective]) for objective in OBJECTIVES}
    values = {name: np.inf if value is None else float(value) for name, value in values.items()}
    values["rate"] = 1 / values["rate"] if values["rate"] > 0 else np.inf
    return values


def main() -> int:
    """Measure a slice; the exit status says whether headrace was ever beaten."""
    parser = argparse.ArgumentParser(description="Look for problems on which headrace is beaten.")
    parser.add_argument("--objective", action="append", choices=OBJECTIVES, help="absent: all")
    parser.add_argument("--set", action="append", choices=list(SIZES), help="absent: all")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, help="of problems; absent: all")
    parser.add_argument("--keep", type=Path, help="a file of plans: what it has is not made again")
    parser.add_argument("--again", action="append", default=[], help="schedulers to ask again")
    asked = parser.parse_args()
    objectives, lost = tuple(asked.objective or OBJECTIVES), False
    known = kept(asked.keep, asked.again)
    for chosen in asked.set or SIZES:
        found: list[Outcome] = []
        for name, problem in problems(chosen, asked.first, asked.count):
            made = plans(chosen, name, problem, objectives, known, asked.keep)
            for one in outcomes(name, made, objectives):
                found.append(one)
                if one.lost:
                    print(one.row().what, one.row().value, flush=True)
        for row in table(chosen, found):
            print(f"{row.what}  {row.value}", flush=True)
            lost |= row.holds is False
    return 1 if lost else 0


def kept(file: Path | None, again: Sequence[str]) -> Kept:
    """The plans of a file, but for those of some schedulers; later lines replace earlier ones."""
    if file is None or not file.exists():
        return {}
    every = [Figures(**json.loads(line)) for line in file.read_text().splitlines()]
    return {one.key: one for one in every if one.by not in again}


def keep(file: Path | None, one: Figures) -> None:
    """Add a plan's figures to a file."""
    if file is not None:
        with file.open("a") as kept_file:
            kept_file.write(json.dumps(asdict(one)) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
