"""What all commands share: the group that turns our errors into words, options, reading and writing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import headrace
from headrace.errors import HeadraceError, InvalidInput

if TYPE_CHECKING:
    from headrace.model.read import Inputs
    from headrace.planner import Planned

OBJECTIVES = ("traffic", "rate", "batch", "nodes", "balance")
Command = Callable[..., Any]


class Headrace(click.Group):
    """Turns our own errors into one or a few lines and exit status 1; with --json also into the contract's error object."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
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
                click.echo(dumps({"format": "headrace/1", "error": error.fields()}))
            click.echo(f"headrace: {error.message}" + (f"\n  what would help: {error.fix}" if error.fix else ""), err=True)
            ctx.exit(1)


@click.group(cls=Headrace, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(headrace.__version__, prog_name="headrace")
def main() -> None:
    """Plan stream-processing topologies: how many tasks, on which machines, which beside which, and why."""


FILES = click.argument("files", nargs=-1, required=True, type=click.Path())
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
OUT = click.option("--out", type=click.Path(dir_okay=False), help="Write here: .json, .yaml, or .html for a report to look at.")
OBJECTIVE = click.option(
    "--objective", type=click.Choice(OBJECTIVES), default="traffic", show_default=True, help="What to be best at."
)


def searching(command: Command) -> Command:
    """The options of commands that run a scheduler."""
    for option in (
        click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same plan."),
        click.option("--steps", type=click.IntRange(min=0), help="Search steps; absent: from the problem's size."),
        click.option("--seconds", type=click.FloatRange(min=0), help="Cut the search short after so many seconds."),
        click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the scheduler; repeatable."),
        OBJECTIVE,
    ):
        command = option(command)
    return command


def read(files: tuple[str, ...]) -> Inputs:
    """Read and merge files."""
    from headrace.model.read import read as read_files

    return read_files(files)


def split(pairs: tuple[str, ...]) -> list[tuple[str, Any]]:
    """KEY=VALUE, with the value read as YAML would."""
    import yaml

    result: list[tuple[str, Any]] = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"`{pair}` is not KEY=VALUE")
        result.append((key, yaml.safe_load(value)))
    return result


def parsed(options: tuple[str, ...]) -> dict[str, object]:
    """Scheduler options from the command line."""
    return dict(split(options))


def progress(results: Any, total: int) -> list[Planned]:
    """Collect results, with a line of progress on stderr where someone is watching."""
    collected: list[Planned] = []
    for result in results:
        collected.append(result)
        if sys.stderr.isatty():
            click.echo(f"\r\033[K{len(collected)}/{total} {result.scheduler}", err=True, nl=len(collected) == total)
    return collected


def finish(results: list[Planned], inputs: Inputs, as_json: bool, out: str | None, compact: bool, command: str) -> None:
    """Print what was planned, and write it where asked."""
    first = results[0]
    if out is not None:
        if Path(out).suffix == ".html":
            from headrace.page import page

            save(out, page(results, title=", ".join(first.problem.topologies[:3]), command=command))
        else:
            content = (
                first.to_json(compact=compact, document=inputs.document) if len(results) == 1 else results_json(results, compact)
            )
            save(out, text_for(out, content))
    if as_json:
        click.echo(dumps(first.to_json(compact=compact) if len(results) == 1 else results_json(results, compact)))
    else:
        from headrace import terminal

        terminal.show(terminal.planned(first) if len(results) == 1 else terminal.comparison(results))
        if out is not None:
            click.echo(f"wrote {out}")


def results_json(results: list[Planned], compact: bool) -> dict[str, Any]:
    """Many results as one object."""
    return {"format": "headrace/1", "results": [r.to_json(compact=compact) for r in results]}


def dumps(content: Any) -> str:
    """JSON for programs."""
    return json.dumps(content, allow_nan=False)


def text_for(file: str, content: Any) -> str:
    """JSON, or YAML where the file's name asks for it."""
    if Path(file).suffix in (".yaml", ".yml"):
        import yaml

        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=130)
    return dumps(content) + "\n"


def emit(content: Any, out: str | None) -> None:
    """Write a document to a file, or as YAML to standard output."""
    if out is None:
        click.echo(text_for("-.yaml", content), nl=False)
    else:
        save(out, text_for(out, content))
        click.echo(f"wrote {out}", err=True)


def save(file: str, text: str) -> None:
    """Write a file whole or not at all."""
    path = Path(file)
    half = path.with_name(f".{path.name}.part")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be written: {error.strerror}") from None
