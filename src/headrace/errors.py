"""Everything Headrace refuses, and why.

HeadraceError
├── InvalidInput   the file is wrong: fix the file
├── Unsupported    this algorithm cannot do it: choose another algorithm
└── Infeasible     it does not fit: add machines or lower the load
"""

from __future__ import annotations

import re
from typing import ClassVar

LONG_WORD = re.compile(r"(\S{100})\S{60,}(\S{40})")  # of 200 characters or more


class HeadraceError(Exception):
    """A stated refusal: the thing, the need and what there is."""

    kind: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        task: str | None = None,
        resource: str | None = None,
        needed: float | None = None,
        available: float | None = None,
        fix: str | None = None,
    ) -> None:
        message = cut_long_words(message)
        super().__init__(message)
        self.message = message
        self.task = task
        self.resource = resource
        self.needed = needed
        self.available = available
        self.fix = fix

    def fields(self) -> dict[str, object]:
        """The refusal as the contract's `error` object."""
        return {
            "kind": self.kind,
            "message": self.message,
            "task": self.task,
            "resource": self.resource,
            "needed": self.needed,
            "available": self.available,
            "fix": self.fix,
        }


class InvalidInput(HeadraceError):
    """A file or an option says something that cannot be meant."""

    kind = "invalid-input"


class Unsupported(HeadraceError):
    """The chosen algorithm does not apply to this problem."""

    kind = "unsupported"


class Infeasible(HeadraceError):
    """No complete plan exists, or the algorithm found none."""

    kind = "infeasible"


def cut_long_words(text: str) -> str:
    """The text with the middle of very long words left out: a file may have keys of any length."""
    return LONG_WORD.sub(r"\1…\2", text)
