"""What is asked of an algorithm besides its problem: one object, handed over whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from headrace.model.progress import stop_wished


@dataclass(frozen=True, slots=True)
class Request:
    """What an algorithm gets as its second argument; it reads what it needs."""

    objective: str = "traffic"  # traffic, network, rate, batch, nodes or balance
    seed: int = 0
    steps: int | None = None  # of search; None: as many as the problem's size asks for
    deadline: Callable[[], bool] | None = None  # asked now and then: is time up?
    rate: float | None = None  # tuples/s over all spouts that must be carried; None: the most
    budget: float | None = None  # cost per time unit that machines may have


DEFAULT_REQUEST = Request()


@dataclass(slots=True)
class Deadline:
    """Says whether time is up, and remembers that it did, for the report."""

    seconds: float | None
    clock: Callable[[], float] = time.perf_counter
    start: float = -1.0
    passed: bool = False

    def __post_init__(self) -> None:
        if self.start < 0:
            self.start = self.clock()

    def __call__(self) -> bool:
        late = self.seconds is not None and self.elapsed >= self.seconds
        self.passed = late or stop_wished()
        return self.passed

    @property
    def stopped(self) -> str:
        """What ended the work, as a report says it."""
        if stop_wished():
            return "interrupted"
        return "seconds" if self.passed else "done"

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.start

    @property
    def left(self) -> float | None:
        """Seconds until the time is up, at least 0; None where there is no limit."""
        return None if self.seconds is None else max(self.seconds - self.elapsed, 0.0)


def seconds_left(deadline: Callable[[], bool] | None) -> float | None:
    """How long a solver that cannot ask a deadline may take; None where that is not known."""
    return deadline.left if isinstance(deadline, Deadline) else None


def share_of(deadline: Callable[[], bool] | None, share: float) -> Callable[[], bool] | None:
    """A deadline after a share of what is left; the same where that is not known."""
    if not isinstance(deadline, Deadline) or deadline.left is None:
        return deadline
    return Deadline(share * deadline.left, deadline.clock)
