"""Commands about plans: place, judge, compare, explain, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.shared import (
    FILES,
    JSON,
    OBJECTIVE,
    OUT,
    answered,
    dumps,
    explained,
    finish,
    main,
    parsed,
    progress,
    read,
    save,
    searching,
    what_if,
)
from headrace.errors import HeadraceError
from headrace.place import SCHEDULERS
from headrace.words import plan_of, plans_of

if TYPE_CHECKING:
    from headrace.model.read import Inputs
    from headrace.model.what_if import WhatIf
    from headrace.planner import Planned


@main.command()
@FILES
@click.option(
    "--by", type=click.Choice(list(SCHEDULERS)), help="Scheduler; absent: the default one."
)
@searching
@click.option(
    "--move-cost",
    type=click.FloatRange(min=0),
    help="With a current plan: tuples/s that moving one megabyte of state must gain.",
)
@click.option("--compact", is_flag=True, help="Write runs of tasks instead of single tasks.")
@what_if
@JSON
@OUT
def place(
    files: tuple[str, ...], by: str | None, options: tuple[str, ...], objective: str, seed: int, steps: int | None, seconds: float | None,
    move_cost: float | None, what_if: WhatIf, compact: bool, as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """Decide which task runs in which worker on which node."""
    from headrace import planner
    from headrace.model.build import build

    by = by or planner.DEFAULT

    def planned(inputs: Inputs, _: float) -> list[Planned]:
        return [
            planner.place(
                build(inputs), by, objective=objective, options=parsed(options), seed=seed, steps=steps, seconds=seconds, move_cost=move_cost
            )
        ]  # fmt: skip

    finish(
        answered(files, what_if, planned),
        as_json,
        out,
        compact,
        f"headrace place {' '.join(files)} --by {by}",
    )


@main.command()
@FILES
@OBJECTIVE
@what_if
@JSON
@OUT
def judge(
    files: tuple[str, ...], objective: str, what_if: WhatIf, as_json: bool, out: str | None
) -> None:
    """Judge the plan that one of the files holds."""
    from headrace import planner
    from headrace.model.build import build

    def planned(inputs: Inputs, _: float) -> list[Planned]:
        return [
            planner.judged(
                build(inputs), objective=objective, scheduler=inputs.document.scheduler or "given"
            )
        ]

    finish(
        answered(files, what_if, planned), as_json, out, False, f"headrace judge {' '.join(files)}"
    )


@main.command()
@FILES
@click.option(
    "--by",
    type=click.Choice(list(SCHEDULERS)),
    multiple=True,
    help="Schedulers to compare; absent: all.",
)
@searching
@what_if
@JSON
@OUT
def compare(
    files: tuple[str, ...], by: tuple[str, ...], options: tuple[str, ...], objective: str, seed: int, steps: int | None, seconds: float | None,
    what_if: WhatIf, as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """The same problem through many schedulers, in one table."""
    from headrace import planner
    from headrace.model.build import build

    if options or steps is not None:
        raise click.UsageError(
            "compare takes options from the file's `options`, and steps from the problem's size"
        )

    def planned(inputs: Inputs, _: float) -> list[Planned]:
        found = planner.compare(build(inputs), by, objective=objective, seed=seed, seconds=seconds)
        return progress(found, len(by) or len(SCHEDULERS))

    finish(
        answered(files, what_if, planned),
        as_json,
        out,
        False,
        f"headrace compare {' '.join(files)}",
    )


@main.command()
@FILES
@click.option("--task", help="Why is this task where it is? Absent: the plan as a whole.")
@click.option(
    "--by", type=click.Choice(list(SCHEDULERS)), help="Scheduler, where no file holds a plan."
)
@OBJECTIVE
@what_if
@JSON
def explain(
    files: tuple[str, ...],
    task: str | None,
    by: str | None,
    objective: str,
    what_if: WhatIf,
    as_json: bool,
) -> None:
    """Why is this task here; what would it take to fit?"""
    from headrace import planner
    from headrace.judge.shortage import shortage
    from headrace.model.build import build

    def planned(inputs: Inputs, _: float) -> list[Planned]:
        problem = build(inputs)
        missing = shortage(problem)
        if missing is not None and len(problem.topologies) == 1:
            raise missing
        if problem.current is not None and by is None:
            return [planner.judged(problem, objective=objective)]
        return [planner.place(problem, by or planner.DEFAULT, objective=objective)]

    answer = answered(files, what_if, planned)
    if as_json:
        content = answer.beside(
            {"format": "headrace/1", "explanation": explained(answer.results[0], task)}
        )
        if answer.before is not None and not isinstance(answer.before, HeadraceError):
            content["without_what_if"] = {"explanation": explained(answer.before[0], task)}
        click.echo(dumps(content))
        return
    from headrace import terminal

    for plan in plans_of(answer.results):
        terminal.show(terminal.explanation(plan, task))
    if answer.before is not None:
        terminal.show(terminal.what_if(answer.before, answer.results, what_if.words()))
        if task is not None and not isinstance(answer.before, HeadraceError):
            for plan in plans_of(answer.before):
                terminal.show("Without it:", terminal.explanation(plan, task))


@main.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    default="headrace-demo.html",
    show_default=True,
    help="The report to write.",
)
@click.option("--plan-only", is_flag=True, help="Run nothing on Spark.")
@JSON
def demo(out: str, plan_only: bool, as_json: bool) -> None:
    """Plan word count with every scheduler and write a report; then run it on a small Spark fleet, measure it and improve it as it runs."""
    import tempfile
    from dataclasses import asdict

    from headrace import planner
    from headrace.demo import demo_files, live
    from headrace.model.build import build
    from headrace.page import page

    def say(message: str) -> None:
        click.echo(message, err=True)

    say(
        f"1. Planning with {len(SCHEDULERS)} schedulers. The first run compiles the search kernels, which takes about a minute."
    )
    inputs = read(demo_files())
    results = progress(planner.compare(build(inputs)), len(SCHEDULERS))
    save(out, page(results, title="Word count on nine nodes", command="headrace demo"))
    if not as_json:
        from headrace import terminal

        winner = planner.best(results)
        terminal.show(terminal.comparison(results))
        if winner is not None and (plan := plan_of(winner)) is not None:
            terminal.show(terminal.explanation(plan, None))
        click.echo(f"\nThe report to look at: {Path(out).resolve().as_uri()}")
    ran = None
    if not plan_only:
        say(
            "\n2. Running word count on Spark, measuring it, and planning again from what was measured."
        )
        with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
            ran = live(Path(folder), say)
    if as_json:
        content = {
            "format": "headrace/1",
            "results": [r.to_json() for r in results],
            "report_file": out,
        }
        click.echo(dumps({**content, "live": None if ran is None else asdict(ran)}))
    elif ran is not None:
        from headrace import terminal

        terminal.show(terminal.live_run(ran))
