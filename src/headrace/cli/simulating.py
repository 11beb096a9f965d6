"""The command that lets a plan run, simulated."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.deciding import Deciding, deciding, decision_line
from headrace.cli.options import FILES, JSON, OUT, AlgorithmName, what_if
from headrace.cli.serving import Serving, serving
from headrace.cli.shared import deliver, echo, load_case, main

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.control.adaptive import Adaptive
    from headrace.library.case import Case
    from headrace.model.what_if import WhatIf
    from headrace.planner import Plan
    from headrace.simulate.result import Simulation


@main.command()
@FILES
@click.option("--plan", type=click.Path(), help="The plan to simulate, on the files' machines.")
@click.option(
    "--by",
    multiple=True,
    metavar="NAME",
    help="Schedulers whose plans to simulate; repeatable. Absent: the plan in the files, or ours.",
)
@click.option(
    "--first", type=AlgorithmName("place"), help="With --adaptive: of the first plan; absent: --by."
)
@deciding(objective="traffic")
@click.option(
    "--seconds-simulated",
    type=float,
    default=60.0,
    show_default=True,
    help="So long the plan runs.",
)
@click.option(
    "--warm-up",
    type=float,
    help="Seconds that the summary leaves out; absent: by the MSER rule, if nothing changes.",
)
@click.option("--runs", type=int, default=1, show_default=True, help="Repeat with other chance.")
@click.option("--workers", type=int, help="Processes for several runs; absent: one per core.")
@click.option("--master", help="A Spark cluster for several runs; absent: this machine's cores.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
@click.option(
    "--detail",
    type=click.Choice(["tuple", "fluid", "batch"]),
    default="tuple",
    show_default=True,
    help="Tuple by tuple; as a fluid, for a million tasks; or in batches, as Spark does.",
)
@click.option("--events", type=click.Path(), help="A file of what happens while the plan runs.")
@what_if
@serving("Show it in a browser, moment by moment, until Ctrl-C.")
@JSON
@OUT
def simulate(
    files: tuple[str, ...],
    plan: str | None,
    by: tuple[str, ...],
    first: str | None,
    loop: Deciding,
    seconds_simulated: float,
    warm_up: float | None,
    runs: int,
    workers: int | None,
    master: str | None,
    seed: int,
    detail: str,
    events: str | None,
    what_if: WhatIf,
    serving: Serving,
    as_json: bool,
    out: str | None,
) -> None:
    """What a plan will do: throughput, latency, queues, and what happens at the peak."""
    from headrace.library.case import Case
    from headrace.library.simulation import simulate as simulate_plan
    from headrace.model.what_if import apply_change

    if plan is not None and by:
        raise click.UsageError("give --plan or --by, not both")
    if workers is not None and master is not None:
        raise click.UsageError("give --workers or --master, not both")
    case = Case(apply_change(load_case(files).inputs, what_if))
    # Longer than 60 lines: a parameter for each option.
    if loop.on:
        done = simulate_loop(
            case, plan, by, first, loop, seconds_simulated, seed, events, as_json, out
        )
        show_live(serving, lambda folder: write_loop(folder, done, case))
        return
    found = [
        simulate_plan(
            one,
            seconds=seconds_simulated,
            warm_up=warm_up,
            runs=runs,
            workers=workers,
            master=master,
            seed=seed,
            detail=detail,
            events=events,
        )
        for one in plans_to_simulate(case, plan, by)
    ]
    content = found[0].to_json()
    if len(found) > 1:
        content = {"format": "headrace/1", "results": [one.to_json() for one in found]}

    def show() -> None:
        from headrace import terminal

        first = found[0]
        shown = terminal.simulation(first) if len(found) == 1 else terminal.simulations(found)
        terminal.show(shown)

    def page() -> str:
        from headrace.page.simulation import simulation_page

        words = ["headrace simulate", *files, *(f"--by {name}" for name in by)]
        return simulation_page(found, command=" ".join(words))

    deliver(content, show, as_json, out, page=page)
    show_live(serving, lambda folder: write_plans(folder, found, case))


def show_live(serving: Serving, write: Callable[[Path], object]) -> None:
    """Serve what was simulated, if that is asked for."""
    if serving.on:
        with tempfile.TemporaryDirectory(prefix="headrace-simulated-") as folder:
            write(Path(folder))
            serving.show(Path(folder))


def write_plans(folder: Path, found: Sequence[Simulation], case: Case) -> None:
    """Each simulated plan as a run."""
    from headrace.serve.simulated import write_simulation

    for number, one in enumerate(found, 1):
        write_simulation(folder / f"{number}-{one.scheduler}", one, case.inputs)


def write_loop(folder: Path, done: Adaptive, case: Case) -> None:
    """What the loop did as a run."""
    from headrace.serve.simulated import write_adaptive

    write_adaptive(folder / "adaptive", done, case.inputs)


def plans_to_simulate(case: Case, plan: str | None, by: tuple[str, ...]) -> list[Plan]:
    """The plan that is named or in the files, or those that schedulers make."""
    from headrace.library.verbs import judge, place

    if plan is not None:
        return [judge(case, plan)]
    if not by and case.problem.current is not None:
        return [judge(case)]
    return [place(case, name) for name in by or ("headrace",)]


def simulate_loop(
    case: Case,
    plan: str | None,
    by: tuple[str, ...],
    first: str | None,
    loop: Deciding,
    seconds: float,
    seed: int,
    events: str | None,
    as_json: bool,
    out: str | None,
) -> Adaptive:
    """Let the loop decide in a simulated world, and show what it did."""
    from headrace.control.adaptive import simulate_adaptive
    from headrace.library.simulation import read_events
    from headrace.library.verbs import judge

    if len(by) > 1:
        raise click.UsageError("the loop plans with one scheduler; give --by once")
    chosen = by[0] if by else "headrace"
    given = case.inputs.document.events or () if events is None else read_events(events)
    done = simulate_adaptive(
        case.inputs,
        loop.settings(chosen),
        seconds=seconds,
        events=given,
        seed=seed,
        first=None if plan is None else judge(case, plan),
        first_by=first or chosen,
    )

    def show() -> None:
        for entry in done.decisions:
            if entry.move:
                echo(f"{entry.at_s:>10.0f} s  {decision_line(entry)}")
        echo(done.in_a_line())

    deliver(done.to_json(), show, as_json, out)
    return done
