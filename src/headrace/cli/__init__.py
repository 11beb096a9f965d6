"""The command line: every command reads, calls the library and writes.

Heavy imports happen inside the command that needs them.
"""

from headrace.cli import (
    choices,
    demo,
    export,
    files,
    fleet,
    laboratory,
    moving,
    observing,
    plans,
    run,
    schedulers,
)
from headrace.cli.shared import main

__all__ = [
    "choices",
    "demo",
    "export",
    "files",
    "fleet",
    "laboratory",
    "main",
    "moving",
    "observing",
    "plans",
    "run",
    "schedulers",
]
