"""Commands that turn a plan, or an event log, into settings for executors which others start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import FILES, OUT
from headrace.cli.shared import echo, emit, load_case, main
from headrace.model.output import save

if TYPE_CHECKING:
    from headrace.advise.report import Advice

OURS = (".yaml", ".yml", ".json")


@main.group()
def export() -> None:
    """Turn a plan, or a Spark job's event log, into settings for executors that others start."""


@export.command()
@FILES
@OUT
def spark(files: tuple[str, ...], out: str | None) -> None:
    """Executors as spark-submit settings: of a plan, or for the job of an event log."""
    if (advice := _advice(files)) is not None:
        from headrace.advise.submit import spark_settings

        emit(spark_settings(advice), out)
        return
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
    """Pod templates for executors: one per shape of a plan, or the one of an event log's job."""
    import yaml

    from headrace.run.export import kubernetes as pods

    if (advice := _advice(files)) is not None:
        from headrace.advise.submit import executor_pod

        found = [executor_pod(advice)]
    else:
        found = pods(load_case(files).inputs, label=label)
    text = yaml.safe_dump_all(found, sort_keys=False, width=130)
    if out is None:
        echo(text, nl=False)
    else:
        save(out, text)
        echo(f"wrote {out}", err=True)


def _advice(files: tuple[str, ...]) -> Advice | None:
    """Advice if the one file is an event log, or an address; None if it is one of ours."""
    from headrace.advise.sources import is_address

    if len(files) != 1 or not (is_address(files[0]) or Path(files[0]).exists()):
        return None
    if Path(files[0]).suffix in OURS and not Path(files[0]).is_dir():
        return None
    from headrace.advise.report import advise_on
    from headrace.advise.sources import read_source

    return advise_on(read_source(files[0]))
