"""What is wrong with a document, in words: one message for every mistake validation finds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from headrace.figures import shorten_middle
from headrace.model.document import Document
from headrace.model.nearest import nearest
from headrace.model.section import Key

# What validation says of a row of `traffic` that does not have the shape of one.
ROW_SHAPE = ("missing", "too_long", "tuple_type")
ROW = "a row is [from task, to task, tuples/s] or [from task, to task, tuples/s, bytes/s]"
LONGEST_KEY = 80  # characters of a key in a message
LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
NEEDS = {  # how the name of an error starts -> what should be there
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "dict": "a mapping",
    "tuple": "a list",
    "model": "a mapping",
}


def explain_mistakes(
    error: ValidationError, content: Mapping[str, Any], model: type[BaseModel]
) -> dict[tuple[Key, ...], str]:
    """Path of keys -> what is wrong there; each place once, in the order they were found."""
    found: dict[tuple[Key, ...], str] = {}
    for detail in error.errors(include_url=False):
        path = _real_path(content, detail["loc"], whole=detail["type"] == "missing")
        if path[:1] == ["traffic"] and detail["type"] in ROW_SHAPE:
            path = path[:2]
        if tuple(path) not in found:
            found[tuple(path)] = _message(detail, path, model)
    for row in {path[:2] for path in found if path[:1] == ("traffic",) and len(path) > 2}:
        found.pop(row, None)  # a row with a bad value also fails to be the other kind of row
    return found


def _real_path(content: Mapping[str, Any], loc: Sequence[Key], *, whole: bool) -> list[Key]:
    """The path in the file, without steps that validation adds for unions and short forms.

    `whole`: keep the last step even if it does not exist, since that is the mistake.
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
        return f"is {kind_of(got)}; an option is a number, text, true or false"
    if path[:1] == ["traffic"] and kind in ROW_SHAPE:
        return ROW
    if kind == "extra_forbidden":
        key = shorten_middle(str(path[-1]), LONGEST_KEY)
        return f"unknown key `{key}`{nearest(key, known_keys(path[:-1], model))}"
    if kind == "missing":
        return f"`{path[-1]}` is needed and missing"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(detail["ctx"]["expected"]))
        return f"{_quoted(got)} is not one of {', '.join(choices)}{nearest(str(got)[:80], choices)}"
    if kind in LIMITS:
        word, key = LIMITS[kind]
        limit = detail["ctx"][key]
        number = f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
        return f"is {_quoted(got)}; it must be {word} {number}"
    if kind == "finite_number":
        return f"is {got}; a finite number is needed"
    shown = _shown(got)
    for word, need in NEEDS.items():
        if kind.startswith(word):
            return f"is {shown}; {need} is needed"
    return f"is {shown}: {detail['msg']}"


def _shown(value: object) -> str:
    """A value for a message: a short one as written, else what kind of value it is."""
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str | int | float) else kind_of(value)


def _quoted(value: object) -> str:
    """A value as written, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def kind_of(value: object) -> str:
    """What a parsed value is, in words."""
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
    # In place of a list, one of its entries may be given alone.
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
