"""What Storm's executors, messages and workers cost in CPU, fitted over all plans that were seen.

A component's cost is per tuple, but an executor has more to do for a tuple that leaves its worker:
it serialises it. Threads of both workers then carry it, and a worker has threads that take CPU
though nothing comes. Under one plan these cannot be told apart; what the hook times is a first
guess. Every further plan sends other tuples, and the guesses give way to what fits all plans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace.model.arrays import Floats
from headrace.storm.spent import (
    executor_points,
    messaging_by_worker,
    serialising_ms,
    waiting_by_worker,
)
from headrace.storm.state import SYSTEM, State, named_executors

LEAST_PER_S = 50.0  # tuples between workers: of fewer, timers make the price
LEAST_POINTS = 0.3  # below, an executor's CPU is noise
BELIEF = 0.1  # weight of a first guess: of a measured value, errors of a tenth are usual
MOST_TIMES = 3.0  # that sending takes of what was timed: a median of samples is not so far off
MOST_SEEN = 8  # plans
PRICES = ("own_cpu_ms", "carry_cpu_ms", "worker_cpu")


@dataclass(frozen=True, slots=True)
class Load:
    """An executor under a plan."""

    component: str
    machine_type: str
    rate_per_s: float  # as profiles have it: what it gets, or what a spout emits
    sent_per_s: float  # to other workers
    serialising_ms: float  # a second, by what was timed
    points: float


@dataclass(frozen=True, slots=True)
class Messages:
    """A worker under a plan: tuples it sent to others or got from them, and what that took."""

    carried_per_s: float
    ms_per_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What a plan was measured to cost."""

    plan: str
    executors: tuple[Load, ...]
    workers: tuple[Messages, ...]
    waiting_ms: float  # a second, of a worker's thread that looks for messages to send

    @staticmethod
    def read(content: Mapping[str, Any]) -> Seen:
        return Seen(
            content["plan"],
            tuple(Load(**row) for row in content["executors"]),
            tuple(Messages(**row) for row in content["workers"]),
            content["waiting_ms"],
        )


def read_seen(measured: Mapping[str, Any]) -> list[Seen]:
    """The plans seen so far; none if another version wrote them down."""
    try:
        return [Seen.read(one) for one in measured.get("seen", ())]
    except (KeyError, TypeError):
        return []


def learn_costs(
    folder: Path,
    state: State,
    measured: Mapping[str, Any],
    before: Mapping[str, Any],
    since_ms: float = 0.0,
) -> dict[str, Any]:
    """What was measured, with costs that fit this plan and those seen before it.

    `profile` is without what sending takes. A tuple to another worker costs its sender
    `own_cpu_ms`, and both workers `carry_cpu_ms`; a worker that gets none takes `worker_cpu`
    points. `seen` is for the next time. Traffic is of the places that the state has.
    """
    traffic = measured.get("traffic", ())
    now = see_plan(folder, state, traffic, since_ms)
    past = [one for one in read_seen(before) if one.plan != now.plan and same_topologies(one, now)]
    seen = [*past, now][-MOST_SEEN:]
    found = {**measured, "seen": [asdict(one) for one in seen]}
    worker_ms, carry_ms = fit_workers(seen)
    if carry_ms is None:  # a plan that sends hardly anything is not to be left for want of a price
        return {**{name: before[name] for name in PRICES if name in before}, **found}
    profile, times = fit_executors(measured.get("profile", {}), seen)
    own_ms = times * timed_ms(seen)
    found |= {"own_cpu_ms": own_ms, "carry_cpu_ms": carry_ms, "worker_cpu": worker_ms / 10}
    return {**found, "profile": profile} if profile else found


def see_plan(folder: Path, state: State, traffic: Sequence[Sequence[Any]], since_ms: float) -> Seen:
    """Rates and CPU of every executor and worker, where they are now."""
    place = {name: state.place_of(executor) for name, executor in named_executors(state)}
    got, emitted = dict.fromkeys(place, 0.0), dict.fromkeys(place, 0.0)
    sent, carried = dict.fromkeys(place, 0.0), dict.fromkeys(place.values(), 0.0)
    for source, target, rate, *_ in traffic:
        if source not in place or target not in place:
            continue
        if not is_system(component_of(source)):  # answers of ackers are no input of a spout
            got[target] += rate
        if not is_system(component_of(target)):
            emitted[source] += rate
        if place[source] != place[target]:
            sent[source] += rate
            carried[place[source]] += rate
            carried[place[target]] += rate
    bolts = {component_of(name) for name, rate in got.items() if rate > 0}
    timed = serialising_ms(folder, state, since_ms)
    executors = [
        Load(
            component_of(name),
            machine_type or "*",
            got[name] if component_of(name) in bolts else emitted[name],
            sent[name],
            sent[name] * timed.get(component_of(name), 0.0),
            points,
        )
        for name, (machine_type, points) in executor_points(folder, state, since_ms).items()
        if name in place
    ]
    spent = messaging_by_worker(folder, state, since_ms)
    waiting = waiting_by_worker(folder, state, since_ms)
    workers = [Messages(carried.get(worker, 0.0), ms) for worker, ms in spent.items()]
    return Seen(
        name_plan(state),
        tuple(executors),
        tuple(workers),
        min(waiting.values(), default=0.0),
    )


def name_plan(state: State) -> str:
    """The same for the same places of the same topologies; another once one is submitted again."""
    ids = ",".join(sorted(running.id for running in state.topologies))
    places = sorted(
        f"{name}@{state.place_of(executor)}" for name, executor in named_executors(state)
    )
    return f"{ids} {hashlib.sha256(' '.join(places).encode()).hexdigest()[:16]}"


def same_topologies(one: Seen, other: Seen) -> bool:
    return one.plan.split(" ")[0] == other.plan.split(" ")[0]


def fit_workers(seen: Sequence[Seen]) -> tuple[float, float | None]:
    """Milliseconds a second of a worker at rest, and per tuple that it sends or gets."""
    workers = [worker for one in seen for worker in one.workers if worker.ms_per_s > 0]
    if sum(worker.carried_per_s for worker in workers) < 2 * LEAST_PER_S:
        return 0.0, None
    spent = np.array([worker.ms_per_s for worker in workers])
    columns = np.column_stack([np.ones(len(workers)), [w.carried_per_s for w in workers]])
    rest = min(one.waiting_ms for one in seen)
    rows, values = columns / spent[:, None], np.ones(len(workers))
    if rest > 0:
        rows = np.vstack([rows, [BELIEF / rest, 0.0]])
        values = np.append(values, BELIEF)
    fixed, each = solve_bounded(rows, values).tolist()
    return fixed, each


def fit_executors(
    profile: Mapping[str, Mapping[str, Any]], seen: Sequence[Seen]
) -> tuple[dict[str, dict[str, Any]], float]:
    """The profile without serialising, and how many times what was timed that takes.

    Given the latter, every component is a line of its own.
    """
    from scipy.optimize import minimize_scalar  # here: slow to load

    guesses = first_guesses(profile, seen[-1])
    loads: dict[tuple[str, str], list[Load]] = {kind: [] for kind in guesses}
    for one in seen:
        for load in one.executors:
            loads.get((load.component, load.machine_type), []).append(load)

    def lines(times: float) -> dict[tuple[str, str], tuple[float, float, float]]:
        return {kind: fit_line(loads[kind], guesses[kind], times) for kind in guesses}

    def error(times: float) -> float:
        return sum(line[2] for line in lines(times).values()) + (BELIEF * (times - 1)) ** 2

    best: Any = minimize_scalar(error, bounds=(0.0, MOST_TIMES), method="bounded")
    times = float(best.x)
    found = lines(times)
    fitted = {
        name: {
            kind: {**cost, "cpu_ms": found[(name, kind)][0], "cpu_fixed": found[(name, kind)][1]}
            for kind, cost in costs.items()
        }
        for name, costs in profile.items()
    }
    return fitted, times


def fit_line(
    loads: Sequence[Load], guess: tuple[float, float], times: float
) -> tuple[float, float, float]:
    """Milliseconds a tuple and points at rest, and the square error, of executors of one kind."""
    rate = np.array([load.rate_per_s for load in loads]) / 10
    points = np.array([load.points for load in loads])
    serialising = times * np.array([load.serialising_ms for load in loads]) / 10
    weight = 1 / np.maximum(points, LEAST_POINTS)
    believed = BELIEF / max(mean(points.tolist()), LEAST_POINTS)
    beliefs = np.diag([believed * max(mean(rate.tolist()), 1e-6), believed])
    rows = np.vstack([np.column_stack([rate * weight, weight]), beliefs])
    values = np.concatenate([(points - serialising) * weight, beliefs @ guess])
    each, rest = solve_bounded(rows, values)
    return float(each), float(rest), float(((rows @ [each, rest] - values) ** 2).sum())


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def first_guesses(
    profile: Mapping[str, Mapping[str, Any]], now: Seen
) -> dict[tuple[str, str], tuple[float, float]]:
    """Cost per tuple and at rest, of the plan that the profile is of, without serialising."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for name, costs in profile.items():
        own = [load for load in now.executors if load.component == name]
        rate = sum(load.rate_per_s for load in own)
        each = sum(load.serialising_ms for load in own) / rate if rate > 0 else 0.0
        for kind, cost in costs.items():
            found[(name, kind)] = (max(cost["cpu_ms"] - each, 0.0), cost.get("cpu_fixed", 0.0))
    return found


def solve_bounded(rows: Floats, values: Floats) -> Floats:
    """The least squares of what is never negative."""
    from scipy.optimize import nnls  # here: slow to load

    scale = np.maximum(np.abs(rows).max(axis=0), 1e-12)
    return nnls(rows / scale, values)[0] / scale


def timed_ms(seen: Sequence[Seen]) -> float:
    """What serialising a tuple was timed to take, under the newest plan that sent enough."""
    for one in reversed(seen):
        sent = sum(load.sent_per_s for load in one.executors)
        if sent >= LEAST_PER_S:
            return sum(load.serialising_ms for load in one.executors) / sent
    return 0.0


def component_of(task: str) -> str:
    return task.rpartition(".")[0]


def is_system(component: str) -> bool:
    return component.rpartition("/")[2].startswith(SYSTEM)
