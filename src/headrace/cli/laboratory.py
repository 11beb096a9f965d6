"""Commands of the lab: many problems, many schedulers, one table."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import JSON, OBJECTIVES, out_option
from headrace.cli.shared import echo, main, print_json
from headrace.errors import InvalidInput
from headrace.model.output import save
from headrace.place import SCHEDULERS
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.lab.scoreboard import Scores

FOLDER = click.option(
    "--store",
    default="lab-results",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Where results are kept.",
)


@main.group()
def lab() -> None:
    """Compare schedulers on families of problems, spread over Spark."""


@lab.command("list")
@JSON
def list_families(as_json: bool) -> None:
    """The families of problems there are."""
    from headrace.lab.families import FAMILIES, cases

    if as_json:
        rows = [{"family": name, "problems": len(cases(name))} for name in FAMILIES]
        print_json({"format": "headrace/1", "families": rows})
        return
    for name, function in FAMILIES.items():
        words = (function.__doc__ or "").split("\n")[0]
        echo(f"{name:<22}{len(cases(name)):>4} problems  {words}")


@lab.command("run")
@click.argument("names", nargs=-1)
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(list(SCHEDULERS)),
    help="Scheduler; repeatable. Absent: all.",
)
@click.option(
    "--objective",
    "objectives",
    multiple=True,
    type=click.Choice(OBJECTIVES),
    default=("traffic",),
    show_default=True,
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds each."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Cut each search short after so many seconds.",
)
@click.option("--master", help="A Spark cluster; absent: this machine's cores.")
@FOLDER
@JSON
def run_jobs(
    names: tuple[str, ...],
    by: tuple[str, ...],
    objectives: tuple[str, ...],
    seeds: int,
    seconds: float | None,
    master: str | None,
    store: str,
    as_json: bool,
) -> None:
    """Run families (all if none is named) or problem files; results in the store are kept."""
    require_spark("lab run")
    from headrace.lab.families import FAMILIES, cases, from_files
    from headrace.lab.jobs import jobs, run
    from headrace.spark import session

    chosen = [
        case
        for name in names or FAMILIES
        for case in ([from_files("files", name, [name])] if Path(name).exists() else cases(name))
    ]
    wanted = jobs(
        chosen, by or tuple(SCHEDULERS), seeds=seeds, objectives=objectives, seconds=seconds
    )
    spark = session(app="headrace-lab", master=master)
    rows = run(spark, wanted, Path(store), progress=show_progress)
    failed = [row for row in rows if row["status"] == "failed"]
    if as_json:
        content = {"store": store, "results": len(rows), "failed": len(failed)}
        print_json({"format": "headrace/1", "lab": content})
        return
    echo(f"{len(rows):,} results in {store}" + (f", {len(failed)} failed" if failed else ""))
    for row in failed[:5]:
        echo(
            f"  {row['scheduler']} on {row['family']}, {row['problem']}: {row['reason']}", err=True
        )


def show_progress(done: int, total: int) -> None:
    """A bar that grows, where someone is watching."""
    if sys.stderr.isatty():
        filled = 30 * done // max(total, 1)
        click.echo(
            f"\r{'█' * filled}{'·' * (30 - filled)} {done:,} of {total:,} plans",
            err=True,
            nl=done == total,
        )


@lab.command("report")
@FOLDER
@click.option(
    "--best",
    help="End with status 1 if this scheduler was beaten anywhere in the objective it was given.",
)
@out_option(".md", help="Write the tables here (.md), with a picture beside it (.svg).")
@JSON
def report(store: str, best: str | None, out: str | None, as_json: bool) -> None:
    """Each scheduler's ratio to the best known plan, by family; feasible plans only."""
    require_spark("lab report")  # results are Parquet files
    from headrace.lab.jobs import results
    from headrace.lab.scoreboard import above_best, scores, table

    rows = results(Path(store))
    if not rows:
        raise InvalidInput(f"{store}: no results there; `headrace lab run` makes them")
    objectives = list(dict.fromkeys(row["objective"] for row in rows))
    tables = {objective: scores(rows, objective) for objective in objectives}
    text = "\n".join(table(found, objective) for objective, found in tables.items())
    if out is not None:
        write_report(out, text, tables, list(dict.fromkeys(row["scheduler"] for row in rows)))
    if as_json:
        print_json({"format": "headrace/1", "scores": scores_json(tables)})
    else:
        echo(text if out is None else f"wrote {out}")
    beaten = [
        f"{objective}, {where}"
        for objective, found in tables.items()
        for where in above_best(found, best or "")
    ]
    if beaten:
        raise InvalidInput(f"{best} was beaten: {'; '.join(beaten)}")


def write_report(out: str, text: str, tables: Mapping[str, Scores], schedulers: list[str]) -> None:
    """Write the tables with a picture for each."""
    from headrace.lab.scoreboard import picture

    for objective, found in tables.items():
        svg = Path(out).with_suffix("").name + f"-{objective}.svg"
        save(
            str(Path(out).with_name(svg)),
            picture(found, f"Ratio to the best known plan, objective {objective}", schedulers),
        )
        text += f"\n![{objective}]({svg})\n"
    save(out, text)


def scores_json(tables: Mapping[str, Scores]) -> list[dict[str, object]]:
    """One row per objective, family and scheduler."""
    return [
        {
            "objective": objective,
            "family": family,
            "scheduler": scheduler,
            "problems": score.feasible + score.infeasible + score.refused + score.failed,
            "feasible": score.feasible,
            "best": score.best,
            "mean_ratio": score.mean if math.isfinite(score.mean) else None,
            "worst_ratio": score.worst if math.isfinite(score.worst) else None,
        }
        for objective, found in tables.items()
        for (family, scheduler), score in found.items()
    ]


@lab.command("calibrate")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Stop at the size that takes longer.",
)
@click.option("--most", type=click.IntRange(min=2), help="The largest number of vertices to try.")
@out_option(".json", help="Write the table here (.json), for `--option table=FILE` of i-scheduler.")
@JSON
def run_calibration(seconds: float, most: int | None, out: str | None, as_json: bool) -> None:
    """Measure how many vertices i-scheduler's exact model solves in how many seconds here."""
    from headrace.lab.calibrate import MOST, calibrate

    found = calibrate(
        seconds=seconds, most=most or MOST, say=lambda words: echo(words, err=as_json)
    )
    if out is not None:
        save(out, json.dumps(found, indent=2) + "\n")
        echo(f"wrote {out}", err=as_json)
    if as_json:
        print_json({"format": "headrace/1", "table": found})


@lab.command("storm-referee")
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--rule",
    "rules",
    multiple=True,
    type=click.Choice(["storm-even", "2.0", "2.3"]),
    help="storm-even, or storm-ras as Storm 2.0 or 2.3 has it; repeatable. Absent: all.",
)
@click.option(
    "--random",
    "clusters",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Without files: how many random clusters, from seed 0.",
)
@click.option("--tight", is_flag=True, help="Random clusters with hardly enough room.")
@JSON
def run_referee(
    files: tuple[str, ...], rules: tuple[str, ...], clusters: int, tight: bool, as_json: bool
) -> None:
    """Compare storm-even and storm-ras with Storm's own schedulers, executor by executor."""
    from headrace.lab.storm_problems import draw_storm_cluster, draw_tight_storm_cluster
    from headrace.lab.storm_referee import RULES, referee
    from headrace.model.build import build
    from headrace.model.read import read, validated
    from headrace.storm.nimbus import java_command

    draw = draw_tight_storm_cluster if tight else draw_storm_cluster
    problems = {name: build(read([name])) for name in files} or {
        f"random {seed}": build(validated(draw(seed), {})) for seed in range(clusters)
    }
    rows: list[dict[str, object]] = []
    for rule in rules or RULES:
        java = java_command(RULES[rule].storm, lambda words: echo(words, err=True))
        verdicts = referee(list(problems.values()), RULES[rule], java)
        for name, verdict in zip(problems, verdicts, strict=True):
            rows.append({"rule": rule, "problem": name, "equal": verdict.equal, **asdict(verdict)})
            if not as_json and not verdict.equal:
                echo(f"{rule}, {name}: {verdict.first}")
        equal = sum(verdict.equal for verdict in verdicts)
        executors = sum(verdict.executors for verdict in verdicts)
        same = sum(verdict.same for verdict in verdicts)
        echo(
            f"{rule:<12}{equal} of {len(verdicts)} problems equal, "
            f"{same:,} of {executors:,} executors",
            err=as_json,
        )
    if as_json:
        print_json({"format": "headrace/1", "verdicts": rows})
