"""What if? The same files with more load, other machines, other prices, or any value changed.

A pure function from documents to documents. A wrong change names the option, the nearest name there
is, and what there is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from headrace.errors import HeadraceError, Infeasible, InvalidInput
from headrace.model.components import expand
from headrace.model.document import Document
from headrace.model.mistakes import known_keys
from headrace.model.nearest import nearest
from headrace.model.read import Inputs, dotted, validated
from headrace.model.section import Key

Content = dict[str, Any]
# Sections where a name may be new; a wrong one is found when it is used.
OPEN = ("profile", "options", "history", "inventory")
INDEX = re.compile(r"\[(\d+)\]")
MOST_NAMED = 12  # names listed in an error


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Changes to try, in the order they are applied."""

    settings: tuple[tuple[str, object], ...] = ()  # path, value
    rate_factor: float | None = None
    without: tuple[str, ...] = ()  # nodes, or ranges of them
    added: tuple[tuple[str, object], ...] = ()  # machine type, how many
    prices: tuple[tuple[str, object], ...] = ()  # machine type, price

    def __bool__(self) -> bool:
        return (
            bool(self.settings or self.without or self.added or self.prices)
            or self.rate_factor is not None
        )

    def words(self) -> list[str]:
        """The changes as options of a command."""
        return [
            *(f"--set {path}={value}" for path, value in self.settings),
            *([] if self.rate_factor is None else [f"--rate-factor {self.rate_factor:g}"]),
            *(f"--without {name}" for name in self.without),
            *(f"--add {kind}={count}" for kind, count in self.added),
            *(f"--price {kind}={price}" for kind, price in self.prices),
        ]


def apply_change(inputs: Inputs, what_if: WhatIf) -> Inputs:
    """The inputs with the changes made; the given ones stay as they are."""
    if not what_if:
        return inputs
    content = _content(inputs.document)
    counts = _counts(content)
    for path, value in what_if.settings:
        set_value(content, path, value)
        inputs = _validate(inputs, content, f"--set {path}={value}")
    _forget_tasks(
        content,
        {name for name, tasks in _counts(content).items() if tasks != counts.get(name, tasks)},
    )
    inputs = _validate(inputs, content, " ".join(what_if.words()))
    if what_if.rate_factor is not None:
        if not (math.isfinite(what_if.rate_factor) and what_if.rate_factor > 0):
            raise InvalidInput(f"--rate-factor {what_if.rate_factor:g}: a factor must be above 0")
        content = _content(multiply_rates(inputs.document, what_if.rate_factor))
    for pattern in what_if.without:
        remove_nodes(content, pattern)
    for kind, count in what_if.added:
        add_machines(content, kind, count)
    for kind, price in what_if.prices:
        set_price(content, kind, price)
    return _validate(inputs, content, " ".join(what_if.words()))


def _content(document: Document) -> Content:
    return document.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _validate(inputs: Inputs, content: Content, change: str) -> Inputs:
    """The inputs with changed content that keeps to the format; files stay, for later errors."""
    try:
        return replace(inputs, document=validated(content, {}).document)
    except HeadraceError as error:
        raise InvalidInput(f"{change}: {error.message}") from None


def multiply_rates(document: Document, factor: float) -> Document:
    """The document with faster spouts: their rates, measured traffic and stated CPU multiplied."""

    def component(spec: Content) -> Content:
        grown = dict(spec)
        if spec.get("spout"):
            grown["rate"] = (1.0 if spec.get("rate") is None else spec["rate"]) * factor
        if spec.get("cpu") is not None:
            grown["cpu"] = spec["cpu"] * factor
        return grown

    def topology(spec: Content) -> Content:
        return {
            **spec,
            "components": {name: component(c) for name, c in spec.get("components", {}).items()},
        }

    content = _content(document)
    if content.get("topology") is not None:
        content["topology"] = topology(content["topology"])
    if content.get("topologies") is not None:
        content["topologies"] = [topology(t) for t in content["topologies"]]
    for task in (content.get("tasks") or {}).values():
        if task.get("cpu") is not None:
            task["cpu"] *= factor
    for stream in content.get("streams") or ():
        if stream.get("tuples_per_s") is not None:
            stream["tuples_per_s"] *= factor
    if content.get("traffic") is not None:
        content["traffic"] = [
            [a, b, *(figure * factor for figure in figures)]
            for a, b, *figures in content["traffic"]
        ]
    for spout, points in (content.get("history") or {}).items():
        content["history"][spout] = [[at, rate * factor] for at, rate in points]
    return validated(content, {}).document


def set_value(content: Content, path: str, value: object) -> None:
    """Set the value at a path such as topology.components.split.tasks or streams[0].bytes."""
    keys: list[Key] = []
    here: Any = content
    rest = path
    while True:
        key, rest = _step(content, here, keys, rest, path)
        keys.append(key)
        if not rest:
            here[key] = value
            return
        below = cast("Any", here)[key] if isinstance(here, list) or key in here else None
        if below is None:
            below = cast("Any", here)[key] = {}
        elif not isinstance(below, dict | list):
            holds_nothing = f"`{dotted(keys)}` is {below!r} and holds nothing"
            raise InvalidInput(f"--set {path}: {holds_nothing}; the path ends there")
        here = below


def _step(
    content: Content, here: Any, keys: Sequence[Key], rest: str, path: str
) -> tuple[Key, str]:
    """The next key of a path, and what is left of it.

    Names may have dots in them, so the longest that fits is taken.
    """
    if isinstance(here, list):
        return _item(cast("list[Any]", here), rest, path)
    known = known_keys(keys)
    names = [*cast("Content", here), *known]
    fits = [name for name in names if rest == name or rest.startswith((f"{name}.", f"{name}["))]
    if not fits and list(keys) == ["cluster", "nodes"]:
        _unroll(content, rest)
        fits = [
            name for name in cast("Content", here) if rest == name or rest.startswith(f"{name}.")
        ]
        names = [name for pattern in cast("Content", here) for name in expand(pattern)]
    if fits:
        key = max(fits, key=len)
        return key, rest[len(key) :].removeprefix(".")
    key, _, left = rest.partition(".")
    if not known and (str(keys[0]) in OPEN or keys[-1] == "resources"):
        return key, left
    place = f"`{dotted(keys)}` has no" if keys else "there is no section"
    raise InvalidInput(
        f"--set {path}: {place} `{key}`{nearest(key, names)}; there is: {_some(names)}"
    )


def _counts(content: Content) -> dict[str, int]:
    """Tasks of every component, by the name reports use."""
    found = {
        name: spec.get("tasks", 1)
        for name, spec in ((content.get("topology") or {}).get("components") or {}).items()
    }
    for topology in content.get("topologies") or ():
        name = topology.get("name", "topology")
        found |= {
            f"{name}/{c}": spec.get("tasks", 1)
            for c, spec in (topology.get("components") or {}).items()
        }
    return found


def _forget_tasks(content: Content, recounted: set[str]) -> None:
    """Turn measurements of tasks into totals per stream, for components with another count."""
    for stream in content.get("streams") or ():
        if stream["to"] in recounted:
            stream.pop("shares", None)
    totals: dict[tuple[str, str], list[float]] = {}
    kept: list[Any] = []
    for row in content.get("traffic") or ():
        pair = (row[0].rpartition(".")[0], row[1].rpartition(".")[0])
        if not recounted & set(pair):
            kept.append(row)
            continue
        total = totals.setdefault(pair, [0.0, 0.0])
        total[0] += row[2]
        total[1] += row[3] if len(row) > 3 else 0.0
    if not totals:
        return
    content["traffic"] = kept or None
    known = {(stream["from"], stream["to"]) for stream in content.get("streams") or ()}
    rows = [
        {
            "from": a,
            "to": b,
            "tuples_per_s": tuples,
            **({"bytes": size / tuples} if size and tuples else {}),
        }
        for (a, b), (tuples, size) in totals.items()
        if (a, b) not in known
    ]
    content["streams"] = [*(content.get("streams") or ()), *rows]


def _item(here: list[Any], rest: str, path: str) -> tuple[int, str]:
    """An entry of a list, by its number in brackets; a topology also by its name."""
    match = INDEX.match(rest)
    if match and int(match[1]) < len(here):
        return int(match[1]), rest[match.end() :].removeprefix(".")
    names = [str(entry["name"]) for entry in here if isinstance(entry, dict) and "name" in entry]
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith(f"{name}."):
            return names.index(name), rest[len(name) :].removeprefix(".")
    has = f"[0] to [{len(here) - 1}]" if here else "none"
    raise InvalidInput(
        f"--set {path}: no entry `{rest.partition('.')[0]}`; there is: {', '.join([has, *names])}"
    )


def _unroll(content: Content, rest: str) -> None:
    """Write out the range that a path's node is in, so that it can differ from the others."""
    nodes = cast("Content", content["cluster"]["nodes"])
    for pattern in list(nodes):
        if any(rest == name or rest.startswith(f"{name}.") for name in expand(pattern)):
            _write_out(content, [pattern])
            return


def _write_out(content: Content, patterns: Iterable[str]) -> None:
    """Replace ranges by their nodes, in order."""
    wanted = set(patterns)
    nodes = cast("Content", content["cluster"]["nodes"])
    single = {
        name: _copy(node) if pattern in wanted else node
        for pattern, node in nodes.items()
        for name in (expand(pattern) if pattern in wanted else (pattern,))
    }
    nodes.clear()
    nodes.update(single)


def _copy(node: Content) -> Content:
    return {
        key: dict(cast("Content", value)) if isinstance(value, dict) else value
        for key, value in node.items()
    }


def remove_nodes(content: Content, pattern: str) -> None:
    """Take nodes away, also from the pins of components and from what was measured."""
    nodes = cast("Content", (content.get("cluster") or {}).get("nodes") or {})
    measured = cast("Content", content.get("inventory") or {})
    ranges = {key: list(expand(key)) for key in nodes}
    stated = [name for names in ranges.values() for name in names]
    there = list(dict.fromkeys([*stated, *measured]))
    gone = set(expand(pattern))
    if not there:
        raise InvalidInput(f"--without {pattern}: there is no cluster to take nodes from")
    for name in sorted(gone - set(there))[:1]:
        missing = f"the cluster has no node `{name}`{nearest(name, there)}"
        raise InvalidInput(f"--without {pattern}: {missing}; it has {_some(there)}")
    if gone == set(there):
        raise Infeasible(
            f"--without {pattern}: no node is left",
            resource="nodes",
            needed=1,
            available=0,
            fix="take fewer nodes away",
        )
    _write_out(content, [p for p, names in ranges.items() if gone & set(names) and names != [p]])
    for section in (nodes, measured):
        for name in gone & set(section):
            del section[name]
    for name, component in _components(content):
        pins = component.get("nodes")
        if pins is None:
            continue
        left = [node for pin in pins for node in expand(pin) if node not in gone]
        if not left:
            only = f"it may run only on {', '.join(pins)}"
            raise Infeasible(
                f"--without {pattern}: `{name}` has no node left, since {only}",
                task=f"{name}.1",
                resource="nodes",
                needed=1,
                available=0,
                fix=f"allow `{name}` other nodes",
            )
        component["nodes"] = left


def _components(content: Content) -> Iterable[tuple[str, Content]]:
    """Components, or bare tasks, of all topologies."""
    for topology in [content.get("topology") or {}, *(content.get("topologies") or ())]:
        yield from (topology.get("components") or {}).items()
    yield from (content.get("tasks") or {}).items()


def add_machines(content: Content, kind: str, count: object) -> None:
    """More machines of a type: nodes like those of the cluster, and more to rent in the catalog."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidInput(f"--add {kind}={count}: how many must be a whole number above 0")
    nodes = cast("Content", (content.get("cluster") or {}).get("nodes") or {})
    catalog = cast("Content", content.get("catalog") or {})
    like = next((node for node in nodes.values() if node.get("type") == kind), None)
    if like is None and kind not in catalog:
        types = [
            *dict.fromkeys(node["type"] for node in nodes.values() if node.get("type")),
            *catalog,
        ]
        missing = f"no machine type `{kind}`{nearest(kind, types)}"
        raise InvalidInput(f"--add {kind}={count}: {missing}; there is: {_some(types)}")
    if nodes:
        machine = like or {
            "type": kind,
            **{k: v for k, v in catalog[kind].items() if k not in ("price", "available")},
        }
        taken = {name for pattern in nodes for name in expand(pattern)}
        names = (
            name
            for i in range(1, len(taken) + count + 1)
            if (name := f"{kind}-new-{i}") not in taken
        )
        for name, _ in zip(names, range(count), strict=False):
            nodes[name] = {key: value for key, value in machine.items() if key != "taken"}
    if kind in catalog and catalog[kind].get("available") is not None:
        catalog[kind]["available"] += count


def set_price(content: Content, kind: str, price: object) -> None:
    """Another price of a machine type."""
    catalog: Mapping[str, Content] = content.get("catalog") or {}
    if kind not in catalog:
        has = (
            f"there is: {_some(catalog)}"
            if catalog
            else "there is no `catalog`, where prices stand"
        )
        raise InvalidInput(
            f"--price {kind}={price}: no machine type `{kind}`{nearest(kind, list(catalog))}; {has}"
        )
    if (
        not isinstance(price, int | float)
        or isinstance(price, bool)
        or not (math.isfinite(price) and price > 0)
    ):
        raise InvalidInput(f"--price {kind}={price}: a price must be a number above 0")
    catalog[kind]["price"] = price


def _some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more if known else "none"
