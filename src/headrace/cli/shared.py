"""What all commands share: the group that puts our errors into words, options, reading, writing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

import headrace
from headrace.errors import HeadraceError
from headrace.model.output import save, text_for, to_json_text

if TYPE_CHECKING:
    from headrace.library.case import Case

OBJECTIVES = ("traffic", "network", "rate", "batch", "nodes", "balance")  # of every command
Command = Callable[..., Any]


class Headrace(click.Group):
    """Puts our own errors into a few lines and exit status 1; with --json also into an object."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        wants_json = "--json" in args
        ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta["headrace.json"] = wants_json
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HeadraceError as error:
            if ctx.meta["headrace.json"]:
                print_json({"format": "headrace/1", "error": error.fields()})
            help_line = f"\n  what would help: {error.fix}" if error.fix else ""
            click.echo(f"headrace: {error.message}{help_line}", err=True)
            ctx.exit(1)


@click.group(
    cls=Headrace, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(headrace.__version__, prog_name="headrace")
def main() -> None:
    """Plan stream-processing topologies: how many tasks, on which machines, which beside which."""


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
OUT = click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="Write here: .json, .yaml, or .html for a report to look at.",
)
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


def load_case(files: Sequence[str]) -> Case:
    """Read and merge files."""
    from headrace.library.case import load

    return load(*files)


def split(pairs: Sequence[str]) -> list[tuple[str, Any]]:
    """KEY=VALUE, with the value read as YAML would."""
    import yaml

    result: list[tuple[str, Any]] = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"`{pair}` is not KEY=VALUE")
        result.append((key, yaml.safe_load(value)))
    return result


def read_options(options: Sequence[str]) -> dict[str, object]:
    """Options of an algorithm from the command line."""
    return dict(split(options))


def print_json(content: Any) -> None:
    """One object on stdout."""
    click.echo(to_json_text(content))


def deliver(
    content: Any,
    show: Callable[[], None],
    as_json: bool,
    out: str | None,
    page: Callable[[], str] | None = None,
) -> None:
    """Write an answer where asked, as a page if the name asks for one, and print it."""
    if out is not None:
        save(out, page() if page is not None and out.endswith(".html") else text_for(out, content))
    if as_json:
        print_json(content)
        return
    show()
    if out is not None:
        click.echo(f"wrote {out}")


def emit(content: Any, out: str | None) -> None:
    """Write a document to a file, or as YAML to standard output."""
    if out is None:
        click.echo(text_for("-.yaml", content), nl=False)
    else:
        save(out, text_for(out, content))
        click.echo(f"wrote {out}", err=True)
