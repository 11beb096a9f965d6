"""Write the documents that follow from the code: `make docs` runs this, a test compares.

schedulers.md      every algorithm, from the registry
reference/commands.md, reference/api.md
                   from the commands' help and the library's docstrings
decisions/index.md from the titles of the decisions
ratios.svg         every scheduler's traffic over the best, from scoreboard.md
benchmarks.md      its tables, from benchmarks/results.json
../README.md       the sentence about the papers' claims, from papers/*/results.json
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import headrace as hr
from headrace.cli import main
from headrace.lab.claims import HOW, Measured, read_paper, verdict
from headrace.page.markup import Html, element
from headrace.registry import FOLDERS, Entry, entries

DOCS = Path(__file__).parent
ROOT = DOCS.parent
GENERATED = "<!-- Written by docs/generate.py from the code; change that, and run `make docs`. -->"
COLUMNS = 96
QUESTIONS = {
    "rule": "when is it worth planning again?",
    "place": "Which task in which worker on which node?",
    "size": "How many tasks of each component?",
    "provision": "Which machines to rent?",
    "move": "How to get from one plan to the next?",
}


def documents() -> dict[Path, str]:
    """Every generated file with what it must hold."""
    readme, benchmarks = ROOT / "README.md", DOCS / "benchmarks.md"
    return {
        DOCS / "schedulers.md": schedulers(),
        DOCS / "reference" / "commands.md": commands(),
        DOCS / "reference" / "api.md": api(),
        DOCS / "decisions" / "index.md": decisions(),
        DOCS / "ratios.svg": ratios((DOCS / "scoreboard.md").read_text(encoding="utf-8")),
        benchmarks: between(benchmarks.read_text(encoding="utf-8"), "results", results()),
        readme: between(readme.read_text(encoding="utf-8"), "claims", claims_sentence()),
    }


def schedulers() -> str:
    """One table per stage."""
    lines = [
        GENERATED,
        "# Schedulers",
        "",
        "Every algorithm that Headrace has, by the question that it answers.",
        "`headrace schedulers` prints the same with where each one differs from its source.",
        "*faithful* follows the published algorithm and passes a worked example.",
        "*inspired* rests on summaries; *exact* and *ours* are Headrace's own.",
        "The [scoreboard](scoreboard.md) compares them, and [place](concepts/place.md) says how "
        + "the search and the exact solver work.",
    ]
    for folder in FOLDERS:
        lines += ["", f"## {folder}: {QUESTIONS[folder]}", ""]
        lines += ["| name | what it does | never overloads | source | maturity |", "|---" * 5 + "|"]
        lines += [_row(entry) for entry in entries(folder) if entry.module.startswith("headrace.")]
    return "\n".join(lines) + "\n"


def _row(entry: Entry) -> str:
    cells = (f"`{entry.name}`", entry.summary, entry.guards, entry.source, entry.maturity)
    return "| " + " | ".join(cell.replace("|", "\\|").rstrip(".") for cell in cells) + " |"


def commands() -> str:
    """What `--help` says of every command."""
    lines = [
        GENERATED,
        "# Commands",
        "",
        "What `headrace COMMAND --help` prints.",
        "Several files are merged; the [file format](format.md) says how.",
    ]
    for context in _commands(_context(main, None, "headrace")):
        text = context.get_help().rstrip()
        lines += ["", f"## {context.command_path}", "", "```text", text, "```"]
    return "\n".join(lines) + "\n"


def _context(command: click.Command, parent: click.Context | None, name: str) -> click.Context:
    """As the command line has it, at a width of its own."""
    context = click.Context(command, parent, name, terminal_width=COLUMNS)
    context.max_content_width = COLUMNS
    context.help_option_names = main.context_settings["help_option_names"]
    return context


def _commands(context: click.Context) -> Iterator[click.Context]:
    """Every command below a group, in the order of the alphabet."""
    for name, command in sorted(getattr(context.command, "commands", {}).items()):
        inner = _context(command, context, name)
        if isinstance(command, click.Group):
            yield from _commands(inner)
        else:
            yield inner


def api() -> str:
    """Every public name of the library with its signature and docstring."""
    lines = [
        GENERATED,
        "# The library",
        "",
        "`import headrace as hr`; a walk through it is in [Python](../guides/python.md).",
    ]
    names = sorted(hr.__all__, key=lambda name: (name[0].isupper(), name))
    for name in names:
        thing = getattr(hr, name)
        lines += ["", f"## hr.{name}", "", *_documented(name, thing)]
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for key, member in _members(thing):
                lines += ["", f"### {name}.{key}", "", *_documented(key, member)]
    return "\n".join(lines) + "\n"


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class defines itself and says something about."""
    for key, member in vars(thing).items():
        plain = member.fget if isinstance(member, property) else inspect.unwrap(member)
        plain = getattr(plain, "func", plain)  # of a cached property
        plain = getattr(plain, "__func__", plain)  # of a static method
        if not key.startswith("_") and inspect.isfunction(plain) and inspect.getdoc(plain):
            yield key, plain


def _documented(name: str, thing: Any) -> Iterator[str]:
    """The signature, then the docstring with its examples as code."""
    if inspect.isfunction(thing):
        yield from ("```python", *_signature(name, thing), "```", "")
    text = inspect.getdoc(thing) or ""
    if text.startswith(f"{name}("):  # what dataclass writes by itself
        return
    code = False
    for line in text.splitlines():
        example = line.startswith((">>>", "...")) or (code and bool(line))
        if example != code:
            yield "```python" if example else "```"
        code = example
        yield line
    if code:
        yield "```"


def decisions() -> str:
    """A list of all decisions."""
    lines = [
        GENERATED,
        "# Decisions",
        "",
        "Choices that would be costly to reverse, a page each.",
        "",
    ]
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


class Bare(str):
    """An annotation that is printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(name: str, function: Any) -> Iterator[str]:
    """In one line, or one line per parameter."""
    given = inspect.signature(function)
    parameters = [p.replace(annotation=Bare(p.annotation)) for p in given.parameters.values()]
    bare = given.replace(parameters=parameters, return_annotation=Bare(given.return_annotation))
    short = f"{name}{bare}".replace(": <class 'inspect._empty'>", "")
    if len(short) <= 92:
        yield short
        return
    yield f"{name}("
    kinds = [p.kind for p in parameters]
    for i, parameter in enumerate(parameters):
        named = parameter.KEYWORD_ONLY
        if parameter.kind is named and not {named, parameter.VAR_POSITIONAL} & {*kinds[:i]}:
            yield "    *,"
        yield f"    {parameter},".replace(": <class 'inspect._empty'>", "")
    yield f") -> {bare.return_annotation}"


def claims_sentence() -> str:
    """How many published claims were checked, how, and what came out."""
    how: Counter[str] = Counter()
    came_out: Counter[str] = Counter()
    papers = sorted(path.parent for path in (ROOT / "papers").glob("*/results.json"))
    for folder in papers:
        measured = json.loads((folder / "results.json").read_text(encoding="utf-8"))["measured"]
        for claim in read_paper(folder).claims:
            how[claim.how] += 1
            came_out[verdict(claim, Measured(**measured[claim.id]))] += 1
    ways = ", ".join(f"{how[way]} {way}" for way in HOW if how[way])
    return (
        f"{how.total()} published claims of {len(papers)} papers and theses are checked "
        f"({ways} on Spark): {came_out['reproduced']} hold, "
        f"{came_out['shape only']} hold in their trend but not in their number, "
        f"{came_out['not reproduced']} do not hold, and {came_out['not testable']} hang on "
        "something that is not published."
    )


def results() -> str:
    """What the benchmarks measured last, a table each."""
    kept = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    lines: list[str] = []
    for name, one in kept.items():
        lines += [f"## {name.replace('_', ' ')}", "", f"Measured {one['measured']}.", ""]
        lines += ["| what | measured | target | |", "|---|---:|---:|---|"]
        for row in one["rows"]:
            verdict = row["verdict"].replace("missed", "**missed**")
            cells = (row["what"], row["value"], row["target"], verdict)
            lines.append(
                "| " + " | ".join(cell.strip().replace("|", "\\|") for cell in cells) + " |"
            )
        lines.append("")
    return "\n".join(lines)


def between(document: str, mark: str, text: str) -> str:
    """A document with other text between two marks."""
    return re.sub(
        rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)",
        lambda match: f"{match[1]}{text}\n{match[2]}",
        document,
        flags=re.DOTALL,
    )


ROW_HEIGHT, NAME_WIDTH, BAR_WIDTH, WIDTH, TOP = 21, 140, 430, 760, 92
LARGEST = 2.6  # ratio at the right end of the axis


def ratios(scoreboard: str) -> str:
    """A bar per scheduler: traffic over the least that any of them found."""
    rows = sorted(traffic_ratios(scoreboard).items(), key=lambda row: (row[1][0], -row[1][1]))
    most = max(plans for _, (_, plans) in rows)
    height = TOP + ROW_HEIGHT * len(rows) + 16
    marks = [1.0, 1.5, 2.0, 2.5]
    parts = [
        element("rect", width=WIDTH, height=height, fill="#ffffff"),
        _text("Traffic between machines, compared with the best plan known", 16, 24, "title"),
        _text(
            "1.0 is the best. On the right: the problems for which a scheduler found a plan", 16, 43
        ),
        _text("that overloads no machine; its bar is the geometric mean over these.", 16, 58),
        *(element("line", x1=_x(m), x2=_x(m), y1=TOP - 6, y2=height - 12) for m in marks),
        *(_text(f"{m:.1f}", _x(m), TOP - 9, "mark") for m in marks[1:]),
    ]
    for i, (name, (ratio, plans)) in enumerate(rows):
        y = TOP + ROW_HEIGHT * i
        kind = "ours" if name == "headrace" else "other"
        wide = max(_x(ratio) - _x(1.0), 2.0)
        parts.append(_text(name, NAME_WIDTH - 8, y + 12, f"name {kind}"))
        parts.append(element("rect", x=_x(1.0), y=y + 2, width=wide, height=13, class_=kind))
        parts.append(_text(f"{ratio:.2f}", _x(1.0) + wide + 6, y + 12, kind))
        parts.append(_text(f"{plans} of {most}", WIDTH - 16, y + 12, "plans"))
    style = (
        "text{font:12px system-ui,sans-serif;fill:#1c2126}.title{font-size:15px;font-weight:600}"
        ".plain,.mark,.plans{fill:#5a636d}.mark{text-anchor:middle}.name,.plans{text-anchor:end}"
        "text.ours{font-weight:700}rect.ours{fill:#1b6a86}rect.other{fill:#b9cdd6}"
        "line{stroke:#dce0e5}"
    )
    return (
        element(
            "svg",
            element("title", "Every scheduler's traffic over the best"),
            element("style", Html(style)),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {height}",
            role="img",
        )
        + "\n"
    )


def traffic_ratios(scoreboard: str) -> dict[str, tuple[float, int]]:
    """Per scheduler the mean ratio and the number of feasible plans, from the first table.

    Ratios to a plan without any traffic are infinite; the mean is over the others.
    """
    table = scoreboard.split("\n\n")[1].splitlines()
    found: dict[str, tuple[float, int]] = {}
    for line in table[2:]:
        name, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
        logs, finite, plans = 0.0, 0, 0
        for cell in cells[:-3]:  # then nodes, seconds, and plans that are not feasible
            match = re.fullmatch(r"([\d.]+|∞) \(\d+ of (\d+)\)(?:, (\d+) × ∞)?", cell)
            if match is None:
                continue
            plans += int(match[2])
            if match[1] != "∞":
                count = int(match[2]) - int(match[3] or 0)
                logs, finite = logs + count * math.log(float(match[1])), finite + count
        if name != "optimal" and finite:  # that is the proof, not a rival
            found[name] = (math.exp(logs / finite), plans)
    return found


def _x(ratio: float) -> float:
    return NAME_WIDTH + (ratio - 1.0) / (LARGEST - 1.0) * BAR_WIDTH


def _text(words: str, x: float, y: float, kind: str = "plain") -> Html:
    return element("text", words, x=x, y=y, class_=kind)


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
