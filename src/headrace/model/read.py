"""Reading and merging files: errors say file, line, key and the nearest known key."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import numpy as np
import yaml
from pydantic import BaseModel, ValidationError

from headrace.errors import InvalidInput
from headrace.model.document import FORMAT, SECTIONS, Document

Key = str | int
Model = TypeVar("Model", bound=BaseModel)

JSON = re.compile(r"\s*\{")
DEEPEST = 1000  # levels; the format has a dozen
DEEP_BLOCK = re.compile(rf"^[ ?-]{{{DEEPEST}}}", re.MULTILINE)
NO_BRACKET = bytes(letter for letter in range(256) if letter not in b"[{]}")
LINES_UP_TO = (
    4_000_000  # characters: finding a line means parsing again, which takes seconds per ten million
)


@dataclass(frozen=True, slots=True)
class File:
    """A file's name, text and parsed content."""

    name: str
    text: str = field(repr=False)
    content: dict[str, Any] = field(repr=False)

    def line(self, path: Sequence[Key]) -> int | None:
        """The line (from 1) where the value at a path of keys stands, or the deepest part of the path that exists."""
        found = node = _tree(self.text) if len(self.text) <= LINES_UP_TO else None
        for key in path:
            entry = _child(node, key)
            if entry is None:
                break
            found, node = entry
        return found.start_mark.line + 1 if found is not None else None

    def at(self, path: Sequence[Key]) -> str:
        """`file:line: a.b.c` for an error message."""
        line = self.line(path)
        where = f"{self.name}:{line}" if line else self.name
        return f"{where}: {dotted(path)}" if path else where


@lru_cache(maxsize=1)
def _tree(text: str) -> yaml.Node | None:
    """A text as YAML nodes, which know their lines; kept, since one file often has several mistakes."""
    try:
        return cast("yaml.Node | None", yaml.compose(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError:
        return None


def _child(node: yaml.Node | None, key: Key) -> tuple[yaml.Node, yaml.Node] | None:
    """The node that names a key, and its value."""
    if isinstance(node, yaml.MappingNode):
        for name, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if isinstance(name, yaml.ScalarNode) and _name(name) == str(key):
                return name, value
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        items = cast("list[yaml.Node]", node.value)
        if key < len(items):
            return items[key], items[key]
    return None


def dotted(path: Sequence[Key]) -> str:
    """`topology.components.split` or `streams[2].from`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The merged document, and which file each of its sections came from."""

    document: Document
    files: Mapping[str, File]  # section -> file

    def invalid(self, path: Sequence[Key], message: str) -> InvalidInput:
        """An error that names the place in the file."""
        file = self.files.get(str(path[0])) if path else None
        return InvalidInput(f"{file.at(path) if file else dotted(path)}: {message}")


def read(names: Sequence[str | Path]) -> Inputs:
    """Read files and merge their sections; a section that stands in two files is an error."""
    files = [read_file(name) for name in names]
    merged: dict[str, Any] = {"format": FORMAT}
    origin: dict[str, File] = {}
    for file in files:
        for section, value in file.content.items():
            if section == "format":
                continue
            if section in origin:
                raise InvalidInput(
                    f"{file.at([section])}: this section also stands in {origin[section].name}; give it once"
                )
            merged[section], origin[section] = value, file
    if "plan" in origin and not any(section in origin for section in SECTIONS):
        made_from, source = merged.get("made_from"), origin["plan"]
        for section, value in (
            cast("dict[str, Any]", made_from).items() if isinstance(made_from, dict) else ()
        ):
            merged[section], origin[section] = value, source
    for one, other in (("topology", "topologies"), ("topologies", "tasks")):
        if one in origin and other in origin:
            raise InvalidInput(
                f"{origin[other].at([other])}: give either `{one}` or `{other}`, not both"
            )
    return validated(merged, origin)


def validated(content: Mapping[str, Any], origin: Mapping[str, File]) -> Inputs:
    """Check merged content against the format."""
    return Inputs(conforming(Document, content, origin), origin)


def conforming(model: type[Model], content: Mapping[str, Any], origin: Mapping[str, File]) -> Model:
    """The content as a model of a format; mistakes are named with their place in the files."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise InvalidInput("\n".join(_explain(error, content, origin, model))) from None


def conforming_file(model: type[Model], file: File) -> Model:
    """A file of another format as a model of that format."""
    return conforming(
        model, file.content, dict.fromkeys((*model.model_fields, *file.content), file)
    )


def read_file(name: str | Path) -> File:
    """Read one file as YAML or JSON and check its format version."""
    shown = str(name)
    text = read_text(name, "a headrace/1 file is YAML or JSON", holds=b"format")
    if text is None:
        raise InvalidInput(f"{shown}: has no `format`; this version reads `format: {FORMAT}`")
    content = parse(shown, text)
    if not isinstance(content, dict):
        raise InvalidInput(
            f"{shown}: holds {_kind(content)}; a headrace/1 file is a mapping that starts with `format: {FORMAT}`"
        )
    mapping = cast("dict[str, Any]", content)
    if mapping.get("format") != FORMAT:
        had = (
            f"has `format: {str(mapping['format'])[:80]}`"
            if "format" in mapping
            else "has no `format`"
        )
        raise InvalidInput(f"{shown}: {had}; this version reads `format: {FORMAT}`")
    return File(shown, text, mapping)


def read_text(name: str | Path, needed: str, holds: bytes = b"") -> str | None:
    """A file's text; None if it is large and lacks a word it must hold, since finding what is wrong with it takes minutes."""
    path, shown = Path(name), str(name)
    if path.is_dir():
        raise InvalidInput(f"{shown}: is a folder; {needed}")
    if not path.exists():
        raise InvalidInput(f"{shown}: no such file")
    try:
        with path.open("rb") as stream:
            data = stream.read(65536)
            if b"\0" in data:
                raise InvalidInput(f"{shown}: is not text; {needed}")
            data += stream.read()
        text = data.decode("utf-8-sig")
        return text if len(text) <= LINES_UP_TO or holds in data else None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{shown}: is not UTF-8 text (byte {error.start}); {needed}") from None
    except OSError as error:
        raise InvalidInput(f"{shown}: cannot be read: {error.strerror}") from None


def parse(name: str, text: str) -> object:
    """Parse JSON or YAML; duplicate keys are errors in both."""
    if JSON.match(text):
        try:
            return json.loads(text, object_pairs_hook=_unique_pairs)
        except _Duplicate as twice:
            raise InvalidInput(f"{name}: the key `{twice}` stands twice in one mapping") from None
        except json.JSONDecodeError as error:
            if len(text) > LINES_UP_TO:
                raise InvalidInput(f"{name}:{error.lineno}: is not JSON: {error.msg}") from None
            # else: YAML's flow style also starts with a brace; its parser names the line
        except RecursionError:
            raise InvalidInput(f"{name}: is nested too deeply") from None
        except ValueError as error:
            raise InvalidInput(f"{name}: is not JSON: {error}") from None
    if _nested_deeply(text):
        raise InvalidInput(f"{name}: is nested too deeply")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise InvalidInput(f"{where}: {error.problem or 'is not YAML'}") from None
    except yaml.YAMLError as error:
        raise InvalidInput(f"{name}: is not YAML: {str(error).splitlines()[0]}") from None
    except (RecursionError, ValueError) as error:
        raise InvalidInput(f"{name}: is not YAML: {str(error).splitlines()[0]}") from None


def _nested_deeply(text: str) -> bool:
    """Whether YAML's parser, which calls itself for every level and checks nothing, could exhaust the stack."""
    brackets = np.frombuffer(text.encode().translate(None, NO_BRACKET), dtype=np.uint8)
    depth = np.cumsum(np.where(np.isin(brackets, list(b"[{")), 1, -1))
    return bool(DEEP_BLOCK.search(text)) or int(depth.max(initial=0)) > DEEPEST


class _Duplicate(Exception):
    pass


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Duplicate(key)
            seen.add(key)
    return mapping


class _Loader(yaml.CSafeLoader):
    """Mappings whose keys are distinct names; keys from `<<` give way to a mapping's own."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.flat: set[int] = (
            set()
        )  # mappings whose keys were checked, before merging mixed others into them

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if id(node) in self.flat:
            return
        self.flat.add(id(node))
        seen: set[str] = set()
        for key, _ in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a key must be a plain name", problem_mark=key.start_mark
                )
            if _name(key) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key `{_name(key)}` stands twice in one mapping",
                    problem_mark=key.start_mark,
                )
            seen.add(_name(key))
        super().flatten_mapping(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        # YAML reads on, off, yes, no and numbers as values; as names of things they are meant as
        # written.
        self.flatten_mapping(node)
        entries = cast("list[tuple[yaml.ScalarNode, yaml.Node]]", node.value)
        return {_name(key): self.construct_object(value, deep=deep) for key, value in entries}


def _name(key: yaml.ScalarNode) -> str:
    return str(key.value)


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean x?)`, or nothing if no known word is near."""
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean `{match[0]}`?)" if match else ""


def _quoted(value: object) -> str:
    """A value as written, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _kind(value: object) -> str:
    names: dict[type, str] = {
        type(None): "nothing",
        str: "text",
        list: "a list",
        dict: "a mapping",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), f"a {type(value).__name__}")


ROW_SHAPE = (
    "missing",
    "too_long",
    "tuple_type",
)  # what validation says of a row of `traffic` that is not one


def _explain(
    error: ValidationError,
    content: Mapping[str, Any],
    origin: Mapping[str, File],
    model: type[BaseModel],
) -> list[str]:
    """One line per mistake, at most ten, each place once."""
    found: dict[tuple[Key, ...], str] = {}
    for detail in error.errors(include_url=False):
        path = _real_path(content, detail["loc"], whole=detail["type"] == "missing")
        if path[:1] == ["traffic"] and detail["type"] in ROW_SHAPE:
            path = path[:2]
        if tuple(path) not in found:
            found[tuple(path)] = _message(detail, path, model)
    for row in {path[:2] for path in found if path[:1] == ("traffic",) and len(path) > 2}:
        found.pop(row, None)  # a row with a bad value also fails to be the other kind of row
    lines: list[str] = []
    for path, message in islice(found.items(), 10):
        file = origin.get(str(path[0])) if path else None
        lines.append(f"{file.at(path) if file else dotted(path)}: {message}")
    return lines + ([f"and {len(found) - 10} more"] if len(found) > 10 else [])


def _real_path(content: Mapping[str, Any], loc: Sequence[Key], *, whole: bool) -> list[Key]:
    """The path without the steps that validation adds (branches of unions, short forms spelled out).

    `whole`: its last step need not exist, since that it is missing is the mistake.
    """
    path: list[Key] = []
    value: object = content
    for position, key in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(value, dict) and key in value:
            value = cast("dict[Key, object]", value)[key]
        elif isinstance(value, list) and isinstance(key, int):
            items = cast("list[object]", value)
            value = items[key] if key < len(items) else None
        elif isinstance(value, dict) and str(key) in value:
            value = cast("dict[str, object]", value)[str(key)]
        elif not (last and whole and isinstance(value, dict)):
            continue
        path.append(key)
    return path


def _message(detail: Any, path: Sequence[Key], model: type[BaseModel]) -> str:
    kind, got = str(detail["type"]), detail.get("input")
    if path[:1] == ["options"] and len(path) > 2:
        return f"is {_kind(got)}; an option is a number, text, true or false"
    if path[:1] == ["traffic"] and kind in ROW_SHAPE:
        return "a row is [from task, to task, tuples/s] or [from task, to task, tuples/s, bytes/s]"
    if kind == "extra_forbidden":
        return f"unknown key `{path[-1]}`{nearest(str(path[-1]), known_keys(path[:-1], model))}"
    if kind == "missing":
        return f"`{path[-1]}` is needed and missing"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))
        return f"{_quoted(got)} is not one of {', '.join(choices)}{nearest(str(got)[:80], choices)}"
    limits = {
        "greater_than_equal": ("at least", "ge"),
        "greater_than": ("more than", "gt"),
        "less_than_equal": ("at most", "le"),
    }
    if kind in limits:
        word, key = limits[kind]
        limit = detail["ctx"][key]
        return f"is {_quoted(got)}; it must be {word} {f'{limit:,}' if isinstance(limit, int) else f'{limit:g}'}"
    if kind == "finite_number":
        return f"is {got}; a finite number is needed"
    shown = (
        str(got).lower()
        if isinstance(got, bool)
        else _quoted(got)
        if isinstance(got, str | int | float)
        else _kind(got)
    )
    needs = {
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "string": "text",
        "dict": "a mapping",
        "tuple": "a list",
    }
    for word, need in {**needs, "model": "a mapping"}.items():
        if kind.startswith(word):
            return f"is {shown}; {need} is needed"
    return f"is {shown}: {detail['msg']}"


def known_keys(path: Sequence[Key], model: type[BaseModel] = Document) -> list[str]:
    """The keys the format knows at a path."""
    here: Any = model
    for key in path:
        for part in _alternatives(here):
            if isinstance(part, type) and issubclass(part, BaseModel):
                here = next(
                    (
                        info.annotation
                        for name, info in part.model_fields.items()
                        if str(key) in (name, info.alias)
                    ),
                    None,
                )
                break
            if get_origin(part) in (dict, tuple):
                here = get_args(part)[1 if get_origin(part) is dict else 0]
                break
    # Where a list stands, one of its entries may stand alone.
    found = [
        get_args(part)[0] if get_origin(part) is tuple else part for part in _alternatives(here)
    ]
    sections = [part for part in found if isinstance(part, type) and issubclass(part, BaseModel)]
    return [
        info.alias or name for section in sections for name, info in section.model_fields.items()
    ]


def _alternatives(annotation: Any) -> list[Any]:
    """What `X | None` or an annotated X may be."""
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [part for choice in get_args(annotation) for part in _alternatives(choice)]
    return [annotation]
