"""What algorithms there are, where they come from, and how to call one: read from their files, so nothing is said twice."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from headrace.errors import InvalidInput

FOLDERS = {
    folder: f"headrace.{folder}" for folder in ("place", "size", "provision", "move")
}  # each has SCHEDULERS
GIVEN = (
    "seed",
    "steps",
    "deadline",
    "objective",
    "move_cost",
    "budget",
    "rate",
)  # passed by the planner to algorithms that take them


@dataclass(frozen=True, slots=True)
class Entry:
    """An algorithm, as its file introduces it."""

    name: str
    folder: str
    module: str
    summary: str
    source: str
    maturity: str
    guards: str
    differs: str


def entries(folder: str | None = None) -> list[Entry]:
    """Every algorithm of a folder, or of all, in the order of the registry."""
    found: list[Entry] = []
    for name, package in FOLDERS.items():
        if folder in (None, name):
            schedulers: Mapping[str, str] = importlib.import_module(package).SCHEDULERS
            found += [_entry(key, name, module) for key, module in schedulers.items()]
    return found


def _entry(name: str, folder: str, module: str) -> Entry:
    """Read a module's introduction without importing it: it may need a heavy library."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise InvalidInput(f"the scheduler `{name}` is registered, but there is no module {module}")
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    fields = {"Source": "", "Maturity": "", "Guards": "", "Differs": ""}
    key = ""
    for line in text.splitlines()[1:]:
        word = line.split(" ", 1)[0]
        if word in fields:
            key, fields[word] = word, line.removeprefix(word).strip()
        elif key and line.startswith(" "):
            fields[key] += " " + line.strip()
        elif line.strip():
            key = ""
    return Entry(
        name,
        folder,
        module,
        text.splitlines()[0],
        fields["Source"],
        fields["Maturity"],
        fields["Guards"],
        fields["Differs"],
    )


def algorithm(folder: str, name: str) -> Callable[..., Any]:
    """The function behind a name."""
    schedulers: Mapping[str, str] = importlib.import_module(FOLDERS[folder]).SCHEDULERS
    if name not in schedulers:
        from headrace.model.read import nearest

        raise InvalidInput(
            f"no scheduler `{name}` in {folder}{nearest(name, list(schedulers))}; there are: {', '.join(schedulers)}"
        )
    return getattr(importlib.import_module(schedulers[name]), schedulers[name].rsplit(".", 1)[1])


def arguments(
    name: str,
    function: Callable[..., Any],
    options: Mapping[str, object],
    given: Mapping[str, object],
) -> dict[str, Any]:
    """Keyword arguments for an algorithm: its own options, checked, and of what the planner gives, what it takes."""
    takes = inspect.signature(function).parameters
    own = [
        key
        for key, parameter in takes.items()
        if parameter.kind is parameter.KEYWORD_ONLY and key not in GIVEN
    ]
    hints = get_type_hints(inspect.unwrap(function))
    chosen = {key: value for key, value in given.items() if key in takes}
    for key, value in options.items():
        if key not in own:
            from headrace.model.read import nearest

            has = f"its options are: {', '.join(own)}" if own else "it has none"
            raise InvalidInput(f"{name} has no option `{key}`{nearest(key, own)}; {has}")
        chosen[key] = _typed(name, key, value, hints.get(key))
    return chosen


def _typed(name: str, key: str, value: object, hint: Any) -> object:
    """An option's value as its algorithm wants it."""
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise InvalidInput(
                f"{name}: option {key} is {value!r}; it must be one of {', '.join(map(str, get_args(hint)))}"
            )
        return value
    choices = [hint, *get_args(hint)]
    if value is None and type(None) in choices:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if float in choices and number:
        return float(value)  # pyright: ignore[reportArgumentType]
    for kind, fits in (
        (bool, isinstance(value, bool)),
        (int, number and value == int(value)),
        (str, isinstance(value, str)),
    ):  # pyright: ignore[reportArgumentType]
        if kind in choices and fits:
            return kind(value)  # pyright: ignore[reportArgumentType]
    wanted = " or ".join(
        getattr(choice, "__name__", str(choice)) for choice in choices if choice is not type(None)
    )
    raise InvalidInput(f"{name}: option {key} is {value!r}; {wanted} is needed")
