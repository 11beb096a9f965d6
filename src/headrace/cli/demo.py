"""The demo: plan word count with every scheduler, then run it, measure it and improve it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.answers import collect, costly
from headrace.cli.options import JSON, out_option
from headrace.cli.serving import PORT, RUNS
from headrace.cli.shared import echo, load_case, main, print_json
from headrace.errors import HeadraceError
from headrace.model.output import save

if TYPE_CHECKING:
    from headrace.planner import Outcome

FOLDER = Path(RUNS) / "demo"  # of the run, which can be looked at again


@main.command()
@out_option(".html", default="headrace-demo.html", show_default=True, help="The report to write.")
@click.option("--plan-only", is_flag=True, help="Run nothing on Spark.")
@JSON
def demo(out: str, plan_only: bool, as_json: bool) -> None:
    """Plan word count with every scheduler, run it on a small Spark fleet, and improve it there."""
    from headrace import planner
    from headrace.demo import HEADROOM, demo_files, run_demo
    from headrace.page import page
    from headrace.registry import names
    from headrace.spark import require_spark

    if not plan_only:
        require_spark("demo", otherwise="headrace demo --plan-only")

    def say(message: str) -> None:
        echo(message, err=True)

    schedulers = names("place")
    say(f"1. Planning with {len(schedulers)} schedulers.")
    problem = load_case(demo_files()).with_headroom(HEADROOM).problem
    results = collect(planner.compare(problem), len(schedulers))
    save(out, page(results, title="Word count on nine nodes", command="headrace demo"))
    if not as_json:
        show_plans(results, out)
    ran = None
    if not plan_only:
        say("\n2. Running word count on Spark, measuring it, and planning again from that.")
        folder = fresh_folder(FOLDER)
        with live_page(folder):
            ran = run_demo(folder, say)
    if as_json:
        plans = [result.to_json() for result in results]
        live = None if ran is None else asdict(ran)
        print_json({"format": "headrace/1", "results": plans, "report_file": out, "live": live})
    elif ran is not None:
        from headrace import terminal

        terminal.show(terminal.live_run(ran))
        saved = save_live_page(FOLDER, Path(out))
        if saved is not None:
            echo(f"\nThe live page, saved: {saved.resolve().as_uri()}")
            echo(f"To open it again, and scrub through it: headrace serve {FOLDER}")


def fresh_folder(folder: Path) -> Path:
    """The demo's folder without what the demo before has left there."""
    from headrace.run.journal import NAME

    if (folder / NAME).exists():
        shutil.rmtree(folder)
    return folder


def live_page(folder: Path) -> AbstractContextManager[object]:
    """A page beside the run, at the usual port or any other; none without its packages."""
    from headrace.serve.server import Where, beside, can_bind, require_serve

    try:
        require_serve("the live page")
    except HeadraceError as error:
        echo(f"no live page: {error.message}; {error.fix}", err=True)
        return nullcontext()
    where = Where(port=PORT if can_bind(Where(port=PORT)) else 0)
    return beside(folder, where, lambda message: echo(message, err=True))


def save_live_page(folder: Path, out: Path) -> Path | None:
    """The live page as one file beside the report."""
    from headrace.serve.server import require_serve

    try:
        require_serve("the live page")
    except HeadraceError:
        return None
    from headrace.serve.saved import save_page

    return save_page(folder, out.with_name(f"{out.stem}-live.html"))


def show_plans(results: Sequence[Outcome], out: str) -> None:
    """The table of schedulers, and the best plan."""
    from headrace import planner, terminal

    winner = planner.best(results)
    terminal.show(terminal.comparison(results))
    if winner is not None:
        terminal.show(terminal.plan(winner), terminal.stream_table(costly(winner)))
    echo(f"\nThe report to look at: {Path(out).resolve().as_uri()}")
