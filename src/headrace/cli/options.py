"""The options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from headrace.cli.shared import Command, split

OBJECTIVES = ("traffic", "network", "rate", "batch", "nodes", "balance")  # of every command
DATA = (".json", ".yaml", ".yml")  # endings of files for programs
STRICT = "headrace.strict"  # of the context: whether a plan that is not feasible is a failure


class AlgorithmName(click.Choice[str]):
    """One of ours, of an installed package, or `package.module:function`."""

    def __init__(self, folder: str) -> None:
        from importlib import import_module

        package = "control.rules" if folder == "rule" else folder
        super().__init__(list(import_module(f"headrace.{package}").SCHEDULERS))
        self.folder = folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices or ":" in value:
            return value
        from headrace.registry import names

        return value if value in names(self.folder) else super().convert(value, param, ctx)


def by_option(folder: str, **settings: Any) -> Callable[[Command], Command]:
    """`--by`, for the algorithms of a folder."""
    return click.option("--by", type=AlgorithmName(folder), **settings)


FILES = click.argument("files", nargs=-1, required=True, type=click.Path())
JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else."
)


def out_option(*endings: str, help: str, **settings: Any) -> Callable[[Command], Command]:
    """`--out`; a file of which the ending says nothing known is refused before any work."""

    def check_ending(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is not None and Path(value).suffix not in endings:
            known = f"{', '.join(endings[:-1])} or {endings[-1]}" if endings[1:] else endings[0]
            raise click.BadParameter(f"`{value}` does not end in {known}", ctx, param)
        return value

    kind = click.Path(dir_okay=False)
    return click.option("--out", type=kind, callback=check_ending, help=help, **settings)


OUT = out_option(*DATA, ".html", help="Write here: .json, .yaml, or .html for a report to look at.")
OUT_DATA = out_option(*DATA, help="Write here: .json or .yaml.")
OBJECTIVE = click.option(
    "--objective",
    type=click.Choice((*OBJECTIVES, "latency")),
    default="traffic",
    show_default=True,
    help="What to be best at.",
)
SEED = click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same plan.")
SECONDS = click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    help="Cut the search short after so many seconds.",
)


class HeadroomShare(click.ParamType[Any]):
    """A share of every resource, or RESOURCE=SHARE with commas between several."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A number, or a mapping; what is neither is refused by the file format."""
        if not isinstance(value, str):
            return value
        if "=" in value:
            return dict(split(value.split(",")))
        try:
            return float(value)
        except ValueError:
            self.fail(f"`{value}` is no share; give 0.2, or cpu=0.2,memory_mb=0.1", param, ctx)


HEADROOM = click.option(
    "--headroom",
    type=HeadroomShare(),
    help="Share of every node to leave free, such as 0.2 or cpu=0.2,memory_mb=0.1; "
    "absent: as the files say.",
)
OPTION = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the algorithm; repeatable.",
)
STEPS = click.option(
    "--steps",
    type=click.IntRange(min=0),
    help="Search steps; absent: from the problem's size.",
)


def searching(command: Command) -> Command:
    """The options of commands that run a scheduler."""
    for option in (SEED, STEPS, SECONDS, OPTION, OBJECTIVE):
        command = option(command)
    return command


WHAT_IF = (
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="PATH=VALUE",
        help="What if a value were another? Repeatable.",
    ),
    click.option(
        "--price",
        "prices",
        multiple=True,
        metavar="TYPE=P",
        help="What if a machine type cost this? Repeatable.",
    ),
    click.option(
        "--add",
        "added",
        multiple=True,
        metavar="TYPE=N",
        help="What if there were more machines? Repeatable.",
    ),
    click.option(
        "--without",
        multiple=True,
        metavar="NODE",
        help="What if a node, or a range, were gone? Repeatable.",
    ),
    click.option(
        "--rate-factor",
        type=float,
        metavar="X",
        help="What if all spouts emitted X times as much?",
    ),
)


def what_if(command: Command) -> Command:
    """The options that try a change; the command gets them as one `what_if`."""

    @functools.wraps(command)
    def wrapped(
        *,
        settings: tuple[str, ...],
        rate_factor: float | None,
        without: tuple[str, ...],
        added: tuple[str, ...],
        prices: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        from headrace.model.what_if import WhatIf

        change = WhatIf(
            tuple(split(settings)),
            rate_factor,
            without,
            tuple(split(added)),
            tuple(split(prices)),
        )
        return command(what_if=change, **rest)

    for option in WHAT_IF:
        wrapped = option(wrapped)
    return wrapped


def _keep_strict(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[STRICT] = value


STRICTLY = click.option(
    "--strict",
    is_flag=True,
    expose_value=False,
    callback=_keep_strict,
    help="Exit status 3 if the plan breaks a rule or leaves a topology out.",
)
