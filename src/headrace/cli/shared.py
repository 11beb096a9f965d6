"""What all commands share: the group that turns our errors into words, options, reading and writing."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import headrace
from headrace.errors import HeadraceError, InvalidInput

if TYPE_CHECKING:
    from headrace.judge.explain import Costly
    from headrace.model.read import Inputs
    from headrace.model.what_if import WhatIf
    from headrace.planner import Planned, TradeOff

OBJECTIVES = ("traffic", "rate", "batch", "nodes", "balance")
Command = Callable[..., Any]


class Headrace(click.Group):
    """Turns our own errors into one or a few lines and exit status 1; with --json also into the contract's error object."""

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
                click.echo(dumps({"format": "headrace/1", "error": error.fields()}))
            click.echo(
                f"headrace: {error.message}"
                + (f"\n  what would help: {error.fix}" if error.fix else ""),
                err=True,
            )
            ctx.exit(1)


@click.group(
    cls=Headrace, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(headrace.__version__, prog_name="headrace")
def main() -> None:
    """Plan stream-processing topologies: how many tasks, on which machines, which beside which, and why."""


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
    type=click.Choice(OBJECTIVES),
    default="traffic",
    show_default=True,
    help="What to be best at.",
)


def searching(command: Command) -> Command:
    """The options of commands that run a scheduler."""
    for option in (
        click.option(
            "--seed", type=int, default=0, show_default=True, help="Same seed, same plan."
        ),
        click.option(
            "--steps",
            type=click.IntRange(min=0),
            help="Search steps; absent: from the problem's size.",
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(min=0),
            help="Cut the search short after so many seconds.",
        ),
        click.option(
            "--option",
            "options",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of the scheduler; repeatable.",
        ),
        OBJECTIVE,
    ):
        command = option(command)
    return command


def what_if(command: Command) -> Command:
    """The options that try a change; the command gets them as one `what_if`."""

    @functools.wraps(command)
    def wrapped(
        *, settings: tuple[str, ...], rate_factor: float | None, without: tuple[str, ...], added: tuple[str, ...],
        prices: tuple[str, ...], **rest: Any,
    ) -> Any:  # fmt: skip
        from headrace.model.what_if import WhatIf

        tried = WhatIf(
            tuple(split(settings)), rate_factor, without, tuple(split(added)), tuple(split(prices))
        )
        return command(what_if=tried, **rest)

    for option in (
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
    ):
        wrapped = option(wrapped)
    return wrapped


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a command found, and where a change was tried, what it finds without it."""

    results: list[Planned]
    inputs: Inputs  # with the change
    what_if: WhatIf
    before: list[Planned] | HeadraceError | None  # None: no change was tried

    def to_json(self, compact: bool = False) -> dict[str, Any]:
        """The contract's object; a change and the answer without it stand beside."""
        return self.beside(answer_json(self.results, compact), compact)

    def beside(self, content: dict[str, Any], compact: bool = False) -> dict[str, Any]:
        """The content with the change that was tried, and the answer without it."""
        if self.before is None:
            return content
        before = (
            {"error": self.before.fields()}
            if isinstance(self.before, HeadraceError)
            else answer_json(self.before, compact)
        )
        return content | {"what_if": self.what_if.words(), "without_what_if": before}


def answered(
    files: tuple[str, ...], tried: WhatIf, planned: Callable[[Inputs, float], list[Planned]]
) -> Answer:
    """Plan what the files say; where a change is tried, with and without it. `planned` also gets the factor of the load that was asked about."""
    from headrace.model.what_if import changed

    inputs = read(files)
    if not tried:
        return Answer(planned(inputs, 1.0), inputs, tried, None)
    other = changed(inputs, tried)
    try:
        before: list[Planned] | HeadraceError = planned(inputs, 1.0)
    except HeadraceError as error:  # a change may be what makes a plan possible
        before = error
    return Answer(planned(other, tried.rate_factor or 1.0), other, tried, before)


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
            click.echo(
                f"\r\033[K{len(collected)}/{total} {result.scheduler}",
                err=True,
                nl=len(collected) == total,
            )
    return collected


def finish(
    answer: Answer, as_json: bool, out: str | None, compact: bool, command: str,
    *, more: dict[str, Any] | None = None, curve: TradeOff | None = None,
) -> None:  # fmt: skip
    """Print what was planned, and write it where asked; `more` stands beside the contract's fields, the curve in the page."""
    results, first = answer.results, answer.results[0]
    if out is not None:
        if Path(out).suffix == ".html":
            from headrace.page import page

            title = ", ".join(first.problem.topologies[:3])
            save(
                out,
                page(
                    results,
                    title=title,
                    command=" ".join([command, *answer.what_if.words()]),
                    curve=curve,
                ),
            )
        elif len(results) == 1:
            save(
                out, text_for(out, first.to_json(compact=compact, document=answer.inputs.document))
            )
        else:
            save(out, text_for(out, answer_json(results, compact)))
    if as_json:
        click.echo(dumps(answer.to_json(compact) | (more or {})))
    else:
        from headrace import terminal

        terminal.show(
            terminal.planned(first) if len(results) == 1 else terminal.comparison(results)
        )
        if answer.before is not None:
            terminal.show(terminal.what_if(answer.before, results, answer.what_if.words()))
        if out is not None:
            click.echo(f"wrote {out}")


def answer_json(results: list[Planned], compact: bool) -> dict[str, Any]:
    """One result as it is, many as one object."""
    if len(results) == 1:
        return results[0].to_json(compact=compact)
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
    from headrace.model.files import write_whole

    try:
        write_whole(Path(file), text)
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be written: {error.strerror}") from None


def explained(result: Planned, task: str | None = None) -> dict[str, Any]:
    """Why a plan, or one of its tasks, is as it is."""
    from headrace import terminal
    from headrace.judge.explain import explain_task

    assert result.assignment is not None
    if task is not None:
        return explain_task(result.problem, result.assignment, task).to_json()
    rows = [
        {
            "from": s.source,
            "to": s.target,
            "stream": s.stream,
            "tuples_per_s": s.tuples_per_s,
            "crossing": s.crossing,
        }
        for s in costly_of(result)
    ]
    return {"headline": terminal.headline(result), "streams": rows}


def costly_of(result: Planned) -> list[Costly]:
    """Where a plan's traffic between nodes comes from."""
    from headrace.judge.explain import costly_streams

    assert result.assignment is not None
    return costly_streams(result.problem, result.assignment)
