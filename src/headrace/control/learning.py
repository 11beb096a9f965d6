"""What the loop learns from its own decisions: predicted against measured.

A decision says what its plan will do. The next one, if about as much came in meanwhile, says what
it did. Predictions that were wrong widen what a move must gain; a plan that did worse than
predicted, and worse than the one before, is taken back once and not tried again until the nodes or
the input change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from headrace.control.history import Entry

# Figures that are predicted and can be measured, the most telling first; whether more is better.
COMPARED = {
    "batch_seconds": False,
    "max_rate": True,
    "inter_node_traffic": False,
    "inter_worker_traffic": False,
}
SAME_RATE = 0.1  # two inputs that differ by less are compared
RECENT = 5  # outcomes that the margin looks at
MOST_ERROR = 0.2  # that one of them counts: a single surprise must not stop all moves
NOISE = 0.05  # a figure that got worse by less did not get worse


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision that was carried out."""

    entry: Entry
    figure: str
    predicted: float
    measured: float
    before: float | None  # the same, measured under the plan that was left
    # All figures that were predicted and measured: what was, and what is.
    figures: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )

    @property
    def error(self) -> float:
        """By which share it was worse than predicted; below 0: better."""
        return worsening(self.figure, self.predicted, self.measured)

    @property
    def got_worse(self) -> bool:
        """Whether it did worse than predicted, and worse than the plan before it.

        A figure that was to get worse, for another to get better, is no disappointment.
        """
        if self.before is None or worsening(self.figure, self.before, self.predicted) > NOISE:
            return False
        return self.error > NOISE and worsening(self.figure, self.before, self.measured) > NOISE


def worsening(figure: str, before: float, after: float) -> float:
    """By which share a figure is worse than another."""
    good, bad = (after, before) if COMPARED[figure] else (before, after)
    return bad / good - 1 if good > 0 else 0.0


def outcomes(history: Sequence[Entry]) -> list[Outcome]:
    """What came of each decision that was carried out and could be measured, oldest first."""
    found: list[Outcome] = []
    for i, entry in enumerate(history):
        if not entry.applied:
            continue
        later = _next_measured(history[i + 1 :])
        if later is None or not same_rate(entry.rate_per_s, later.rate_per_s):
            continue
        figure = _figure(entry.after, later.measured)
        if figure is not None:
            predicted, measured = float(entry.after[figure]), later.measured[figure]
            before = entry.measured.get(figure)
            both = {
                name: (float(entry.after[name]), later.measured[name])
                for name in COMPARED
                if entry.after.get(name) is not None and later.measured.get(name) is not None
            }
            found.append(Outcome(entry, figure, predicted, measured, before, both))
    return found


def _next_measured(following: Sequence[Entry]) -> Entry | None:
    """The first decision with measurements, if no other plan came into force before it."""
    for entry in following:
        if entry.measured:
            return entry
        if entry.applied:
            return None
    return None


def _figure(predicted: Mapping[str, Any], measured: Mapping[str, float]) -> str | None:
    return next((f for f in COMPARED if predicted.get(f) and measured.get(f)), None)


def same_rate(a: float, b: float) -> bool:
    """Whether about as much came in."""
    return abs(a - b) <= SAME_RATE * max(a, b)


def prediction_error_percent(history: Sequence[Entry]) -> float:
    """By how much the newest predictions were wrong, in the mean."""
    errors = [min(abs(one.error), MOST_ERROR) for one in outcomes(history)][-RECENT:]
    return 100 * fmean(errors) if errors else 0.0


def plan_to_take_back(history: Sequence[Entry]) -> Outcome | None:
    """The newest move, if a rule wanted it, it got worse, and it was not taken back before."""
    last = next((entry for entry in reversed(history) if entry.applied), None)
    if last is None or last.cause != "rule" or not last.left:
        return None
    if any(entry.cause == "back" and entry.left == last.plan for entry in history):
        return None
    outcome = next((o for o in reversed(outcomes(history)) if o.entry is last), None)
    return outcome if outcome is not None and outcome.got_worse else None


def is_barred(history: Sequence[Entry], plan: str, rate_per_s: float, nodes: str) -> bool:
    """Whether a plan was taken back on the same nodes with about the same input."""
    return any(
        entry.cause == "back"
        and entry.left == plan
        and entry.nodes == nodes
        and same_rate(entry.rate_per_s, rate_per_s)
        for entry in history
    )
