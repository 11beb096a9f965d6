"""What `options: {simulate: ..}` of a file says."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest
from headrace.model.problem import Problem

BATCHES = ("queue", "merge")
LEAST = {"key_skew": 0.0, "keys": 1.0, "batch_size": 1.0, "batch_gap_s": 0.0}


@dataclass(frozen=True, slots=True)
class Options:
    """How keys are spread, and how an engine makes batches."""

    key_skew: float = 0.0  # the k-th key comes as often as k^-skew
    keys: float = 1000.0
    batches: str = "queue"  # or merge: a batch takes all that has arrived
    batch_size: float = math.inf  # tuples
    batch_gap_s: float = 0.0  # from the end of a batch to the start of the next


def options_of(problem: Problem) -> Options:
    """The options, checked."""
    given = problem.options.get("simulate", {})
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            hint = nearest(name, known) or f"; there are: {', '.join(known)}"
            raise InvalidInput(f"options.simulate has no `{name}`{hint}")
    found: dict[str, Any] = {
        name: value if name == "batches" else _number(name, value) for name, value in given.items()
    }
    options = Options(**found)
    if options.batches not in BATCHES:
        raise InvalidInput(f"options.simulate.batches is `{options.batches}`; it is queue or merge")
    return options


def _number(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not number >= LEAST[name]:
        raise InvalidInput(
            f"options.simulate.{name} is `{value}`; a number of at least {LEAST[name]:g} is needed"
        )
    return number
