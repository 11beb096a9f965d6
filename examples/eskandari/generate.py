"""Write the micro-benchmarks of Eskandari's thesis, section 6.2, into the folder micro/

The files are committed; after a change run `python examples/eskandari/generate.py`.
The same script gives the same bytes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "micro"
SIZES = range(10, 33, 2)


class Operator(NamedTuple):
    """A component: how many tasks it has and which components it reads."""

    tasks: int
    inputs: tuple[str, ...] = ()


Layout = Mapping[str, Operator]  # in the order of the stream


def numbered(word: str, count: int) -> tuple[str, ...]:
    """Names that sort in the order of their numbers."""
    return tuple(f"{word}-{number:02d}" for number in range(1, count + 1))


def linear(names: Sequence[str], *, tasks: int) -> Layout:
    """Operators one after the other."""
    before = [(), *((name,) for name in names)]
    return {name: Operator(tasks, inputs) for name, inputs in zip(names, before, strict=False)}


def diamond(inner: Sequence[str], *, tasks: int, end_tasks: int) -> Layout:
    """One source, operators side by side, one sink."""
    sides = {name: Operator(tasks, ("source",)) for name in inner}
    return {"source": Operator(end_tasks), **sides, "sink": Operator(end_tasks, tuple(inner))}


def star(
    sources: Sequence[str],
    sinks: Sequence[str],
    *,
    source_tasks: int,
    middle_tasks: int,
    sink_tasks: int,
) -> Layout:
    """Several sources, one operator in the middle, several sinks."""
    outward = {name: Operator(sink_tasks, ("middle",)) for name in sinks}
    return {
        **dict.fromkeys(sources, Operator(source_tasks)),
        "middle": Operator(middle_tasks, tuple(sources)),
        **outward,
    }


def unit_layout(shape: str, size: int) -> Layout:
    """A layout of section 6.2.1 with so many tasks; each further operator has two."""
    match shape:
        case "linear":
            return linear(numbered("operator", size // 2), tasks=2)
        case "diamond":
            return diamond(numbered("inner", (size - 8) // 2), tasks=2, end_tasks=4)
        case _:
            outer = (size - 4) // 2  # new operators become source and sink in turn
            sources, sinks = numbered("source", (outer + 1) // 2), numbered("sink", outer // 2)
            return star(sources, sinks, source_tasks=2, middle_tasks=4, sink_tasks=2)


def storm_layout(shape: str) -> Layout:
    """A layout of section 6.2.2."""
    match shape:
        case "linear":
            return linear(("spout", "bolt-1", "bolt-2", "bolt-3"), tasks=8)
        case "diamond":
            return diamond(("bolt-1", "bolt-2", "bolt-3"), tasks=8, end_tasks=8)
        case _:
            return star(
                ("spout-1", "spout-2"),
                ("sink-1", "sink-2"),
                source_tasks=4,
                middle_tasks=8,
                sink_tasks=8,
            )


def unit_benchmark(shape: str, size: int) -> str:
    """A layout whose tasks all have load 1 and whose connected task pairs all carry 1 tuple/s."""
    layout = unit_layout(shape, size)
    # A stream between p and q tasks is p*q pairs; all readers of an operator have as many tasks.
    emits = {
        key: layout[key].tasks * reader.tasks for reader in layout.values() for key in reader.inputs
    }
    return document(
        f"The {shape} micro-benchmark with {size} tasks; every task has load 1 and every connected pair of tasks "
        "carries 1 tuple/s.",
        "Source: L. Eskandari, PhD thesis, section 6.2.1, fig. 6.1. Written by generate.py.",
        "A stream between operators of p and q tasks is p*q pairs, hence its rate of p*q tuples/s.",
        section=topology(f"{shape}-{size}", layout, emits, "cpu: 1"),
    )


def storm_benchmark(kind: str, shape: str, *, rate: int, cpu: int, nodes: str) -> str:
    """A layout as it ran on the Storm cluster; every bolt emits what it receives."""
    layout = storm_layout(shape)
    spouts = sum(not operator.inputs for operator in layout.values())
    emits: dict[str, float] = {}
    for name, operator in layout.items():
        emits[name] = (
            sum(emits[key] for key in operator.inputs) if operator.inputs else rate / spouts
        )
    return document(
        f"The {shape} micro-benchmark as it ran on Storm, {kind}-intensive. Use it with ../{nodes}.",
        "Source: L. Eskandari, PhD thesis, section 6.2.2 (tasks) and 8.5.1 (cluster). Written by generate.py.",
        "Assumed: the number of operators, which is not in the text, is that of R-Storm's micro-benchmarks, from which the "
        f"layouts come. Rates and loads are not published: {rate} tuples/s from all spouts and {cpu} points per task make the "
        "tasks need more than one node and fit under the thesis' ceiling of 80 %, as in the experiments. 128 MB per task is "
        "Storm's default.",
        section=topology(
            f"{kind.lower().replace('/', '')}-{shape}", layout, emits, f"cpu: {cpu}, memory_mb: 128"
        ),
    )


def cluster(what: str, capacities: Mapping[str, int]) -> str:
    """Nodes whose capacity is a number of tasks of load 1."""
    nodes = [f"    {name}: {{cpu: {capacity}, slots: 2}}" for name, capacity in capacities.items()]
    options = "options: {p-scheduler: {alpha: 1}, t3-scheduler: {alpha: 1}, i-scheduler: {alpha: 1}, p-scheduler-hard: {alpha: 1}, i-scheduler-hard: {alpha: 1}}"
    return document(
        what,
        "Source: L. Eskandari, PhD thesis, section 6.2.1, table 6.1. Written by generate.py.",
        "The thesis fills these nodes to the brim, so the options lift the ceiling of 80 % that its schedulers keep elsewhere. "
        "It gives no slots; two are enough for its five tasks per worker.",
        section="\n".join(["cluster:", "  nodes:", *nodes, options]),
    )


def document(*paragraphs: str, section: str) -> str:
    """A file: comments, the format's version and a section."""
    comments = [
        textwrap.fill(paragraph, 120, initial_indent="# ", subsequent_indent="# ")
        for paragraph in paragraphs
    ]
    return "\n".join([*comments, "format: headrace/1", section, ""])


def topology(name: str, layout: Layout, emits: Mapping[str, float], more: str) -> str:
    """The topology section, given the tuples/s that each component emits."""
    width = max(map(len, layout)) + 1
    lines = [f"    {key + ':':<{width}} {component(key, layout, emits, more)}" for key in layout]
    return "\n".join(["topology:", f"  name: {name}", "  components:", *map(wrapped, lines)])


def component(name: str, layout: Layout, emits: Mapping[str, float], more: str) -> str:
    """A component in the format's short form."""
    tasks, inputs = layout[name]
    if not inputs:
        return f"{{spout: true, tasks: {tasks}, rate: {emits[name]:g}, {more}}}"
    sources = ", ".join(f"{key}: shuffle" for key in inputs)
    receives = sum(emits[key] for key in inputs)
    selectivity = (
        ""
        if emits.get(name, receives) == receives
        else f"selectivity: {emits[name] / receives!r}, "
    )
    return f"{{tasks: {tasks}, inputs: {{{sources}}}, {selectivity}{more}}}"


def wrapped(line: str) -> str:
    """A long line goes on in the next one, but not between a key and its value."""
    return textwrap.fill(
        line.replace(": ", ":\0"), 120, subsequent_indent=" " * 8, break_on_hyphens=False
    ).replace("\0", " ")


def files() -> dict[str, str]:
    """Every file's name and text."""
    shapes = ("linear", "diamond", "star")
    units = {f"{shape}-{size}": unit_benchmark(shape, size) for shape in shapes for size in SIZES}
    io = {
        f"storm-io-{shape}": storm_benchmark(
            "I/O", shape, rate=1000, cpu=15, nodes="storm-1-high-2-low.yaml"
        )
        for shape in shapes
    }
    cpu = {
        f"storm-cpu-{shape}": storm_benchmark(
            "CPU", shape, rate=4000, cpu=30, nodes="storm-2-high-4-low.yaml"
        )
        for shape in shapes
    }
    clusters = {
        "homogeneous": cluster(
            "Ten equal nodes with room for four tasks each.", {"node-{1..10}": 4}
        ),
        "homogeneous-one-of-5": cluster(
            "Ten nodes for four tasks, one of them enlarged to five: so section 7.5 gets a plan at 28 tasks.",
            {"node-1": 5, "node-{2..10}": 4},
        ),
        "heterogeneous": cluster(
            "Ten nodes with room for six, four and two tasks.",
            {"high-{1..3}": 6, "mid-{1..3}": 4, "low-{1..4}": 2},
        ),
    }
    return {f"{name}.yaml": text for name, text in (units | io | cpu | clusters).items()}


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
