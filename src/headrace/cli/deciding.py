"""The loop's options, shared by the commands that run it; its history, and emptying a node."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import JSON, OBJECTIVES, AlgorithmName
from headrace.cli.shared import Command, echo, main, print_json, split
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.control.history import Entry
    from headrace.control.planning import LoopSettings

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType[float]):
    """Seconds, or a number with a unit: 30s, 5m, 1h."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = text[len(number) :]
        try:
            seconds = float(number) * UNITS[unit or "s"]
        except (ValueError, KeyError):
            self.fail(f"`{value}` is no time; one looks like 30s, 5m or 1h", param, ctx)
        if not seconds >= 0:
            self.fail(f"`{value}` is below 0", param, ctx)
        return seconds


@dataclass(frozen=True, slots=True)
class Deciding:
    """How the loop is asked to decide; `on` if it is asked for at all."""

    adaptive: bool
    advise: bool
    rule: str
    rule_options: tuple[str, ...]
    by_options: tuple[str, ...]
    every: float
    horizon: float | None
    improve: float | None
    objective: str
    resize: bool
    reserve: float
    budget: float | None
    forecast: bool

    @property
    def on(self) -> bool:
        return self.adaptive or self.advise

    def settings(self, by: str) -> LoopSettings:
        """As the loop takes them; `--improve` and `--horizon` are options of the rule."""
        from headrace.control.forecast import require_forecast
        from headrace.control.planning import LoopSettings
        from headrace.registry import find

        if self.forecast:
            require_forecast()
        named = {"improve_percent": self.improve, "horizon_s": self.horizon}
        options = {name: value for name, value in named.items() if value is not None}
        options = {**options, **dict(split(self.rule_options))}
        by_options = dict(split(self.by_options))
        find("rule", self.rule).checked_options(options)  # a wrong one is refused before the start
        find("place", by).checked_options(by_options)
        return LoopSettings(
            self.objective, by, by_options, self.rule, options, self.every,
            advise=self.advise, resize=self.resize, reserve=self.reserve, budget=self.budget,
            forecast=self.forecast,
        )  # fmt: skip


def deciding(objective: str) -> Callable[[Command], Command]:
    """The loop's options; the command gets them as one `loop`."""
    # Longer than 60 lines: an option each.
    options = (
        click.option(
            "--adaptive",
            is_flag=True,
            help="Measure, plan again while it runs, and move where it is worth it.",
        ),
        click.option("--advise", is_flag=True, help="As --adaptive, but recommend only."),
        click.option(
            "--rule",
            type=AlgorithmName("rule"),
            default="gain",
            show_default=True,
            help="When to move; or package.module:function.",
        ),
        click.option(
            "--rule-option",
            "rule_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of the rule; repeatable.",
        ),
        click.option(
            "--by-option",
            "by_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of the loop's scheduler; repeatable.",
        ),
        click.option(
            "--every", type=Duration(), default="60s", show_default=True, help="Between decisions."
        ),
        click.option(
            "--horizon", type=Duration(), help="In which a move must pay; absent: as the rule says."
        ),
        click.option(
            "--improve",
            type=click.FloatRange(0, 100),
            help="Percent that a move must gain; absent: as the rule says.",
        ),
        click.option(
            "--objective",
            type=click.Choice(OBJECTIVES),
            default=objective,
            show_default=True,
            help="What the loop's plans are to be best at.",
        ),
        click.option(
            "--resize", is_flag=True, help="Let the loop change task counts, and rented machines."
        ),
        click.option(
            "--reserve",
            type=click.FloatRange(min=0),
            default=0.15,
            show_default=True,
            help="With --resize: share of the rate that plans can do beyond it.",
        ),
        click.option(
            "--budget",
            type=click.FloatRange(min=0),
            help="With --resize and a catalog: most that machines may cost.",
        ),
        click.option(
            "--forecast", is_flag=True, help="Plan for the rate that the history lets expect."
        ),
    )
    names = [field for field in Deciding.__dataclass_fields__]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**given: Any) -> Any:
            loop = Deciding(**{name: given.pop(name) for name in names})
            return command(loop=loop, **given)

        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def say_decision(entry: Entry) -> None:
    echo(decision_line(entry), err=True)


def decision_line(entry: Entry) -> str:
    """A decision in one line."""
    what = "moves" if entry.applied else "would move" if entry.move else "stays"
    moved = f"; {entry.moved_tasks} tasks, {entry.moved_mb:g} MB" if entry.move else ""
    counts = ", ".join(f"{name} {n}" for name, n in entry.tasks.items()) if entry.move else ""
    moved += f"; counts {counts}" if counts else ""
    if entry.move and entry.machines is not None:
        rented = ", ".join(f"{count} x {kind}" for kind, count in entry.machines.items())
        moved += f"; machines {rented}"
    by = f" [{entry.by}, {entry.rule}]" if entry.by else ""
    return f"{what}{by}: {entry.reason}{moved}"


@main.command()
@click.argument("store", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--provenance",
    is_flag=True,
    help="By window: what ran where, what flowed, which plan was in force, and why.",
)
@click.option(
    "--window", type=Duration(), default="60s", show_default=True, help="With --provenance."
)
@click.option("--since", type=click.DateTime(), help="With --provenance: from this time (UTC) on.")
@click.option("--until", type=click.DateTime(), help="With --provenance: up to this time (UTC).")
@click.option(
    "--telemetry",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --provenance: where the run's telemetry is, if not in its folder.",
)
@JSON
def history(
    store: Path,
    provenance: bool,
    window: float,
    since: datetime | None,
    until: datetime | None,
    telemetry: Path | None,
    as_json: bool,
) -> None:
    """Every decision of a run with --adaptive or --advise, from its folder.

    Below a move: what was predicted of its plan, and what was measured after it.
    """
    if provenance:
        show_provenance(store, telemetry or store / "telemetry", window, since, until, as_json)
        return
    from headrace.control.history import entries
    from headrace.control.learning import outcomes

    found = entries(store)
    if not found:
        raise InvalidInput(
            f"{store}: holds no decisions; "
            "a run with --adaptive or --advise keeps them in its folder"
        )
    came = {outcome.entry.at_s: outcome for outcome in outcomes(found)}
    if as_json:
        rows = [
            {
                **asdict(entry),
                "outcome": None
                if (outcome := came.get(entry.at_s)) is None
                else {
                    "figure": outcome.figure,
                    "predicted": outcome.predicted,
                    "measured": outcome.measured,
                    "figures": {
                        name: {"predicted": predicted, "measured": measured}
                        for name, (predicted, measured) in outcome.figures.items()
                    },
                },
            }
            for entry in found
        ]
        print_json({"format": "headrace/1", "decisions": rows})
        return
    for entry in found:
        at = datetime.fromtimestamp(entry.at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        echo(f"{at}  {decision_line(entry)}")
        if (outcome := came.get(entry.at_s)) is not None:
            for name, (predicted, measured) in outcome.figures.items():
                echo(f"{'':21}{name}: predicted {predicted:.4g}, measured {measured:.4g}")


def show_provenance(
    store: Path,
    telemetry: Path,
    window: float,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """Print a run window by window."""
    from headrace.control.history import entries
    from headrace.spark import require_spark

    require_spark("history --provenance")  # telemetry is read with pyarrow
    from headrace.control.provenance import provenance

    bounds = [None if at is None else at.replace(tzinfo=UTC).timestamp() for at in (since, until)]
    windows = provenance(
        telemetry,
        entries(store),
        window_s=max(1, round(window)),
        begin_s=-math.inf if bounds[0] is None else bounds[0],
        end_s=math.inf if bounds[1] is None else bounds[1],
    )
    if as_json:
        print_json({"format": "headrace/1", "windows": [one.to_json() for one in windows]})
        return
    for one in windows:
        at = datetime.fromtimestamp(one.start_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        echo(at)
        for line in one.lines():
            echo(f"  {line}")


@main.command()
@click.argument("nodes", nargs=-1, required=True, metavar="NODE..")
@click.option(
    "--run",
    "store",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder of a run with --adaptive.",
)
@click.option("--undo", is_flag=True, help="Let plans use the nodes again.")
@click.option(
    "--wait",
    type=Duration(),
    default="10m",
    show_default=True,
    help="Give up waiting after so long; the nodes stay marked.",
)
@JSON
def drain(nodes: tuple[str, ...], store: Path, undo: bool, wait: float, as_json: bool) -> None:
    """Empty nodes of a running topology for maintenance, then say that they are free."""
    from headrace.control.draining import drained_nodes, nodes_in_use, set_drained
    from headrace.control.history import entries

    if not store.is_dir():
        raise InvalidInput(f"{store}: no such folder; --run names the folder of a run")
    marked = drained_nodes(store)
    set_drained(store, marked - set(nodes) if undo else marked | set(nodes))
    names = ", ".join(nodes)
    done = {"format": "headrace/1", "nodes": list(nodes), "free": not undo}
    if undo:
        if as_json:
            print_json(done)
        else:
            echo(f"plans may use {names} again, from the next decision on")
        return
    begin = len(entries(store))
    deadline = time.monotonic() + wait
    while True:
        found = entries(store)
        held = sorted(set(nodes) & nodes_in_use(found)) if found else list(nodes)
        if not held:
            if as_json:
                print_json(done)
            else:
                echo(f"{names}: free")
            return
        refused = [e for e in found[begin:] if not e.applied and "cannot be emptied" in e.reason]
        if refused or time.monotonic() > deadline:
            why = refused[-1].reason if refused else f"no plan without it after {wait:g} s"
            raise InvalidInput(
                f"{', '.join(held)}: not free: {why}",
                fix=f"headrace drain --undo {names} --run {store} takes the mark away",
            )
        time.sleep(0.5)
