"""The files of the demo: a busy word count on the nine-node cluster of Muhammad, tables 4.1 and 4.2."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import InvalidInput


def demo_files() -> tuple[str, ...]:
    """The two files, from the installed package or the source tree."""
    package = Path(__file__).parent
    for examples in (package / "examples", package.parents[1] / "examples"):
        files = [examples / "muhammad" / name for name in ("word-count-busy.yaml", "cluster.yaml")]
        if all(file.exists() for file in files):
            return tuple(str(file) for file in files)
    raise InvalidInput("the demo's files are missing; install headrace again")
