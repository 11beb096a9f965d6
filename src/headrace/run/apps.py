"""Applications: Python files that hold a function `topology(..)`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.modules import load_module
from headrace.model.nearest import nearest
from headrace.model.topology import Topology


def load(app: str) -> ModuleType:
    """The application's module: a file, or by name one of the examples."""
    file = Path(app)
    if file.suffix != ".py":
        known = {path.stem.replace("_", "-"): path for path in sorted(examples().glob("*.py"))}
        if app not in known:
            raise InvalidInput(
                f"there is no application `{app}`{nearest(app, list(known))}; "
                f"there are {', '.join(known)}, or name a .py file"
            )
        file = known[app]
    if not file.exists():
        raise InvalidInput(f"{app}: no such file")
    module = load_module(f"headrace_app_{file.stem}", file)
    from headrace.run.internals import send_by_value  # on demand: it needs Spark

    send_by_value(module)
    return module


def examples() -> Path:
    """The folder of the example applications, from the installed package or the source tree."""
    package = Path(__file__).parents[1]
    folders = (root / "examples" / "apps" for root in (package, package.parents[1]))
    return next((folder for folder in folders if folder.exists()), package)


def topology_of(module: ModuleType, options: Mapping[str, Any]) -> Topology:
    """The topology that an application makes with these options."""
    make = getattr(module, "topology", None)
    if make is None:
        raise InvalidInput(
            f"{module.__file__}: has no function `topology`; "
            "an application has one that gives a Topology"
        )
    known = inspect.signature(make).parameters
    for name in options:
        if name not in known:
            raise InvalidInput(
                f"the application has no option `{name}`{nearest(name, list(known))}; "
                f"it has {', '.join(known) or 'none'}"
            )
    made = make(**options)
    if not isinstance(made, Topology):
        raise InvalidInput(
            f"{module.__file__}: `topology` gave {type(made).__name__}; a Topology is needed"
        )
    made.check_runnable()
    return made
