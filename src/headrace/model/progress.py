"""What long work says while it goes on, and how it is asked to end with what it has.

A process does one thing at a time for one person, so there is one `NOW`. Work writes into it, a
command that someone watches reads it; where nobody does, that costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """What is being done, and how far it is."""

    doing: str = ""
    best: float | None = None  # so far, of the figure that is searched for
    bound: float | None = None  # on it
    stop: bool = False  # someone wants it to end with what it has


NOW = Progress()


def begin(doing: str, best: float | None = None) -> None:
    """Say what is done from now on."""
    NOW.doing, NOW.best, NOW.bound = doing, best, None


def stop_wished() -> bool:
    """Whether to end with what there is; a deadline for work that has no other."""
    return NOW.stop
