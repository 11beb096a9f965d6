"""What algorithms there are, where they come from, and how one is called.

An algorithm is a function. Ours are listed in the literal dict of their folder, those of installed
packages in the entry-point groups `headrace.place`, `headrace.size`, `headrace.provision`,
`headrace.move` and `headrace.rule` (when to move, for the loop); any other is named as
`package.module:function` or handed over as it is.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest
from headrace.model.request import Request

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Each has a package with a dict SCHEDULERS.
FOLDERS = {
    "place": "headrace.place",
    "size": "headrace.size",
    "provision": "headrace.provision",
    "move": "headrace.move",
    "rule": "headrace.control.rules",
}
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
HEADINGS = ("Source", "Maturity", "Guards", "Differs", "Ceiling", "Objectives")

By = str | Callable[..., Any]  # a name, `package.module:function`, or the function itself


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
    ceiling: str  # the resource that it fills up to a ceiling of its own, whatever the headroom
    objectives: tuple[str, ...]  # it can plan for; empty: it plans the same whatever is asked


@dataclass(frozen=True)
class Algorithm:
    """A function that can be called, and what it is called in reports."""

    name: str
    function: Callable[..., Any]
    ours: bool = True

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What the function takes."""
        try:
            return inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            raise InvalidInput(f"{self.name} is not a function that can be called") from None

    @property
    def takes_request(self) -> bool:
        """Whether its second argument is the `Request`, not an option with a default."""
        second = [p for p in self.parameters.values() if p.kind in POSITIONAL][1:2]
        return bool(second) and not self._is_option(second[0])

    @staticmethod
    def _is_option(parameter: inspect.Parameter) -> bool:
        """Whether a parameter is one of the algorithm's own: keyword-only, or with a default."""
        if parameter.kind is parameter.KEYWORD_ONLY:
            return True
        given = parameter.default is not parameter.empty
        return parameter.kind in POSITIONAL and given and not isinstance(parameter.default, Request)

    def __call__(
        self, subject: Any, request: Request | None = None, options: Mapping[str, object] = {}
    ) -> Any:
        """What the function gives for a problem, a workload or a change of plans."""
        asked = (request,) if self.takes_request and request is not None else ()
        return self.function(subject, *asked, **self.checked_options(options))

    def checked_options(self, options: Mapping[str, object]) -> dict[str, Any]:
        """Its own options as it wants them, or a refusal that names the wrong one."""
        if any(p.kind is p.VAR_KEYWORD for p in self.parameters.values()):
            return dict(options)
        own = [name for name, p in self.parameters.items() if self._is_option(p)]
        for key in options:
            if key not in own:
                has = f"its options are: {', '.join(own)}" if own else "it has none"
                raise InvalidInput(f"{self.name} has no option `{key}`{nearest(key, own)}; {has}")
        hints = get_type_hints(inspect.unwrap(self.function)) if options else {}
        return {
            key: _typed(self.name, key, value, hints.get(key)) for key, value in options.items()
        }


def entries(folder: str | None = None) -> list[Entry]:
    """Every algorithm of a folder, or of all: ours in the order of their dict, then plug-ins."""
    found: list[Entry] = []
    for name in FOLDERS:
        if folder in (None, name):
            found += [_introduction(key, name, module) for key, module in _ours(name).items()]
            found += [
                _introduction(point.name, name, point.module) for point in _plug_ins(name).values()
            ]
    return found


def names(folder: str) -> list[str]:
    """What the algorithms of a folder are called."""
    return [*_ours(folder), *_plug_ins(folder)]


def find(folder: str, by: By) -> Algorithm:
    """The algorithm behind a name, a `package.module:function`, or a function."""
    if not isinstance(by, str):
        return Algorithm(getattr(by, "__name__", type(by).__name__), by, ours=False)
    ours = _ours(folder)
    if by in ours:
        module = ours[by]
        return Algorithm(by, getattr(importlib.import_module(module), module.rsplit(".", 1)[1]))
    if by in (plug_ins := _plug_ins(folder)):
        return Algorithm(by, _load(plug_ins[by].value), ours=False)
    if ":" in by:
        return Algorithm(by, _load(by), ours=False)
    known = names(folder)
    what = "rule" if folder == "rule" else "scheduler"
    place = "" if folder == "rule" else f" in {folder}"
    raise InvalidInput(
        f"no {what} `{by}`{place}{nearest(by, known)}; there are: {', '.join(known)}, "
        "or name yours as package.module:function"
    )


def introduction(folder: str, by: By) -> Entry:
    """How an algorithm introduces itself: in its own docstring, or in that of its file."""
    found = find(folder, by)
    function = inspect.unwrap(found.function)
    module, own = getattr(function, "__module__", ""), inspect.getdoc(function) or ""
    headed = any(line.startswith(HEADINGS) for line in own.splitlines())
    if headed or _source(module) is None:
        return _entry(found.name, folder, module, own)
    text = inspect.getdoc(importlib.import_module(module)) or ""
    return _entry(found.name, folder, module, text)


def options_of(folder: str) -> dict[str, list[str]]:
    """The options of our algorithms with their defaults, read without importing them."""
    return {name: _options_in(module) for name, module in _ours(folder).items()}


def _options_in(module: str) -> list[str]:
    source = _source(module)
    tree = ast.parse("" if source is None else source.read_text(encoding="utf-8"))
    wanted = module.rsplit(".", 1)[1]
    for item in tree.body:
        if isinstance(item, ast.FunctionDef) and item.name == wanted:
            named = zip(item.args.kwonlyargs, item.args.kw_defaults, strict=True)
            return [f"{a.arg}={ast.unparse(d)}" if d else a.arg for a, d in named]
    return []


def _ours(folder: str) -> Mapping[str, str]:
    return importlib.import_module(FOLDERS[folder]).SCHEDULERS


def _plug_ins(folder: str) -> dict[str, EntryPoint]:
    """Algorithms of installed packages; ours come first where names are the same."""
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=f"headrace.{folder}")}
    return {name: found[name] for name in sorted(found) if name not in _ours(folder)}


def _load(reference: str) -> Callable[..., Any]:
    """The function that `package.module:function` names; modules of this folder are found too."""
    module, _, function = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"`{reference}`: there is no module `{error.name}`") from None
    loaded: Any = found
    for name in function.split("."):
        loaded = getattr(loaded, name, None)
    if not callable(loaded):
        known = [name for name, value in vars(found).items() if inspect.isfunction(value)]
        raise InvalidInput(
            f"`{reference}`: {module} has no function `{function}`{nearest(function, known)}"
        )
    return loaded


def _introduction(name: str, folder: str, module: str) -> Entry:
    """Read a module's introduction without importing it: it may need a heavy library."""
    source = _source(module)
    if source is None:
        raise InvalidInput(f"the scheduler `{name}` is registered, but there is no module {module}")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return _entry(name, folder, module, text)


def _source(module: str) -> Path | None:
    """The file of a module; None for one that has none, such as a notebook's."""
    try:
        spec = importlib.util.find_spec(module)
    except (ValueError, ModuleNotFoundError):
        return None
    found = Path(spec.origin) if spec is not None and spec.origin is not None else None
    return found if found is not None and found.suffix == ".py" else None


def _entry(name: str, folder: str, module: str, text: str) -> Entry:
    """What an introduction says."""
    fields = dict.fromkeys(HEADINGS, "")
    key = ""
    for line in text.splitlines()[1:]:
        word = line.split(" ", 1)[0]
        if word in fields:
            key, fields[word] = word, line.removeprefix(word).strip()
        elif key and line.startswith(" "):
            fields[key] += " " + line.strip()
        elif line.strip():
            key = ""
    *said, objectives = (fields[heading] for heading in HEADINGS)
    known = tuple(objectives.replace(",", " ").split())
    return Entry(name, folder, module, text.split("\n", 1)[0], *said, objectives=known)


def _typed(name: str, key: str, value: object, hint: Any) -> object:
    """An option's value as its algorithm wants it."""
    if hint is None:
        return value
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            wanted = ", ".join(map(str, get_args(hint)))
            raise InvalidInput(f"{name}: option {key} is {value!r}; it must be one of {wanted}")
        return value
    choices = [hint, *get_args(hint)]
    if value is None and type(None) in choices:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if float in choices and number:
        return float(value)  # pyright: ignore[reportArgumentType]
    for kind, fits in (
        (bool, isinstance(value, bool)),
        (int, number and value == int(value)),  # pyright: ignore[reportArgumentType]
        (str, isinstance(value, str)),
    ):
        if kind in choices and fits:
            return kind(value)  # pyright: ignore[reportArgumentType]
    wanted = " or ".join(
        getattr(choice, "__name__", str(choice)) for choice in choices if choice is not type(None)
    )
    raise InvalidInput(f"{name}: option {key} is {value!r}; {wanted} is needed")
