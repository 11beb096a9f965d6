"""The command that replays event logs of Spark and says what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import JSON, OUT
from headrace.cli.serving import Serving, serving
from headrace.cli.shared import deliver, echo, main, print_json
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.advise.report import Advice


class Span(click.ParamType[float]):
    """A time: 90, 90s, 10m, 1.5h."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from headrace.model.spans import in_seconds

        if isinstance(value, float):
            return value
        found = in_seconds(str(value))
        if found is None or found <= 0:
            self.fail(f"`{value}` is no time; give 90s, 10m or 1.5h", param, ctx)
        return found


@main.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG..")
@click.option("--app", metavar="ID", help="Which application, where there are several.")
@click.option("--deadline", type=Span(), help="The cheapest that ends in time: 90s, 10m, 1.5h.")
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    help="The fastest for so many core-hours, or so much money of the catalog.",
)
@click.option("--catalog", type=click.Path(), help="A file with machine types; prices per hour.")
@click.option("--executors", type=click.IntRange(min=1), help="What if there were so many?")
@click.option("--cores", type=click.IntRange(min=1), help="What if each had so many cores?")
@click.option("--partitions", type=click.IntRange(min=1), help="What if shuffles had so many?")
@click.option(
    "--speed", type=click.FloatRange(min=0, min_open=True), help="Machines X times as fast?"
)
@click.option("--no-stragglers", is_flag=True, help="What if no task were slower than its size?")
@click.option("--follow", is_flag=True, help="With an address: go on until the application ends.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="With --follow: seconds between looks.",
)
@serving("Show it in a browser, and try changes there, until Ctrl-C.")
@OUT
@JSON
def advise(
    logs: tuple[str, ...],
    app: str | None,
    deadline: float | None,
    budget: float | None,
    catalog: str | None,
    follow: bool,
    every: float,
    serving: Serving,
    out: str | None,
    as_json: bool,
    **change: Any,
) -> None:
    """What would this Spark job do elsewhere? Replays its event log, and says what to change.

    LOG is an event log or a folder of one, or the address of a history server
    (http://host:18080) or of a running driver (http://host:4040).
    """
    from headrace.advise.report import advise_on
    from headrace.advise.sources import is_address, read_source
    from headrace.library.advice import prices

    if follow:
        if len(logs) != 1 or not is_address(logs[0]):
            raise InvalidInput("--follow needs one address of a running driver, http://host:4040")
        _follow(logs[0], app, every, as_json)
        return
    machines = prices(catalog)
    found = [
        advise_on(read_source(log, app), deadline_s=deadline, budget=budget, catalog=machines)
        for log in logs
    ]
    asked = {key: value for key, value in change.items() if value}
    answers = [_answer(advice, asked) for advice in found]
    content = answers[0] if len(answers) == 1 else {"format": "headrace/1", "results": answers}
    if out is not None and out.endswith(".html") and len(found) > 1:
        raise InvalidInput(f"{out}: a page shows one application, and there are {len(found)}")
    command = " ".join(["headrace advise", *logs])
    deliver(
        content,
        lambda: _show(found, answers),
        as_json,
        out,
        lambda: found[0].html(command=command),
    )
    serving.show(advice=found)


def _answer(advice: Advice, asked: dict[str, Any]) -> dict[str, Any]:
    answer = advice.to_json()
    if asked:
        outcome = advice.what_if(**asked)
        answer["what_if"] = {
            **asked,
            "wall_s": round(outcome.wall_s, 3),
            "core_hours": round(outcome.core_s / 3600, 6),
        }
    return answer


def _show(found: list[Advice], answers: list[dict[str, Any]]) -> None:
    from headrace import terminal
    from headrace.figures import duration
    from headrace.terminal.advice import advice as show_advice

    for advice, answer in zip(found, answers, strict=True):
        terminal.show(show_advice(advice))
        if (asked := answer.get("what_if")) is not None:
            words = ", ".join(
                f"{key.replace('_', ' ')} {value}"
                for key, value in asked.items()
                if key not in ("wall_s", "core_hours")
            )
            echo(
                f"what if {words}: {duration(asked['wall_s'])} instead of "
                f"{duration(advice.replayed.wall_s)}, {asked['core_hours']:.3g} core-hours"
            )


def _follow(url: str, app: str | None, every: float, as_json: bool) -> None:
    from headrace import terminal
    from headrace.advise.live import follow
    from headrace.terminal.advice import advice as show_advice

    last: Advice | None = None
    interrupted = False
    try:
        for advice in follow(url, app, every_s=every):
            last = advice
            if as_json:
                print_json(advice.to_json())
            else:
                echo(_line(advice))
    except KeyboardInterrupt:
        interrupted = True
    if last is not None and not as_json:
        terminal.show(show_advice(last))
    if interrupted:
        click.get_current_context().exit(130)


def _line(advice: Advice) -> str:
    """One look at a running application."""
    from headrace.figures import duration, number

    trace = advice.trace
    tasks = sum(len(run.attempts) for run in trace.stages)
    words = f"{duration(trace.wall_s)}: {len(trace.jobs)} jobs, {tasks} tasks"
    for stream in advice.streams:
        rate = "" if stream.rows_per_s is None else f", {number(stream.rows_per_s)} rows/s"
        words += f"; {stream.name}: batch {stream.batch_s:.3g} s{rate}"
    worst = next((f for f in advice.findings if f.seconds), None)
    if worst is not None:
        where = f" {worst.stage}" if worst.stage else ""
        words += f"; {worst.kind}{where}: {number(worst.seconds or 0.0)} s"
    return words
