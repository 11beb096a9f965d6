"""What planning commands answer: with and without a change that is tried, printed and written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import STRICT
from headrace.cli.shared import STOPPED, echo, load_case, print_json
from headrace.cli.working import CLEAR, INTERRUPTED, was_interrupted, work_shown
from headrace.errors import HeadraceError
from headrace.model.output import save, text_for
from headrace.model.progress import NOW

NOT_WHOLE = 3  # the exit status with --strict where the plan is infeasible or partial

if TYPE_CHECKING:
    from headrace.judge.explain import Costly
    from headrace.library.case import Case
    from headrace.model.what_if import WhatIf
    from headrace.planner import CostCurve, Outcome, Plan, Yardstick
    from headrace.simulate.result import Simulation

    Make = Callable[[Case, float], Sequence[Outcome]]  # from a case and the load asked about


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a command found, and where a change was tried, what it finds without it."""

    results: Sequence[Outcome]
    case: Case  # with the change
    what_if: WhatIf
    before: Sequence[Outcome] | HeadraceError | None  # None: no change was tried

    @property
    def plan(self) -> Plan:
        """The plan, for commands that make one."""
        return as_plan(self.results[0])

    def to_json(self, compact: bool = False) -> dict[str, Any]:
        """The contract's object; a change and the answer without it are beside it."""
        return self.beside(results_json(self.results, compact), compact)

    def beside(self, content: dict[str, Any], compact: bool = False) -> dict[str, Any]:
        """The content with the change that was tried, and the answer without it."""
        if self.before is None:
            return content
        if isinstance(self.before, HeadraceError):
            before: dict[str, Any] = {"error": self.before.fields()}
        else:
            before = results_json(self.before, compact)
        return content | {"what_if": self.what_if.words(), "without_what_if": before}


def as_plan(result: Outcome) -> Plan:
    """The plan of a command that makes one: a refusal is raised, never returned."""
    from headrace.planner import Refusal

    if isinstance(result, Refusal):
        raise result.error
    return result


def answer(
    files: tuple[str, ...], change: WhatIf, make: Make, *, keeps_best: bool = True
) -> Answer:
    """Plan what the files say; where a change is tried, with and without it."""
    from headrace.library.case import Case
    from headrace.model.what_if import apply_change

    case = load_case(files)
    if not change:
        with work_shown(keeps_best):
            return Answer(make(case, 1.0), case, change, None)
    other = Case(apply_change(case.inputs, change))
    with work_shown(keeps_best):
        try:
            before: Sequence[Outcome] | HeadraceError = make(case, 1.0)
        except HeadraceError as error:  # a change may be what makes a plan possible
            before = error
        return Answer(make(other, change.rate_factor or 1.0), other, change, before)


def collect(
    results: Iterable[Outcome], total: int, show: Callable[[Outcome], None] | None = None
) -> Sequence[Outcome]:
    """All results, or on Ctrl-C those that are there; exit status 130 then follows.

    Where someone is watching, each is said on stderr as it comes.
    """
    found: list[Outcome] = []
    try:
        for result in results:
            found.append(result)
            NOW.doing = f"{len(found)} of {total} asked, the last was {result.scheduler}"
            if show is not None and sys.stderr.isatty():
                click.echo(CLEAR, err=True, nl=False)
                show(result)
    except KeyboardInterrupt:
        if not found:
            raise
        click.get_current_context().meta[INTERRUPTED] = True
        left = total - len(found)
        echo(f"\nheadrace: stopped; {left} of {total} were not asked", err=True)
    return found


def end(results: Sequence[Outcome]) -> None:
    """End with the status of Ctrl-C where there was one, or of --strict where no plan is whole."""
    from headrace.words import plans_of

    context = click.get_current_context()
    if was_interrupted():
        context.exit(STOPPED)
    if context.meta.get(STRICT) and not any(p.report.feasible for p in plans_of(results)):
        context.exit(NOT_WHOLE)


def finish(
    found: Answer,
    as_json: bool,
    out: str | None,
    command: str,
    *,
    compact: bool = False,
    more: dict[str, Any] | None = None,
    curve: CostCurve | None = None,
    yardstick: Yardstick | None = None,
    simulated: Mapping[str, Simulation] | None = None,
) -> None:
    """Print what was planned, and write it where asked; the curve is for the page.

    What was `simulated` goes beside the results, by the name of the scheduler.
    """
    more = more or {}
    if simulated is not None:
        more = more | {"simulated": {name: one.summary() for name, one in simulated.items()}}
    if out is not None:
        save(out, _text(found, out, command, compact, curve, yardstick, more))
    if as_json:
        print_json(found.to_json(compact) | more)
        return
    from headrace import terminal

    results = found.results
    terminal.show(
        terminal.plan(found.plan)
        if len(results) == 1 and simulated is None
        else terminal.comparison(results, yardstick, simulated)
    )
    if found.before is not None:
        terminal.show(terminal.what_if(found.before, results, found.what_if.words()))
    if out is not None:
        echo(f"wrote {out}")


def _text(
    found: Answer,
    out: str,
    command: str,
    compact: bool,
    curve: CostCurve | None,
    yardstick: Yardstick | None,
    more: dict[str, Any],
) -> str:
    """What goes into the file: a page, a plan that stands alone, or the results."""
    if Path(out).suffix == ".html":
        from headrace.page import page

        asked = " ".join([command, *found.what_if.words()])
        return page(
            found.results, command=asked, curve=curve, yardstick=yardstick, before=found.before
        )
    if len(found.results) == 1:
        return text_for(out, found.plan.to_json(compact=compact, alone=True))
    return text_for(out, results_json(found.results, compact) | more)


def results_json(results: Sequence[Outcome], compact: bool = False) -> dict[str, Any]:
    """One result as it is, many as one object."""
    from headrace.library.comparison import Comparison

    return Comparison(tuple(results)).to_json(compact=compact)


def explanation_json(plan: Plan, task: str | None = None) -> dict[str, Any]:
    """Why a plan, or one of its tasks, is as it is."""
    from headrace.judge.explain import explain_task
    from headrace.words import headline

    if task is not None:
        return explain_task(plan.problem, plan.assignment, task).to_json()
    rows = [
        {
            "from": s.source,
            "to": s.target,
            "stream": s.stream,
            "tuples_per_s": s.tuples_per_s,
            "crossing": s.crossing,
        }
        for s in costly(plan)
    ]
    return {"headline": headline(plan), "streams": rows}


def costly(plan: Plan) -> list[Costly]:
    """Where a plan's traffic between nodes comes from."""
    from headrace.judge.explain import costly_streams

    return costly_streams(plan.problem, plan.assignment)
