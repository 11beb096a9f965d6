"""Commands that turn a plan, or an event log, into settings for executors which others start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import FILES, JSON, OUT_DATA
from headrace.cli.shared import echo, emit, load_case, main, print_json
from headrace.model.output import save, text_for

if TYPE_CHECKING:
    from headrace.advise.report import Advice

OURS = (".yaml", ".yml", ".json")


@main.group()
def export() -> None:
    """Turn a plan, or a Spark job's event log, into settings for executors that others start."""


@export.command()
@FILES
@OUT_DATA
@JSON
def spark(files: tuple[str, ...], out: str | None, as_json: bool) -> None:
    """Executors as spark-submit settings: of a plan, or for the job of an event log."""
    if (advice := _advice(files)) is not None:
        from headrace.advise.submit import spark_settings

        emit(spark_settings(advice), out, as_json)
        return
    from headrace.run.export import spark as settings

    emit(settings(load_case(files).inputs), out, as_json)


@export.command()
@FILES
@click.option(
    "--form",
    type=click.Choice(["pod", "operator"]),
    default="pod",
    show_default=True,
    help="Pod templates, or SparkApplications for the Spark operator.",
)
@click.option(
    "--label",
    default="kubernetes.io/hostname",
    show_default=True,
    help="The node label that holds the plan's node names.",
)
@click.option(
    "--image", default="spark:4.0.0", show_default=True, help="With operator: of all pods."
)
@click.option(
    "--main",
    "main_file",
    default="local:///opt/spark/work-dir/app.py",
    show_default=True,
    help="With operator: what the application runs.",
)
@OUT_DATA
@JSON
def kubernetes(
    files: tuple[str, ...],
    form: str,
    label: str,
    image: str,
    main_file: str,
    out: str | None,
    as_json: bool,
) -> None:
    """Executors for Kubernetes: one pod template, or one SparkApplication, per application.

    A topology of the plan is one application. A job of an event log gets a pod template.
    """
    import yaml

    from headrace.run.export import kubernetes as pods
    from headrace.run.export import operator

    if (advice := _advice(files)) is not None:
        if form == "operator":
            raise click.UsageError("--form operator is for a plan: a log has no main file")
        from headrace.advise.submit import executor_pod

        found = [executor_pod(advice)]
    elif form == "operator":
        inputs = load_case(files).inputs
        found = operator(inputs, label=label, image=image, main=main_file)
    else:
        found = pods(load_case(files).inputs, label=label)
    content = {"format": "headrace/1", "documents": found}
    if out is not None:
        is_json = out.endswith(".json")
        text = text_for(out, content) if is_json else yaml.safe_dump_all(found, sort_keys=False)
        save(out, text)
        echo(f"wrote {out}", err=True)
    if as_json:
        print_json(content)
    elif out is None:
        echo(yaml.safe_dump_all(found, sort_keys=False, width=130), nl=False)


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
