"""Commands about plans: place, judge, compare, explain, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.shared import FILES, JSON, OBJECTIVE, OUT, dumps, finish, main, parsed, progress, read, save, searching
from headrace.place import SCHEDULERS

if TYPE_CHECKING:
    from headrace.planner import Planned


@main.command()
@FILES
@click.option("--by", type=click.Choice(list(SCHEDULERS)), help="Scheduler; absent: the default one.")
@searching
@click.option(
    "--move-cost", type=click.FloatRange(min=0), help="With a current plan: tuples/s that moving one megabyte of state must gain."
)
@click.option("--compact", is_flag=True, help="Write runs of tasks instead of single tasks.")
@JSON
@OUT
def place(
    files: tuple[str, ...], by: str | None, options: tuple[str, ...], objective: str, seed: int, steps: int | None, seconds: float | None,
    move_cost: float | None,
    compact: bool, as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """Decide which task runs in which worker on which node."""
    from headrace import planner
    from headrace.model.build import build

    inputs = read(files)
    result = planner.place(
        build(inputs),
        by or planner.DEFAULT,
        objective=objective,
        options=parsed(options),
        seed=seed,
        steps=steps,
        seconds=seconds,
        move_cost=move_cost,
    )
    finish([result], inputs, as_json, out, compact, f"headrace place {' '.join(files)} --by {result.scheduler}")


@main.command()
@FILES
@OBJECTIVE
@JSON
@OUT
def judge(files: tuple[str, ...], objective: str, as_json: bool, out: str | None) -> None:
    """Judge the plan that one of the files holds."""
    from headrace import planner
    from headrace.model.build import build

    inputs = read(files)
    result = planner.judged(build(inputs), objective=objective, scheduler=inputs.document.scheduler or "given")
    finish([result], inputs, as_json, out, False, f"headrace judge {' '.join(files)}")


@main.command()
@FILES
@click.option("--by", type=click.Choice(list(SCHEDULERS)), multiple=True, help="Schedulers to compare; absent: all.")
@searching
@JSON
@OUT
def compare(
    files: tuple[str, ...], by: tuple[str, ...], options: tuple[str, ...], objective: str, seed: int, steps: int | None, seconds: float | None,
    as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """The same problem through many schedulers, in one table."""
    from headrace import planner
    from headrace.model.build import build

    if options or steps is not None:
        raise click.UsageError("compare takes options from the file's `options`, and steps from the problem's size")
    inputs = read(files)
    problem = build(inputs)
    results = progress(planner.compare(problem, by, objective=objective, seed=seed, seconds=seconds), len(by) or len(SCHEDULERS))
    finish(results, inputs, as_json, out, False, f"headrace compare {' '.join(files)}")


@main.command()
@FILES
@click.option("--task", help="Why is this task where it is? Absent: the plan as a whole.")
@click.option("--by", type=click.Choice(list(SCHEDULERS)), help="Scheduler, where no file holds a plan.")
@OBJECTIVE
@JSON
def explain(files: tuple[str, ...], task: str | None, by: str | None, objective: str, as_json: bool) -> None:
    """Why is this task here; what would it take to fit?"""
    from headrace import planner, terminal
    from headrace.judge.explain import costly_streams, explain_task
    from headrace.judge.shortage import shortage
    from headrace.model.build import build

    problem = build(read(files))
    missing = shortage(problem)
    if missing is not None and len(problem.topologies) == 1:
        raise missing
    given = problem.current is not None and by is None
    result = (
        planner.judged(problem, objective=objective)
        if given
        else planner.place(problem, by or planner.DEFAULT, objective=objective)
    )
    assert result.assignment is not None
    if task is not None:
        why = explain_task(problem, result.assignment, task)
        click.echo(dumps({"format": "headrace/1", "explanation": why.to_json()})) if as_json else terminal.show(
            terminal.explanation(why)
        )
        return
    streams = costly_streams(problem, result.assignment)
    if as_json:
        rows = [
            {"from": s.source, "to": s.target, "stream": s.stream, "tuples_per_s": s.tuples_per_s, "crossing": s.crossing}
            for s in streams
        ]
        click.echo(dumps({"format": "headrace/1", "explanation": {"headline": terminal.headline(result), "streams": rows}}))
    else:
        terminal.show(terminal.planned(result), terminal.costly(streams))


@main.command()
@click.option(
    "--out", type=click.Path(dir_okay=False), default="headrace-demo.html", show_default=True, help="The report to write."
)
@JSON
def demo(out: str, as_json: bool) -> None:
    """Plan word count on a nine-node cluster with every scheduler, and write a report."""
    from headrace import planner, terminal
    from headrace.demo import demo_files
    from headrace.model.build import build
    from headrace.page import page

    click.echo(
        f"Planning with {len(SCHEDULERS)} schedulers. The first run compiles the search kernels, which takes about a minute.",
        err=True,
    )
    inputs = read(demo_files())
    results = progress(planner.compare(build(inputs)), len(SCHEDULERS))
    save(out, page(results, title="Word count on nine nodes", command="headrace demo"))
    if as_json:
        click.echo(dumps({"format": "headrace/1", "results": [r.to_json() for r in results], "report_file": out}))
        return
    winner = planner.best(results)
    terminal.show(terminal.comparison(results))
    if winner is not None and winner.assignment is not None:
        terminal.show(terminal.planned(winner), terminal.costly(costly_of(winner)))
    click.echo(f"\nThe report to look at: {Path(out).resolve().as_uri()}")


def costly_of(result: Planned) -> Any:
    """Where a plan's traffic between nodes comes from."""
    from headrace.judge.explain import costly_streams

    assert result.assignment is not None
    return costly_streams(result.problem, result.assignment)
