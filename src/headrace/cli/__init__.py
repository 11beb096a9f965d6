"""The command line: every command reads, calls and writes.

Heavy imports happen inside the command that needs them.
"""

from headrace.cli import (
    choices,
    export,
    files,
    fleet,
    laboratory,
    moving,
    observing,
    plans,
    run,
)
from headrace.cli.shared import main

__all__ = [
    "choices",
    "export",
    "files",
    "fleet",
    "laboratory",
    "main",
    "moving",
    "observing",
    "plans",
    "run",
]
