"""Where the example files lie: inside the installed package, or in the source tree."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import InvalidInput


def example(*names: str) -> Path:
    """An example file by its folder and name."""
    package = Path(__file__).parents[1]
    for examples in (package / "examples", package.parents[1] / "examples"):
        file = examples.joinpath(*names)
        if file.exists():
            return file
    raise InvalidInput(f"the example {'/'.join(names)} is missing; install headrace again")
