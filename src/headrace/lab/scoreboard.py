"""Every scheduler on every family of problems, as ratio to the best plan that any of them found.

Only feasible plans count. `optimal` is no rival but the proof, so the best known plan is the best
of the others, and a ratio of `optimal` may be below 1.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.lab.chart import bars
from headrace.lab.jobs import Row, takes_objective
from headrace.planner import FIGURES

APART = "optimal"
NOTHING = 1e-9  # less traffic than this is none


@dataclass(slots=True)
class Score:
    """How a scheduler did on a family, in one objective."""

    # To the best known plan; above 1 is worse, whatever the objective.
    ratios: list[float] = field(default_factory=list[float])
    best: int = 0  # problems on which nobody was better
    feasible: int = 0
    infeasible: int = 0
    refused: int = 0
    failed: int = 0
    nodes: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])

    @property
    def mean(self) -> float:
        """The geometric mean of the ratios that are finite; nan if there is none."""
        finite = [r for r in self.ratios if math.isfinite(r) and r > 0]
        return statistics.geometric_mean(finite) if finite else math.nan

    @property
    def worst(self) -> float:
        return max(self.ratios, default=math.nan)


Scores = dict[tuple[str, str], Score]  # (family, scheduler) -> score


def value(row: Row, objective: str) -> float:
    """The figure of an objective as something to be small: a rate counts as its inverse."""
    figure = row[FIGURES[objective]]
    if objective == "rate":
        return 0.0 if figure is None else 1.0 / figure if figure > 0 else math.inf
    return math.inf if figure is None else float(figure)


def scores(rows: Sequence[Row], objective: str) -> Scores:
    """Scores of all families and schedulers in one objective; each seed is a problem of its own."""
    found: Scores = defaultdict(Score)
    problems: dict[tuple[str, str, int], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        plans = problems[row["family"], row["problem"], row["seed"]]
        if row["objective"] == objective or (
            row["scheduler"] not in plans and not takes_objective(row["scheduler"])
        ):
            plans[row["scheduler"]] = row
    for (family, _, _), by_scheduler in problems.items():
        plans = list(by_scheduler.values())
        rivals = [
            value(r, objective)
            for r in plans
            if r["status"] == "feasible" and r["scheduler"] != APART
        ]
        best = min(rivals, default=math.nan)
        for row in plans:
            score = found[family, row["scheduler"]]
            setattr(score, row["status"], getattr(score, row["status"]) + 1)
            if row["status"] != "feasible":
                continue
            score.seconds.append(row["seconds"])
            score.nodes.append(row["nodes_used"])
            if not math.isnan(best):
                ratio = ratio_to(value(row, objective), best)
                score.ratios.append(ratio)
                score.best += ratio <= 1 + 1e-9
    return dict(found)


def ratio_to(figure: float, best: float) -> float:
    """Above 1 is worse; no traffic at all is infinitely better than some."""
    if best <= NOTHING:
        return 1.0 if figure <= NOTHING else math.inf
    return figure / best


def table(found: Scores, objective: str) -> str:
    """Markdown: a row per scheduler, best first, a column per family."""
    families = list(dict.fromkeys(family for family, _ in found))
    schedulers = list(dict.fromkeys(scheduler for _, scheduler in found))
    overall = {s: total([found[f, s] for f in families if (f, s) in found]) for s in schedulers}
    order = sorted(
        schedulers,
        key=lambda s: (
            -overall[s].best,
            overall[s].mean if not math.isnan(overall[s].mean) else math.inf,
            s,
        ),
    )
    names = {
        "inter_node_traffic": "traffic between nodes",
        "max_rate": "sustained rate",
        "nodes_used": "nodes used",
    }
    figure = FIGURES[objective]
    lines = [
        f"Objective {objective}: {names.get(figure, figure)}, geometric mean of the ratio to the "
        + "best known plan. In brackets: on how many problems nobody was better, of how many with "
        + "a feasible plan.",
        "",
        "| scheduler | " + " | ".join(families) + " | nodes | seconds | not feasible, refused |",
        "|---" * (len(families) + 4) + "|",
    ]
    for s in order:
        cells = [cell(found.get((f, s))) for f in families]
        all_ = overall[s]
        nodes = f"{statistics.mean(all_.nodes):.1f}" if all_.nodes else ""
        seconds = f"{statistics.median(all_.seconds):.3g}" if all_.seconds else ""
        lines.append(
            f"| `{s}` | "
            + " | ".join(cells)
            + f" | {nodes} | {seconds} | {all_.infeasible}, {all_.refused + all_.failed} |"
        )
    return "\n".join(lines) + "\n"


def cell(score: Score | None) -> str:
    """A scheduler on a family."""
    if score is None or not score.ratios:
        return "–"
    endless = sum(math.isinf(r) for r in score.ratios)
    mean = "∞" if math.isnan(score.mean) else f"{score.mean:.2f}"
    return f"{mean} ({score.best} of {len(score.ratios)})" + (
        f", {endless} × ∞" if endless and mean != "∞" else ""
    )


def total(parts: Sequence[Score]) -> Score:
    """All families together."""
    whole = Score()
    for p in parts:
        whole.ratios += p.ratios
        whole.nodes += p.nodes
        whole.seconds += p.seconds
        whole.best += p.best
        whole.feasible += p.feasible
        whole.infeasible += p.infeasible
        whole.refused += p.refused
        whole.failed += p.failed
    return whole


def picture(found: Mapping[tuple[str, str], Score], title: str, chosen: Sequence[str]) -> str:
    """Bars: mean ratio of some schedulers on every family."""
    families = list(dict.fromkeys(family for family, _ in found))
    groups = {
        f: {
            s: found[f, s].mean
            for s in chosen
            if (f, s) in found and not math.isnan(found[f, s].mean)
        }
        for f in families
    }
    return bars(title, groups, y="ratio to the best known plan")


def above_best(found: Mapping[tuple[str, str], Score], scheduler: str = "headrace") -> list[str]:
    """Families on which a scheduler was ever beaten."""
    return [
        f"{family}: {score.worst:.4f}"
        for (family, s), score in found.items()
        if s == scheduler and score.worst > 1 + 1e-9
    ]
