"""Commands that turn a plan into settings for executors which others start: export."""

from __future__ import annotations

import click

from headrace.cli.shared import FILES, OUT, emit, load_case, main
from headrace.model.output import save


@main.group()
def export() -> None:
    """Turn a plan into settings for executors that others start."""


@export.command()
@FILES
@OUT
def spark(files: tuple[str, ...], out: str | None) -> None:
    """Executor counts and shapes, as spark-submit settings."""
    from headrace.run.export import spark as settings

    emit(settings(load_case(files).inputs), out)


@export.command()
@FILES
@click.option(
    "--label",
    default="kubernetes.io/hostname",
    show_default=True,
    help="The node label that holds the plan's node names.",
)
@OUT
def kubernetes(files: tuple[str, ...], label: str, out: str | None) -> None:
    """Pod templates for executors: one per shape, with the nodes it may stand on."""
    import yaml

    from headrace.run.export import kubernetes as pods

    text = yaml.safe_dump_all(
        pods(load_case(files).inputs, label=label), sort_keys=False, width=130
    )
    if out is None:
        click.echo(text, nl=False)
    else:
        save(out, text)
        click.echo(f"wrote {out}", err=True)
