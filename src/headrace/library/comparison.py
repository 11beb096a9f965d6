"""The same problem through many schedulers, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest
from headrace.model.output import save_result
from headrace.planner import Outcome, Plan, Refusal, Yardstick, best
from headrace.planner.result import pandas_for

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (  # of reports; the number of tasks goes before them
    "inter_node_traffic",
    "nodes_used",
    "workers_used",
    "max_rate",
    "batch_seconds",
    "balance",
    "cost",
    "gap",
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """A table of plans and refusals, in the order of the schedulers asked."""

    rows: tuple[Outcome, ...]
    yardstick: Yardstick | None = None  # None: the objective of the plans
    interrupted: bool = False  # by Ctrl-C: some schedulers were not asked

    @property
    def best(self) -> Plan | None:
        """The best feasible plan; None if there is none."""
        return best(self.rows, self.yardstick)

    def to_frame(self) -> pd.DataFrame:
        """One row per scheduler, with why there is no plan where there is none."""
        return pandas_for("Comparison.to_frame").DataFrame([_row(row) for row in self.rows])

    def to_json(self, *, compact: bool = False) -> dict[str, Any]:
        """One result as it is, many as one object."""
        if len(self.rows) == 1:
            return self.rows[0].to_json(compact=compact)
        rows = [row.to_json(compact=compact) for row in self.rows]
        return {"format": "headrace/1", "results": rows}

    def save(self, file: str | Path) -> Path:
        """Write the table as .json or .yaml, or as .html to look at."""
        return save_result(file, self.to_json, self.html)

    def html(self, *, title: str | None = None, command: str | None = None) -> str:
        """The table and the best plan as one HTML page, which needs no network."""
        from headrace.page import page

        return page(self.rows, title=title, command=command, yardstick=self.yardstick)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, scheduler: str) -> Outcome:
        """The row of a scheduler."""
        for row in self.rows:
            if row.scheduler == scheduler:
                return row
        known = [row.scheduler for row in self.rows]
        raise InvalidInput(f"`{scheduler}` was not compared{nearest(scheduler, known)}")

    def __repr__(self) -> str:
        from headrace.words import comparison_in_lines

        return comparison_in_lines(self.rows)

    def _repr_html_(self) -> str:
        from headrace.page import comparison_fragment

        return comparison_fragment(self.rows)


def _row(row: Outcome) -> dict[str, Any]:
    if isinstance(row, Refusal):
        empty = dict.fromkeys(("seconds", "tasks", *COLUMNS))
        return {
            "scheduler": row.scheduler,
            "feasible": None,
            **empty,
            "refusal": row.error.message,
        }
    report = row.report
    broken = "; ".join(violation.message for violation in report.violations)
    figures = {name: getattr(report, name) for name in COLUMNS}
    return {
        "scheduler": row.scheduler,
        "feasible": report.feasible,
        "seconds": row.seconds,
        "tasks": row.problem.task_count,
        **figures,
        "refusal": broken or None,
    }
