"""The command line: every command reads, calls the library and writes.

Heavy imports happen inside the command that needs them.
"""

import atexit
import gc
import os

# While hundreds of modules load, there is nothing to collect, and no plug-in of pydantic to find;
# at the end, looking through all of them once more would take a fifth of a short command.
gc.set_threshold(200_000)
atexit.register(gc.freeze)
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

from headrace.cli import (
    advising,
    choices,
    comparing,
    deciding,
    demo,
    export,
    files,
    fleet,
    laboratory,
    moving,
    observing,
    plans,
    profiling,
    run,
    schedulers,
    simulating,
    storm,
)
from headrace.cli.shared import main

__all__ = [
    "advising",
    "choices",
    "comparing",
    "deciding",
    "demo",
    "export",
    "files",
    "fleet",
    "laboratory",
    "main",
    "moving",
    "observing",
    "plans",
    "profiling",
    "run",
    "schedulers",
    "simulating",
    "storm",
]
