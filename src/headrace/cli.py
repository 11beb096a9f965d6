"""The command line: every command reads, calls and writes. Heavy imports happen inside the command that needs them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import headrace
from headrace.errors import HeadraceError, InvalidInput
from headrace.place import SCHEDULERS

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


@main.command()
@FILES
@click.option("--by", type=click.Choice(list(SCHEDULERS)), help="Scheduler; absent: the default one.")
@searching
@click.option("--compact", is_flag=True, help="Write runs of tasks instead of single tasks.")
@JSON
@OUT
def place(
    files: tuple[str, ...], by: str | None, options: tuple[str, ...], objective: str, seed: int, steps: int | None, seconds: float | None,
    compact: bool, as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """Decide which task runs in which worker on which node."""
    from headrace import planner
    from headrace.model.build import build

    inputs = read(files)
    result = planner.place(
        build(inputs),
        by or planner.DEFAULT,
        objective=objective,
        options=parsed(options),
        seed=seed,
        steps=steps,
        seconds=seconds,
    )
    finish([result], inputs, as_json, out, compact, f"headrace place {' '.join(files)} --by {result.scheduler}")


@main.command()
@FILES
@OBJECTIVE
@JSON
@OUT
def judge(files: tuple[str, ...], objective: str, as_json: bool, out: str | None) -> None:
    """Judge the plan that one of the files holds."""
    from headrace import planner
    from headrace.model.build import build

    inputs = read(files)
    result = planner.judged(build(inputs), objective=objective, scheduler=inputs.document.scheduler or "given")
    finish([result], inputs, as_json, out, False, f"headrace judge {' '.join(files)}")


@main.command()
@FILES
@click.option("--by", type=click.Choice(list(SCHEDULERS)), multiple=True, help="Schedulers to compare; absent: all.")
@searching
@JSON
@OUT
def compare(
    files: tuple[str, ...], by: tuple[str, ...], options: tuple[str, ...], objective: str, seed: int, steps: int | None, seconds: float | None,
    as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """The same problem through many schedulers, in one table."""
    from headrace import planner
    from headrace.model.build import build

    if options or steps is not None:
        raise click.UsageError("compare takes options from the file's `options`, and steps from the problem's size")
    inputs = read(files)
    problem = build(inputs)
    results = progress(planner.compare(problem, by, objective=objective, seed=seed, seconds=seconds), len(by) or len(SCHEDULERS))
    finish(results, inputs, as_json, out, False, f"headrace compare {' '.join(files)}")


@main.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.argument("files", nargs=-1, type=click.Path())
@JSON
def diff(before: str, after: str, files: tuple[str, ...], as_json: bool) -> None:
    """What moves from one plan to another, what it costs and what it gains."""
    from headrace import terminal
    from headrace.judge.diff import diff as difference
    from headrace.planner import judged

    sides: list[Any] = []
    for plan in (before, after):
        from headrace.model.build import build

        result = judged(build(read((plan, *files))))
        sides.append((result.problem, result.assignment, result.report))
    change = difference(sides[0], sides[1])
    if as_json:
        click.echo(dumps({"format": "headrace/1", "diff": change.to_json()}))
    else:
        terminal.show(terminal.difference(change))


@main.command()
@FILES
@click.option("--task", help="Why is this task where it is? Absent: the plan as a whole.")
@click.option("--by", type=click.Choice(list(SCHEDULERS)), help="Scheduler, where no file holds a plan.")
@OBJECTIVE
@JSON
def explain(files: tuple[str, ...], task: str | None, by: str | None, objective: str, as_json: bool) -> None:
    """Why is this task here; what would it take to fit?"""
    from headrace import planner, terminal
    from headrace.judge.explain import costly_streams, explain_task
    from headrace.judge.shortage import shortage
    from headrace.model.build import build

    problem = build(read(files))
    missing = shortage(problem)
    if missing is not None and len(problem.topologies) == 1:
        raise missing
    given = problem.current is not None and by is None
    result = (
        planner.judged(problem, objective=objective)
        if given
        else planner.place(problem, by or planner.DEFAULT, objective=objective)
    )
    assert result.assignment is not None
    if task is not None:
        why = explain_task(problem, result.assignment, task)
        click.echo(dumps({"format": "headrace/1", "explanation": why.to_json()})) if as_json else terminal.show(
            terminal.explanation(why)
        )
        return
    streams = costly_streams(problem, result.assignment)
    if as_json:
        rows = [
            {"from": s.source, "to": s.target, "stream": s.stream, "tuples_per_s": s.tuples_per_s, "crossing": s.crossing}
            for s in streams
        ]
        click.echo(dumps({"format": "headrace/1", "explanation": {"headline": terminal.headline(result), "streams": rows}}))
    else:
        terminal.show(terminal.planned(result), terminal.costly(streams))


@main.command()
@JSON
def schedulers(as_json: bool) -> None:
    """What schedulers there are, where they come from, how mature they are."""
    from headrace.registry import entries

    found = entries()
    if as_json:
        rows = [
            {"name": e.name, "folder": e.folder, "source": e.source, "maturity": e.maturity, "guards": e.guards} for e in found
        ]
        click.echo(dumps({"schedulers": rows}))
    else:
        from headrace import terminal

        terminal.show(terminal.registry(found))


@main.command()
@FILES
@JSON
def check(files: tuple[str, ...], as_json: bool) -> None:
    """Validate files together, and say what they describe."""
    inputs = read(files)
    document = inputs.document
    summary: dict[str, Any] = {"files": list(files), "sections": sorted(inputs.files)}
    has_graph = any(s is not None for s in (document.topology, document.topologies, document.tasks))
    if has_graph and (document.cluster is not None or document.inventory is not None):
        from headrace.model.build import build

        problem = build(inputs)
        summary |= {
            "topologies": len(problem.topologies), "components": len(problem.components), "tasks": problem.task_count,
            "nodes": len(problem.nodes), "streams": len(problem.streams), "measured_pairs": len(problem.pairs), "notes": list(problem.notes),
        }  # fmt: skip
    elif has_graph:
        from headrace.model.components import components_of

        topologies, components = components_of(inputs, {})
        tasks = sum(c.spec.tasks for c in components)
        summary |= {"topologies": len(topologies), "components": len(components), "tasks": tasks}
    if as_json:
        click.echo(dumps({"format": "headrace/1", "check": summary}))
        return
    counts = ", ".join(
        f"{summary[key]:,} {key}" for key in ("topologies", "components", "tasks", "nodes", "streams") if key in summary
    )
    click.echo(f"good: {', '.join(files)}: " + (counts or f"sections {', '.join(summary['sections'])}"))
    for note in summary.get("notes", ()):
        click.echo(f"  {note}")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False), default="headrace.yaml")
def init(file: str) -> None:
    """Write a commented starter file."""
    from headrace.model.starter import STARTER

    if Path(file).exists():
        raise InvalidInput(f"{file}: exists already, and is left as it is; name another file")
    save(file, STARTER)
    click.echo(f"wrote {file}; next: headrace place {file}")


@main.command()
def schema() -> None:
    """Print the JSON Schema of the file format, for editors."""
    from headrace.model.document import schema as generated

    click.echo(dumps(generated()))


@main.group(name="import")
def import_() -> None:
    """Turn another system's description into headrace/1 files."""


@import_.command()
@click.argument("file", type=click.Path())
@click.option("--property", "properties", multiple=True, metavar="KEY=VALUE", help="A value for ${KEY}; repeatable.")
@OUT
def flux(file: str, properties: tuple[str, ...], out: str | None) -> None:
    """Storm Flux YAML."""
    from headrace.model.flux import flux as read_flux

    emit(read_flux(file, {key: str(value) for key, value in split(properties)}), out)


@import_.command()
@click.argument("file", type=click.Path())
@OUT
def production(file: str, out: str | None) -> None:
    """A cluster and its topologies in one JSON file, without rates (each stream: 1 tuple/s per source task)."""
    from headrace.model.production import production as read_production

    emit(read_production(file), out)


@main.command()
@click.option(
    "--out", type=click.Path(dir_okay=False), default="headrace-demo.html", show_default=True, help="The report to write."
)
@JSON
def demo(out: str, as_json: bool) -> None:
    """Plan word count on a nine-node cluster with every scheduler, and write a report."""
    from headrace import planner, terminal
    from headrace.demo import demo_files
    from headrace.model.build import build
    from headrace.page import page

    inputs = read(demo_files())
    results = progress(planner.compare(build(inputs)), len(SCHEDULERS))
    save(out, page(results, title="Word count on nine nodes", command="headrace demo"))
    if as_json:
        click.echo(dumps({"format": "headrace/1", "results": [r.to_json() for r in results], "report_file": out}))
        return
    winner = planner.best(results)
    terminal.show(terminal.comparison(results))
    if winner is not None and winner.assignment is not None:
        terminal.show(terminal.planned(winner), terminal.costly(costly_of(winner)))
    click.echo(f"\nThe report to look at: {Path(out).resolve().as_uri()}")


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion script: eval "$(headrace completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "headrace", "_HEADRACE_COMPLETE").source())


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


def costly_of(result: Planned) -> Any:
    """Where a plan's traffic between nodes comes from."""
    from headrace.judge.explain import costly_streams

    assert result.assignment is not None
    return costly_streams(result.problem, result.assignment)


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


if __name__ == "__main__":
    main()
