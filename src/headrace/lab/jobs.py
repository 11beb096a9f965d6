"""Jobs (a case, a scheduler, a seed, an objective), run on Spark and kept as Parquet.

What is kept is not run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import headrace
from headrace.errors import HeadraceError, InvalidInput
from headrace.lab.families import Case, build_problem
from headrace.lab.fan_out import fan_out
from headrace.lab.machine import machine
from headrace.model.files import replace_file
from headrace.registry import introduction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 96  # jobs between two writes: what a kill can lose

Row = dict[str, Any]
TEXT, NUMBER = pa.string(), pa.float64()
RESULTS = pa.schema(
    [
        ("key", TEXT),
        ("family", TEXT),
        ("problem", TEXT),
        ("scheduler", TEXT),
        ("seed", pa.int64()),
        ("objective", TEXT),
        ("status", TEXT),  # feasible, infeasible, refused, failed
        ("reason", TEXT),
        ("inter_node_traffic", NUMBER),
        ("total_traffic", NUMBER),
        ("max_rate", NUMBER),
        ("nodes_used", pa.int64()),
        ("batch_seconds", NUMBER),
        ("balance", NUMBER),
        ("bound", NUMBER),
        ("proven", pa.bool_()),
        ("stopped", TEXT),
        ("seconds", NUMBER),
        ("version", TEXT),
        ("machine", TEXT),
    ]
)


@dataclass(frozen=True, slots=True)
class Job:
    """One plan to make."""

    case: Case
    scheduler: str
    seed: int = 0
    objective: str = "traffic"
    seconds: float | None = None
    steps: int | None = None

    @property
    def key(self) -> str:
        """What makes it the same job when it is asked for again."""
        return hashlib.sha256(repr((asdict(self), headrace.__version__)).encode()).hexdigest()[:24]


def jobs(
    cases: Sequence[Case],
    schedulers: Sequence[str],
    *,
    seeds: int = 1,
    objectives: Sequence[str] = ("traffic",),
    seconds: float | None = None,
    steps: int | None = None,
) -> list[Job]:
    """Every case with every scheduler, seed and objective.

    A scheduler that knows no objectives makes its plan once, for the first.
    """
    return [
        Job(c, by, seed, what, seconds, steps)
        for c, by, seed in product(cases, schedulers, range(seeds))
        for what in (objectives if takes_objective(by) else objectives[:1])
    ]


def takes_objective(scheduler: str) -> bool:
    """Whether a scheduler plans for the objective it is given, and not always for the same."""
    return bool(introduction("place", scheduler).objectives)


def blank_row(job: Job) -> Row:
    """A job's row with no result yet."""
    return dict.fromkeys(RESULTS.names) | {
        "key": job.key,
        "family": job.case.family,
        "problem": job.case.name,
        "scheduler": job.scheduler,
        "seed": job.seed,
        "objective": job.objective,
        "version": headrace.__version__,
        "machine": machine(),
    }


def run_job(job: Job) -> Row:
    """Run a job; a refusal is a result too."""
    from headrace.planner import place

    try:
        planned = place(
            build_problem(job.case.sections),
            job.scheduler,
            objective=job.objective,
            seed=job.seed,
            seconds=job.seconds,
            steps=job.steps,
            bounded=job.scheduler == "optimal",  # once per problem is enough
        )
    except HeadraceError as error:
        return blank_row(job) | {"status": "refused", "reason": error.message}
    report = planned.report
    return blank_row(job) | {
        "status": "feasible" if report.feasible else "infeasible",
        "reason": None if report.feasible else str(report.to_json()["violations"][:1]),
        "inter_node_traffic": report.inter_node_traffic,
        "total_traffic": report.total_traffic,
        "max_rate": report.max_rate,
        "nodes_used": report.nodes_used,
        "batch_seconds": report.batch_seconds,
        "balance": report.balance,
        "bound": report.bound.value,
        "proven": report.bound.proven,
        "stopped": report.stopped,
        "seconds": planned.seconds,
    }


def run(
    spark: SparkSession,
    wanted: Sequence[Job],
    folder: Path,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    at_once: int = AT_ONCE,
) -> list[Row]:
    """Run the jobs that the folder has no results of; gives those of all jobs, in their order."""
    known = {row["key"] for row in results(folder) if row["status"] != "failed"}
    left = [job for job in wanted if job.key not in known]
    progress(len(wanted) - len(left), len(wanted))
    for start in range(0, len(left), at_once):
        part = left[start : start + at_once]
        rows = [
            outcome.result if outcome.result is not None else failed_row(job, str(outcome.error))
            for job, outcome in zip(part, fan_out(spark, run_job, part), strict=True)
        ]
        write(folder, rows)
        progress(len(wanted) - len(left) + start + len(part), len(wanted))
    found = {row["key"]: row for row in results(folder)}
    return [found[job.key] for job in wanted]


def failed_row(job: Job, error: str) -> Row:
    """A job that raised what it should not: kept, marked, and never in a table of ratios."""
    return blank_row(job) | {"status": "failed", "reason": error}


def write(folder: Path, rows: Sequence[Row]) -> None:
    """Add rows as one file, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256("".join(row["key"] for row in rows).encode()).hexdigest()[:16]
    with replace_file(folder / f"results-{name}.parquet") as draft:
        pq.write_table(pa.Table.from_pylist(list(rows), RESULTS), draft)


def results(folder: Path) -> list[Row]:
    """All rows of a folder; a job that failed and was tried again counts as it ended."""
    rows: dict[str, Row] = {}
    for file in sorted(folder.glob("results-*.parquet")):
        try:
            found: list[Row] = pq.read_table(file, schema=RESULTS).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"{file}: not results of the lab: {error}") from None
        for row in found:
            if rows.get(row["key"], row)["status"] == "failed" or row["key"] not in rows:
                rows[row["key"]] = row
    return list(rows.values())
