"""Reading and merging files: errors say file, line, key and the nearest known key."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import yaml
from pydantic import BaseModel, ValidationError

from headrace.errors import InvalidInput
from headrace.model.document import FORMAT, SECTIONS, Document
from headrace.model.mistakes import explain_mistakes, kind_of
from headrace.model.section import Key

Model = TypeVar("Model", bound=BaseModel)

JSON = re.compile(r"\s*\{")
DEEPEST = 1000  # levels; the format has a dozen
DEEP_BLOCK = re.compile(rf"^[ ?-]{{{DEEPEST}}}", re.MULTILINE)
NO_BRACKET = bytes(letter for letter in range(256) if letter not in b"[{]}")
# Characters. Finding a line means parsing again, which takes seconds per ten million of them.
LINES_UP_TO = 4_000_000
MOST_MISTAKES = 10  # listed one by one


@dataclass(frozen=True, slots=True)
class File:
    """A file's name, text and parsed content."""

    name: str
    text: str = field(repr=False)
    content: dict[str, Any] = field(repr=False)

    def line(self, path: Sequence[Key]) -> int | None:
        """The line (from 1) of the value at a path, or of the deepest step that exists."""
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
    """A text as YAML nodes, which know their lines; kept for the next mistake of the file."""
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
        return InvalidInput(f"{self.at(path)}: {message}")

    def at(self, path: Sequence[Key]) -> str:
        """A place in the files: file, line and keys."""
        return _place(self.files, path)


def _place(files: Mapping[str, File], path: Sequence[Key]) -> str:
    """Where a path is: file, line and keys, or the keys alone where no file is known."""
    file = files.get(str(path[0])) if path else None
    return file.at(path) if file else dotted(path)


def read(names: Sequence[str | Path]) -> Inputs:
    """Read files and merge their sections; a section that two files have is an error."""
    if [str(name) for name in names].count(STDIN) > 1:
        raise InvalidInput("standard input (`-`) is given twice; it can be read once")
    return merge([read_file(name) for name in names])


def merge(files: Sequence[File]) -> Inputs:
    """Merge the sections of files; a section that two files have is an error."""
    merged: dict[str, Any] = {"format": FORMAT}
    origin: dict[str, File] = {}
    for file in files:
        for section, value in file.content.items():
            if section == "format":
                continue
            if section in origin:
                also = f"this section also stands in {origin[section].name}; give it once"
                raise InvalidInput(f"{file.at([section])}: {also}")
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
    return Inputs(_validate_as(Document, content, origin), origin)


def validate_file_as(model: type[Model], file: File) -> Model:
    """A file of another format as a model of that format."""
    return _validate_as(
        model, file.content, dict.fromkeys((*model.model_fields, *file.content), file)
    )


def _validate_as(
    model: type[Model], content: Mapping[str, Any], origin: Mapping[str, File]
) -> Model:
    """The content as a model of a format; mistakes are named with their place in the files."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        mistakes = explain_mistakes(error, content, model)
        lines = [
            f"{_place(origin, path)}: {message}"
            for path, message in islice(mistakes.items(), MOST_MISTAKES)
        ]
        if len(mistakes) > MOST_MISTAKES:
            lines.append(f"and {len(mistakes) - MOST_MISTAKES} more")
        raise InvalidInput("\n".join(lines)) from None


def read_file(name: str | Path) -> File:
    """Read one file as YAML or JSON and check its format version."""
    shown = shown_name(name)
    text = read_text(name, "a headrace/1 file is YAML or JSON", holds=b"format")
    if text is None:
        raise InvalidInput(f"{shown}: has no `format`; this version reads `format: {FORMAT}`")
    return file_of(shown, text)


def file_of(shown: str, text: str) -> File:
    """A text as a file of our format; it needs not be one on a disk."""
    content = parse(shown, text)
    if not isinstance(content, dict):
        raise InvalidInput(
            f"{shown}: holds {kind_of(content)}; "
            f"a headrace/1 file is a mapping that starts with `format: {FORMAT}`"
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


STDIN = "-"  # as a file name


def read_text(name: str | Path, needed: str, holds: bytes = b"") -> str | None:
    """A file's text; None if it is large and lacks the word that it must hold.

    Parsing such a file to find what is wrong with it would take minutes.
    """
    path, shown = Path(name), shown_name(name)
    if str(name) == STDIN:
        return _text(sys.stdin.buffer.read(), shown, needed, holds)
    if path.is_dir():
        raise InvalidInput(f"{shown}: is a folder; {needed}")
    if not path.exists():
        raise InvalidInput(f"{shown}: no such file")
    try:
        with path.open("rb") as stream:
            data = stream.read(65536)
            if b"\0" not in data:
                data += stream.read()
    except OSError as error:
        raise InvalidInput(f"{shown}: cannot be read: {error.strerror}") from None
    return _text(data, shown, needed, holds)


def _text(data: bytes, shown: str, needed: str, holds: bytes) -> str | None:
    if b"\0" in data[:65536]:
        raise InvalidInput(f"{shown}: is not text; {needed}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{shown}: is not UTF-8 text (byte {error.start}); {needed}") from None
    return text if len(text) <= LINES_UP_TO or holds in data else None


def shown_name(name: str | Path) -> str:
    """What messages call a file."""
    return "standard input" if str(name) == STDIN else str(name)


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
    """Whether YAML's parser, which calls itself for every level, could exhaust the stack."""
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
        # Mappings whose keys were checked, before `<<` mixed others into them.
        self.flat: set[int] = set()

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
        # YAML reads on, off, yes, no and numbers as values; as names they are meant as written.
        self.flatten_mapping(node)
        entries = cast("list[tuple[yaml.ScalarNode, yaml.Node]]", node.value)
        return {_name(key): self.construct_object(value, deep=deep) for key, value in entries}


def _name(key: yaml.ScalarNode) -> str:
    return str(key.value)
