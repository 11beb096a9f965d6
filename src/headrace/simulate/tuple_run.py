"""One run tuple by tuple, with the events of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model.arrays import Floats
from headrace.model.problem import Assignment, Problem
from headrace.model.simulation_sections import Event
from headrace.simulate.arrivals import Curve, with_factors
from headrace.simulate.events import actions_of
from headrace.simulate.track import Track
from headrace.simulate.tuple_by_tuple import run_tuples


def run_with_events(
    problem: Problem,
    assignment: Assignment,
    ends: Floats,
    curve: Curve,
    events: Sequence[Event],
    plans: Mapping[str, Assignment],
    seed: int,
) -> tuple[Track, list[str], Curve]:
    """What happens, what is said of it, and the rates that were given."""
    actions, factors, notes = actions_of(problem, assignment, events, plans)
    curve = with_factors(curve, factors) if len(factors) > 1 else curve
    track = run_tuples(problem, assignment, ends=ends, curve=curve, actions=actions, seed=seed)
    return track, notes, curve
