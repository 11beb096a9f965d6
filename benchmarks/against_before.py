"""Plans of this tree beside those of another one: the same or better on every scoreboard problem.

    python benchmarks/against_before.py PATH_OF_ANOTHER_TREE [family ..]

Both trees place every problem of the scoreboard's families with the same seed and the default
number of steps, each in a process of its own. A line is printed for every plan that differs in the
figure asked for; the exit status says whether any is worse.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

OBJECTIVES = {"traffic": "inter_node_traffic", "rate": "max_rate", "nodes": "nodes_used"}
HIGHER_IS_BETTER = ("rate",)
SAME = 1e-9  # difference of two figures that counts as none, as a share
HERE = Path(__file__).resolve().parents[1]


def main(arguments: list[str]) -> int:
    """Compare two trees; 1 if any plan is worse, 2 where there is nothing to compare with."""
    if arguments[:1] == ["--figures"]:
        return print_figures(arguments[1:])
    if not arguments or not (Path(arguments[0]) / "src" / "headrace").is_dir():
        print("needs the path of another tree: a folder with src/headrace", file=sys.stderr)
        return 2
    before, now = (figures(tree, arguments[1:]) for tree in (Path(arguments[0]), HERE))
    verdicts: Counter[str] = Counter()
    for key, value in now.items():
        verdict = compare(key, before.get(key), value)
        verdicts[verdict] += 1
        if verdict != "same":
            print(f"{key}: {before.get(key)} before, {value} now: {verdict}")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return 1 if verdicts["worse"] else 0


def compare(key: str, before: float | None, now: float | None) -> str:
    """Whether a figure is the same, better or worse; None is no feasible plan."""
    if before is None or now is None:
        return "same" if before == now else "better" if before is None else "worse"
    if abs(now - before) <= SAME * max(abs(now), abs(before)):
        return "same"
    return "better" if (now > before) == key.endswith(HIGHER_IS_BETTER) else "worse"


def figures(tree: Path, families: list[str]) -> dict[str, float | None]:
    """Figures by problem and objective, from a process that runs the other tree's code."""
    done = subprocess.run(
        [sys.executable, __file__, "--figures", *families],
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def print_figures(families: list[str]) -> int:
    """Place everything with the code at hand and print the figures as JSON."""
    from headrace.errors import HeadraceError
    from headrace.lab.families import FAMILIES, build_problem, cases
    from headrace.planner import place

    found: dict[str, float | None] = {}
    for family in families or FAMILIES:
        for case in cases(family):
            problem = build_problem(case.sections)
            for objective, figure in OBJECTIVES.items():
                key = f"{family} {case.name} {objective}"
                try:
                    report = place(problem, "headrace", objective=objective, bounded=False).report
                except HeadraceError:
                    found[key] = None
                    continue
                found[key] = getattr(report, figure) if report.feasible else None
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
