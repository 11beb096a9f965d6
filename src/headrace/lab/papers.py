"""Run the papers' experiments: a folder per paper, with claims.toml and experiment.py.

`python -m headrace.lab.papers FOLDER.. [--quick]` writes results.json, plots and README.md there.
An experiment is a function `measure(quick, spark) -> Experiment`; with `quick` it measures at least
the claims marked quick, in seconds. The quick run writes nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headrace
from headrace.lab.claims import (
    HOW,
    STATUSES,
    Claim,
    Measured,
    Paper,
    Value,
    disagreements,
    read_paper,
)
from headrace.lab.machine import machine
from headrace.model.files import write_whole
from headrace.model.modules import load_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for the README."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What an experiment found: claims by id, tables, and plots by file name (SVG text)."""

    measured: Mapping[str, Measured]
    tables: Sequence[Table] = ()
    plots: Mapping[str, str] = field(default_factory=dict[str, str])


Measure = Callable[[bool, "Callable[[], SparkSession]"], Experiment]


def experiment_of(folder: Path) -> Measure:
    """The function `measure` of a paper's experiment.py."""
    return load_module(f"papers_{folder.name}", folder / "experiment.py").measure


def run(folder: Path, *, quick: bool, spark: Callable[[], SparkSession]) -> list[str]:
    """Measure a paper's claims and write what was found; gives the claims with a wrong status."""
    paper = read_paper(folder)
    start = time.perf_counter()
    found = experiment_of(folder)(quick, spark)
    seconds = time.perf_counter() - start
    if quick:
        chosen = [claim for claim in paper.claims if claim.quick]
        ids = {claim.id for claim in chosen}
        return disagreements(chosen, {c: m for c, m in found.measured.items() if c in ids})
    for name, svg in found.plots.items():
        write_whole(folder / name, svg)
    content = {
        "headrace": headrace.__version__,
        "machine": machine(),
        "seconds": round(seconds, 1),
        "measured": {name: measured_row(m) for name, m in found.measured.items()},
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / "results.json", text)
    write_whole(folder / "README.md", readme(paper, found, seconds))
    return disagreements(paper.claims, found.measured)


def measured_row(measured: Measured) -> dict[str, Any]:
    """What came out, as it is kept."""
    row = {
        "value": round_value(measured.value),
        "shape": measured.shape,
        "note": measured.note,
    }
    return row if measured.testable else {**row, "testable": False}


def round_value(value: Value) -> Any:
    """Numbers to nine digits, as they are kept."""
    if isinstance(value, list):
        return [round_value(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def readme(paper: Paper, found: Experiment, seconds: float) -> str:
    """The paper's page: what it says beside what came out."""
    counts = {status: sum(c.status == status for c in paper.claims) for status in STATUSES}
    lines = [
        f"# {paper.name}",
        "",
        paper.reference,
        "",
        paper.words,
        "",
        f"{len(paper.claims)} claims: "
        + ", ".join(f"{n} {status}" for status, n in counts.items() if n)
        + ".",
        f"This page is written by `make papers` (this paper: {seconds:.0f} s on {machine()}); "
        + "do not edit it.",
        "",
        "| where | the paper says | published | measured | status | how |",
        "|---|---|---:|---:|---|---|",
    ]
    for claim in paper.claims:
        measured = found.measured.get(claim.id)
        value = "" if measured is None else format_value(measured.value)
        published = f"{format_value(claim.value)} {claim.unit}".strip()
        cells = (claim.where, claim.says, published, value, claim.status, claim.how)
        lines.append(table_row(cell.replace("|", "\\|") for cell in cells))
    lines += ["", *(f"*{name}*: {meaning}." for name, meaning in HOW.items()), ""]
    for name in found.plots:
        lines += [f"![{name.removesuffix('.svg')}]({name})", ""]
    for table in found.tables:
        lines += [f"## {table.title}", "", table_row(table.columns)]
        lines.append("|---" * len(table.columns) + "|")
        lines += [table_row(format_value(cell) for cell in row) for row in table.rows] + [""]
    lines += ["## How each was measured", ""]
    lines += [derivation(claim, found.measured.get(claim.id)) for claim in paper.claims]
    return "\n".join(lines) + "\n"


def table_row(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def derivation(claim: Claim, measured: Measured | None) -> str:
    """One line about one claim."""
    note = f" {measured.note}" if measured is not None and measured.note else ""
    reason = f" **{claim.status}**: {claim.reason}" if claim.reason else ""
    tolerance = (
        f" Tolerance {claim.tolerance:g} {claim.unit}".rstrip() + "." if claim.tolerance else ""
    )
    return f"- `{claim.id}` ({claim.where}): {claim.derivation}{tolerance}{reason}{note}"


def format_value(value: object) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(format_value(v) for v in value)  # pyright: ignore[reportUnknownArgumentType]
    return str(value)


def main() -> int:
    """Run the named folders; the exit status says whether every status holds."""
    from headrace.spark import session

    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    wrong = 0
    for name in (a for a in arguments if not a.startswith("-")):
        start = time.perf_counter()
        found = run(Path(name), quick=quick, spark=lambda: session(app="headrace-papers"))
        outcome = "WRONG" if found else "every status holds"
        print(f"{name}: {outcome} ({time.perf_counter() - start:.0f} s)", flush=True)
        for line in found:
            print(f"  {line}")
        wrong += len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
