"""What all commands share: the group that puts our errors into words, reading and printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.help import HelpfulCommand
from headrace.errors import HeadraceError
from headrace.figures import printable
from headrace.model.output import save, text_for, to_json_text

if TYPE_CHECKING:
    from headrace.library.case import Case

Command = Callable[..., Any]
STOPPED = 130  # the exit status after Ctrl-C


class Group(click.Group):
    """A group whose commands end their help with examples."""

    command_class = HelpfulCommand
    group_class = type  # groups inside it are of this class, too


class Headrace(Group):
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
            echo(f"headrace: {error.message}{help_line}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            echo("headrace: stopped", err=True)
            ctx.exit(STOPPED)


def print_versions(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Every version that a bug report needs, then the end."""
    if wanted and not ctx.resilient_parsing:
        from headrace.cli.versions import versions

        for name, found in versions().items():
            echo(f"{name} {found}")
        ctx.exit()


@click.group(
    cls=Headrace, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_versions,
    help="Print the versions that a bug report needs.",
)
def main() -> None:
    """Plan stream-processing topologies: how many tasks, on which machines, which beside which."""


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


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text; nothing that stands in a name can do more than be seen."""
    click.echo(printable(text), err=err, nl=nl)


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
        echo(f"wrote {out}")


def emit(content: Any, out: str | None, as_json: bool = False) -> None:
    """Write a document to a file, or print it: as YAML, or with --json as JSON."""
    if out is not None:
        save(out, text_for(out, content))
        echo(f"wrote {out}", err=True)
    if as_json:
        print_json(content)
    elif out is None:
        echo(text_for("-.yaml", content), nl=False)
