"""The command line: every command reads, calls and writes. Heavy imports happen inside the command that needs them."""

from headrace.cli import choices, files, laboratory, moving, observing, plans, running
from headrace.cli.shared import main

__all__ = ["choices", "files", "laboratory", "main", "moving", "observing", "plans", "running"]
