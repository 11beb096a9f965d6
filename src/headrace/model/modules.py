"""Python files as modules, for files that no package holds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from headrace.errors import InvalidInput


def load_module(name: str, file: Path) -> ModuleType:
    """The file, run as a module of this name; frozen dataclasses look it up in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{file}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
