"""Commands about files and about the tool itself: check, init, schema, import, completion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headrace.cli.options import FILES, JSON, OUT_DATA, by_option
from headrace.cli.shared import echo, emit, load_case, main, print_json, split
from headrace.errors import InvalidInput
from headrace.model.output import save, text_for


@main.command()
@FILES
@by_option("place", default="headrace", show_default=True, help="Warn of keys that it ignores.")
@JSON
def check(files: tuple[str, ...], by: str, as_json: bool) -> None:
    """Validate files together, say what they describe, and warn of what is probably not meant."""
    from headrace.cli.warnings import warnings_of

    inputs = load_case(files).inputs
    document = inputs.document
    summary: dict[str, Any] = {"files": list(files), "sections": sorted(inputs.files)}
    has_graph = any(s is not None for s in (document.topology, document.topologies, document.tasks))
    if has_graph and (document.cluster is not None or document.inventory is not None):
        from headrace.model.build import build

        problem = build(inputs)
        summary |= {
            "topologies": len(problem.topologies),
            "components": len(problem.components),
            "tasks": problem.task_count,
            "nodes": len(problem.nodes),
            "streams": len(problem.streams),
            "measured_pairs": len(problem.pairs),
            "notes": list(problem.notes),
        }
    elif has_graph:
        from headrace.model.components import components_of, empty_topology_notes

        topologies, components = components_of(inputs, {})
        tasks = sum(c.spec.tasks for c in components)
        summary |= {"topologies": len(topologies), "components": len(components), "tasks": tasks}
        summary["notes"] = list(empty_topology_notes(inputs))
    summary["warnings"] = warnings_of(inputs, by)
    if as_json:
        print_json({"format": "headrace/1", "check": summary})
        return
    counts = ", ".join(
        f"{summary[key]:,} {key}"
        for key in ("topologies", "components", "tasks", "nodes", "streams")
        if key in summary
    )
    echo(f"good: {', '.join(files)}: " + (counts or f"sections {', '.join(summary['sections'])}"))
    for note in summary.get("notes", ()):
        echo(f"  {note}")
    for warning in summary["warnings"]:
        echo(f"warning: {warning}", err=True)


@main.command()
@click.argument("file", type=click.Path(dir_okay=False), default="headrace.yaml")
@JSON
def init(file: str, as_json: bool) -> None:
    """Write a commented starter file."""
    from headrace.model.starter import STARTER

    if Path(file).exists():
        raise InvalidInput(f"{file}: exists already, and is left as it is; name another file")
    save(file, STARTER)
    if as_json:
        print_json({"format": "headrace/1", "wrote": file})
    else:
        echo(f"wrote {file}; next: headrace place {file}")


@main.command()
@JSON
def schema(as_json: bool) -> None:
    """Print the JSON Schema of the file format, for editors; it is JSON with and without --json."""
    from headrace.model.document import schema as generated

    print_json(generated())


@main.group(name="import")
def import_() -> None:
    """Turn another system's description into headrace/1 files."""


@import_.command()
@click.argument("file", type=click.Path())
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A value for ${KEY}; repeatable.",
)
@OUT_DATA
@JSON
def flux(file: str, properties: tuple[str, ...], out: str | None, as_json: bool) -> None:
    """Storm Flux YAML."""
    from headrace.model.flux import flux as read_flux

    emit(read_flux(file, {key: str(value) for key, value in split(properties)}), out, as_json)


@import_.command()
@click.argument("file", type=click.Path())
@OUT_DATA
@JSON
def production(file: str, out: str | None, as_json: bool) -> None:
    """A cluster and its topologies in one JSON file, without rates.

    Each stream carries 1 tuple/s per source task.
    """
    from headrace.model.production import production as read_production

    document = read_production(file)
    emit(document, out, as_json)
    for topology in document["topologies"]:
        if not topology["components"]:
            echo(f"note: the topology `{topology['name']}` has no components", err=True)


@import_.command(name="spark-log")
@click.argument("path", type=click.Path())
@click.option("--app", metavar="ID", help="Which application, where the folder holds several.")
@OUT_DATA
@JSON
def spark_log(path: str, app: str | None, out: str | None, as_json: bool) -> None:
    """A Spark application's event log: stages as components, executors as nodes, and a diagnosis.

    PATH is a log file, a folder eventlog_v2_*, or a folder of many (a history server's): then the
    applications are listed.
    """
    from headrace.observe.spark_log import find_logs, list_applications
    from headrace.observe.spark_log import spark_log as read_log
    from headrace.spark import require_spark, session

    require_spark("import spark-log")
    spark = session(app="headrace import")
    logs = find_logs(spark, path)
    if app is None and len(logs) > 1:
        found = list_applications(spark, logs)
        if as_json:
            print_json({"format": "headrace/1", "applications": found})
            return
        for row in found:
            state = ", in progress" if row["in_progress"] else ""
            echo(
                f"{row['id']}  {row['name'] or '(no name in its log)'}  "
                f"({row['bytes']:,} bytes{state})"
            )
        echo(f"{len(found)} applications; choose one with --app ID", err=True)
        return
    result = read_log(spark, path, app)
    if out is not None:
        save(out, text_for(out, result.document))
    if as_json:
        facts = {
            "id": result.application.id,
            "name": result.application.name,
            "spark": result.application.version,
        }
        diagnosis = [finding.to_json() for finding in result.diagnosis]
        answer = {
            "application": facts,
            "diagnosis": diagnosis,
            "notes": list(result.notes),
            "document": result.document,
        }
        print_json({"format": "headrace/1", **answer})
        return
    if out is None:
        emit(result.document, None)
    for finding in result.diagnosis:
        echo(f"{finding.kind}: {finding.where}: {finding.message}", err=out is None)
    for note in result.notes:
        echo(f"note: {note}", err=out is None)
    if out is not None:
        echo(f"wrote {out}; next: headrace place {out}")


@import_.command()
@click.argument("source", metavar="URL_OR_FILE")
@click.option("--topology", metavar="ID", help="Which topology, by id or name, where several run.")
@click.option(
    "--window",
    default="600",
    show_default=True,
    help="Seconds the rates are of, as Storm keeps them: 600, 10800, 86400, :all-time.",
)
@OUT_DATA
@JSON
def storm(source: str, topology: str | None, window: str, out: str | None, as_json: bool) -> None:
    """A topology that runs on Storm: from its UI, from Nimbus, or from saved answers.

    http://host:8080 is a UI, nimbus://host:6627 is a Nimbus: it knows more, and needs Java.
    """
    from headrace.observe.storm import storm as read_storm
    from headrace.observe.storm.nimbus import nimbus_document

    if source.startswith("nimbus://"):
        from headrace.storm.nimbus import ask_nimbus

        found = ask_nimbus(source, lambda words: echo(words, err=True))
        document, notes = nimbus_document(found, topology, source)
    else:
        document, notes = read_storm(source, topology, window=window)
    if out is not None or not as_json:
        emit(document, out)
    if as_json:
        print_json({"format": "headrace/1", "notes": notes, "document": document})
        return
    for note in notes:
        echo(f"note: {note}", err=True)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@JSON
def completion(shell: str, as_json: bool) -> None:
    """Print the shell completion script."""
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    kind = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}[shell]
    script = kind(main, {}, "headrace", "_HEADRACE_COMPLETE").source()
    if as_json:
        print_json({"format": "headrace/1", "shell": shell, "script": script})
    else:
        click.echo(script)
