"""Commands about where tasks run: place, judge and explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.answers import answer, as_plan, end, explanation_json, finish
from headrace.cli.options import (
    FILES,
    HEADROOM,
    JSON,
    OBJECTIVE,
    OUT,
    STRICTLY,
    by_option,
    searching,
    what_if,
)
from headrace.cli.shared import deliver, load_case, main, print_json, read_options
from headrace.cli.working import was_interrupted, work_shown
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.library.case import Case
    from headrace.model.section import Headroom
    from headrace.model.what_if import WhatIf
    from headrace.planner import Outcome


@main.command()
@FILES
@by_option("place", default="headrace", show_default=True, help="Scheduler.")
@searching
@click.option(
    "--move-cost",
    type=click.FloatRange(min=0),
    help="With a current plan: tuples/s that moving one megabyte of state must gain.",
)
@click.option("--compact", is_flag=True, help="Write runs of tasks instead of single tasks.")
@click.option(
    "--trade-off",
    is_flag=True,
    help="The few plans between the least traffic and the highest rate, and which one to take.",
)
@HEADROOM
@what_if
@STRICTLY
@JSON
@OUT
def place(
    files: tuple[str, ...],
    by: str,
    options: tuple[str, ...],
    objective: str,
    seed: int,
    steps: int | None,
    seconds: float | None,
    move_cost: float | None,
    headroom: Headroom | None,
    what_if: WhatIf,
    compact: bool,
    trade_off: bool,
    as_json: bool,
    out: str | None,
) -> None:
    """Decide which task runs in which worker on which node."""
    from headrace.library.verbs import place as place_case

    if trade_off:
        if options or move_cost is not None:
            raise click.UsageError("--trade-off takes no options of a scheduler")
        limits = {"seed": seed, "steps": steps, "seconds": seconds, "headroom": headroom}
        show_trade_off(files, by, what_if, limits, compact, as_json, out)
        return
    chosen = read_options(options) | ({} if move_cost is None else {"move_cost": move_cost})

    def make(case: Case, _: float) -> Sequence[Outcome]:
        limits = {"seed": seed, "steps": steps, "seconds": seconds, "headroom": headroom}
        return [place_case(case, by, objective=objective, **limits, **chosen)]  # pyright: ignore[reportArgumentType]

    command = f"headrace place {' '.join(files)} --by {by}"
    found = answer(files, what_if, make)
    finish(found, as_json, out, command, compact=compact)
    end(found.results)


def show_trade_off(
    files: tuple[str, ...],
    by: str,
    change: WhatIf,
    limits: dict[str, Any],
    compact: bool,
    as_json: bool,
    out: str | None,
) -> None:
    """The plans between the least traffic and the highest rate."""
    from headrace.library.case import Case
    from headrace.library.verbs import trade_off
    from headrace.model.what_if import apply_change

    case = Case(apply_change(load_case(files).inputs, change))
    with work_shown():
        found = trade_off(case, by, **limits)
    content = found.to_json(compact=compact)
    command = " ".join(["headrace place", *files, "--trade-off", *change.words()])

    def show() -> None:
        from headrace import terminal

        terminal.show(terminal.trade_off(found))

    deliver(content, show, as_json, out, page=lambda: found.html(command=command))
    end(found.plans)


@main.command()
@FILES
@OBJECTIVE
@what_if
@STRICTLY
@JSON
@OUT
def judge(
    files: tuple[str, ...], objective: str, what_if: WhatIf, as_json: bool, out: str | None
) -> None:
    """Judge the plan that one of the files holds."""
    from headrace.library.verbs import judge as judge_case

    def make(case: Case, _: float) -> Sequence[Outcome]:
        return [judge_case(case, objective=objective)]

    found = answer(files, what_if, make)
    finish(found, as_json, out, f"headrace judge {' '.join(files)}")
    end(found.results)


@main.command()
@FILES
@click.option("--task", help="Why is this task where it is? Absent: the plan as a whole.")
@by_option("place", help="Scheduler, where no file holds a plan.")
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
    """Why is this task here; what would it take to fit, and what would make the plan better?"""
    from headrace.judge.shortage import shortage
    from headrace.library.verbs import judge as judge_case
    from headrace.library.verbs import place as place_case

    def make(case: Case, _: float) -> Sequence[Outcome]:
        missing = shortage(case.problem)
        if missing is not None and len(case.problem.topologies) == 1:
            raise missing
        if case.problem.current is not None and by is None:
            return [judge_case(case, objective=objective)]
        return [place_case(case, by or "headrace", objective=objective)]

    found = answer(files, what_if, make)
    advice = None
    if task is None and not was_interrupted():
        from headrace.planner.suggesting import suggest

        with work_shown():
            advice = suggest(found.case.inputs, found.plan)
    before = None if isinstance(found.before, HeadraceError | None) else as_plan(found.before[0])
    if as_json:
        why = explanation_json(found.plan, task)
        content = found.beside({"format": "headrace/1", "explanation": why})
        if advice is not None:
            content["suggestions"] = advice.to_json()
        if before is not None:
            content["without_what_if"] = {"explanation": explanation_json(before, task)}
        print_json(content)
        return
    from headrace import terminal

    terminal.show(terminal.explanation(found.plan, task))
    if advice is not None:
        terminal.show(terminal.suggestions(advice, found.plan))
    if found.before is not None:
        terminal.show(terminal.what_if(found.before, found.results, what_if.words()))
        if task is not None and before is not None:
            terminal.show("Without it:", terminal.explanation(before, task))
    end(found.results)
