"""The front door: a plan, some seconds, some runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headrace.errors import InvalidInput, Unsupported
from headrace.model.arrays import Floats
from headrace.model.load_aware import settle
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.simulation_sections import Event
from headrace.simulate.arrivals import Curve, rate_curve
from headrace.simulate.confidence import warm_up_spans
from headrace.simulate.options import options_of
from headrace.simulate.result import Simulation
from headrace.simulate.track import Track

SPANS = 200  # notes in a run
DEFAULT_S = 60.0
DETAILS = ("tuple", "fluid", "batch")
RUN_STEP = 0x5DEECE66D  # between the seeds of runs

Run = tuple[Track, list[str], Curve]  # what happened, what is said of it, the rates that were given
Spread = Callable[[Callable[[int], Run], Sequence[int]], list[Run]]  # who does the runs of seeds


def one_by_one(work: Callable[[int], Run], seeds: Sequence[int]) -> list[Run]:
    """All runs here, one after another."""
    return [work(seed) for seed in seeds]


def simulate(
    problem: Problem,
    assignment: Assignment,
    *,
    scheduler: str = "given",
    seconds: float = DEFAULT_S,
    warm_up: float | None = None,
    runs: int = 1,
    seed: int = 0,
    detail: str = "tuple",
    events: Sequence[Event] = (),
    plans: Mapping[str, Assignment] | None = None,
    spread: Spread = one_by_one,
) -> Simulation:
    """Simulate a plan: tuple by tuple, as a fluid, or batch by batch.

    `warm_up` seconds are left out of the summary; absent, as many as the MSER rule says, and none
    where rates or events change on the way. `plans` are those that events name. `spread` may hand
    the runs to other processes.
    """
    check(problem, assignment, seconds, warm_up, runs, detail)
    problem = _without_acks_to_spouts(problem)
    if detail != "tuple":  # there, routes follow every change of plan
        problem = settle(problem, assignment)
    ends = np.linspace(seconds / SPANS, seconds, SPANS)
    if detail == "fluid":
        from headrace.simulate.fluid import run_fluid as run_one
    elif detail == "batch":
        from headrace.simulate.batches import run_batches as run_one
    else:
        from headrace.simulate.tuple_run import run_with_events as run_one

    def run(of: int) -> Run:
        curve = rate_curve(problem, seconds, of)
        return run_one(problem, assignment, ends, curve, list(events), plans or {}, of)

    count = 1 if detail == "fluid" else runs
    found = spread(run, [(seed + i * RUN_STEP) % 2**63 for i in range(count)])
    tracks = [track for track, _, _ in found]
    notes = [note for _, said, _ in found for note in said]
    steady = not events and all(len(curve) == 1 for _, _, curve in found)
    cut = warm_up if warm_up is not None else _warm_up(tracks, ends) if steady else 0.0
    return Simulation(
        scheduler,
        problem,
        assignment,
        seed,
        detail,
        cut,
        tuple(tracks),
        tuple(dict.fromkeys(notes)),
    )


def _without_acks_to_spouts(problem: Problem) -> Problem:
    """The problem without what goes back to spouts: it ends there, and nobody waits for it."""
    streams = tuple(s for s in problem.streams if not problem.spout[s.target])
    return problem if len(streams) == len(problem.streams) else replace(problem, streams=streams)


def check(
    problem: Problem,
    assignment: Assignment,
    seconds: float,
    warm_up: float | None,
    runs: int,
    detail: str,
) -> None:
    """Refuse what cannot be simulated."""
    if not (seconds > 0 and np.isfinite(seconds)):
        raise InvalidInput(f"{seconds:g} seconds cannot be simulated; more than 0 are needed")
    if warm_up is not None and not 0 <= warm_up < seconds:
        raise InvalidInput(
            f"a warm-up of {warm_up:g} s leaves nothing of {seconds:g} simulated seconds"
        )
    if runs < 1:
        raise InvalidInput(f"{runs} runs: at least 1 is needed")
    if detail not in DETAILS:
        raise InvalidInput(f"no detail `{detail}`; there are: {', '.join(DETAILS)}")
    if not (problem.spout & (problem.rate > 0)).any():
        raise Unsupported(
            "nothing arrives: no component is a spout with a rate", fix="give a spout a `rate`"
        )
    options_of(problem)
    if (assignment.node == UNPLACED).all():
        raise InvalidInput("no task is placed, so there is nothing to simulate")


def _warm_up(tracks: Sequence[Track], ends: Floats) -> float:
    """The seconds that the MSER rule cuts off, by the mean latency over time."""
    total = np.sum([t.completed for t in tracks], axis=0)
    latency = np.sum([t.latency_ms for t in tracks], axis=0)
    known = total > 0
    if known.sum() < 4:
        return 0.0
    mean = np.interp(ends, ends[known], latency[known] / total[known])
    cut = warm_up_spans(mean)
    return float(ends[cut - 1]) if cut else 0.0
