"""The command that shows runs and plans in a browser, and the option that other commands have."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import JSON
from headrace.cli.shared import Command, echo, main
from headrace.errors import InvalidInput
from headrace.model.document import FORMAT

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from headrace.advise.report import Advice

RUNS = "headrace-runs"  # where runs are, unless they are told otherwise
PORT = 8700


@main.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER ..]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Where to listen; 0: any port that is free.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; any other than this machine's own needs the token "
    "for everything.",
)
@click.option(
    "--token-file", type=click.Path(), help="Read the token from here; absent: a new one."
)
@click.option("--name", "names", multiple=True,
              help="A further name that browsers may call this host by; repeatable.")  # fmt: skip
@JSON
def serve(
    folders: tuple[Path, ...],
    port: int,
    host: str,
    token_file: str | None,
    names: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show runs live in a browser, and plan there: the folders of runs, or folders of such.

    Absent: headrace-runs, if it is there. Without any run, the page plans files that are dropped
    into it. With --json, the address is printed as an object once the server listens.
    """
    from headrace.serve.server import Where, read_token

    for folder in folders:
        if not folder.is_dir():
            raise InvalidInput(
                f"{folder}: no such folder; the folder of a run is needed, or one of runs"
            )
    found = folders or ((Path(RUNS),) if Path(RUNS).is_dir() else ())
    where = Where(host, port, read_token(token_file), names)
    serve_until_stopped(found, where, as_json=as_json)


def serve_until_stopped(
    folders: Sequence[Path],
    where: Any = None,
    *,
    advice: Sequence[Advice] = (),
    as_json: bool = False,
) -> None:
    """Serve until Ctrl-C, and say where."""
    from headrace.serve.server import Where, address, check_where
    from headrace.serve.server import serve as serve_folders

    where = where or Where()
    check_where(where, say)

    def ready(door: Any) -> None:
        if as_json:
            bare = address(door, token=False)
            found = {"format": FORMAT, "address": bare, "token": door.token, "port": door.port}
            print(json.dumps(found), flush=True)  # a line, for whoever waits for it
        else:
            echo(f"look at it: {address(door)}")
        say("Ctrl-C ends it; whoever has this address can also act")

    try:
        serve_folders(folders, where, ready, advice=advice)
    except KeyboardInterrupt:
        say("ended")


@dataclass(frozen=True, slots=True)
class Serving:
    """Whether and where a command is to be looked at while it works."""

    on: bool
    port: int

    def beside(self, folder: Path) -> AbstractContextManager[object]:
        """A server beside what is done meanwhile; nothing if none is asked for."""
        return _beside(folder, self.port) if self.on else nullcontext()

    def show(self, folder: Path | None = None, advice: Sequence[Advice] = ()) -> None:
        """Serve until Ctrl-C, if it is asked for."""
        if self.on:
            from headrace.serve.server import Where

            folders = [] if folder is None else [folder]
            serve_until_stopped(folders, Where(port=self.port), advice=advice)


@contextmanager
def _beside(folder: Path, port: int) -> Generator[None]:
    from headrace.serve.server import Where, beside

    with beside(folder, Where(port=port), say):
        yield
    say(f"to look at it again: headrace serve {folder}")


def serving(help: str) -> Callable[[Command], Command]:
    """`--serve` and `--port`; the command gets them as one `serving`."""

    def decorate(command: Command) -> Command:
        import functools

        @functools.wraps(command)
        def wrapped(**given: Any) -> Any:
            asked = Serving(given.pop("serve"), given.pop("port"))
            return command(serving=asked, **given)

        options = (
            click.option("--serve", is_flag=True, help=help),
            click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
                         help="With --serve: where to listen; 0: any port that is free."),
        )  # fmt: skip
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def say(message: str) -> None:
    echo(message, err=True)
