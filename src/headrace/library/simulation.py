"""What a plan will do, simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from headrace.errors import InvalidInput
from headrace.library.verbs import as_plan
from headrace.model.document import FORMAT, Document
from headrace.model.problem import Assignment
from headrace.model.read import File, parse, read_text, validated
from headrace.model.simulation_sections import Event
from headrace.planner import Plan
from headrace.simulate.result import Simulation
from headrace.simulate.simulating import DEFAULT_S, Spread, one_by_one
from headrace.simulate.simulating import simulate as simulate_assignment

SHORT = 1_000_000.0  # tuples that tasks serve in a short simulation
MOST_TASKS = 20_000  # that are simulated tuple by tuple in one

Happening = Event | Mapping[str, Any]


def simulate(
    plan: Plan | str | Path,
    *,
    seconds: float = DEFAULT_S,
    warm_up: float | None = None,
    runs: int = 1,
    workers: int | None = None,
    master: str | None = None,
    seed: int = 0,
    detail: str = "tuple",
    rate_factor: float = 1.0,
    events: Sequence[Happening] | str | Path | None = None,
) -> Simulation:
    """What a plan will do for so many seconds: throughput, latency, queues.

    `detail` is `tuple`, `fluid` (large or long) or `batch` (a micro-batch engine). Events are those
    of the plan's file, or a list of `{"at": 120, "rate": 2.0}`, or a file of them; in a list a plan
    may be a `Plan`. With a `rate_factor` of 2 twice as much arrives.

    Several runs are done by as many processes as there are cores, by `workers` of them, or on the
    Spark cluster of `master`; the result is the same.

    >>> import headrace as hr
    >>> plan = hr.place(hr.example("quickstart.yaml"), by="storm-even")
    >>> result = hr.simulate(plan, seconds=2, rate_factor=0.5)
    >>> result.stable, result.total("entered") == result.total("completed") + result.pending
    (True, True)
    """
    found = as_plan(plan)
    given, plans = _events(found, events)
    return simulate_assignment(
        found.problem if rate_factor == 1.0 else found.problem.scaled(rate_factor),
        found.assignment,
        scheduler=found.scheduler,
        seconds=seconds,
        warm_up=warm_up,
        runs=runs,
        seed=seed,
        detail=detail,
        events=given,
        plans=plans,
        spread=_spread(runs, workers, master),
    )


def _spread(runs: int, workers: int | None, master: str | None) -> Spread:
    """Who does the runs."""
    if runs == 1 and workers is None and master is None:
        return one_by_one
    from headrace.lab.runs import over_cores, over_spark

    if master is None:
        return over_cores(workers)
    from headrace.spark import session

    return over_spark(session(app="headrace-simulate", master=master))


def simulate_shortly(plan: Plan, *, seed: int = 0) -> Simulation:
    """A plan for at most a minute and about a million tuples; as a fluid if it is large."""
    served = float(plan.problem.rate.sum())
    seconds = min(DEFAULT_S, SHORT / served) if served > 0 else DEFAULT_S
    detail = "tuple" if plan.problem.task_count <= MOST_TASKS else "fluid"
    return simulate(plan, seconds=seconds, seed=seed, detail=detail, events=())


def _events(
    plan: Plan, events: Sequence[Happening] | str | Path | None
) -> tuple[list[Event], dict[str, Assignment]]:
    """The events to come, and the plans among them by a name."""
    if events is None:
        document = plan.document or (plan.workload and plan.workload.inputs.document)
        return list((document and document.events) or ()), {}
    if isinstance(events, str | Path):
        return read_events(events), {}
    found: list[Event] = []
    plans: dict[str, Assignment] = {}
    for i, event in enumerate(events):
        if isinstance(event, Event):
            found.append(event)
            continue
        content = dict(event)
        if isinstance(content.get("plan"), Plan):
            name = f"plan {i + 1}"
            plans[name] = cast("Plan", content["plan"]).assignment
            content["plan"] = name
        found += _validated([content], {})
    return found, plans


def read_events(name: str | Path) -> list[Event]:
    """The events of a file; plans they name lie beside it."""
    text = read_text(name, "events are YAML or JSON")
    content = parse(str(name), text or "")
    rows = cast("dict[str, Any]", content).get("events") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise InvalidInput(f"{name}: has no `events`; a list of {{at: 120, rate: 2.0}} is needed")
    file = File(str(name), text or "", {"events": rows})
    found = _validated(rows, {"events": file})
    beside = Path(name).parent
    return [
        e if e.plan is None else e.model_copy(update={"plan": str(beside / e.plan)}) for e in found
    ]


def _validated(rows: Sequence[Any], origin: Mapping[str, File]) -> list[Event]:
    document: Document = validated({"format": FORMAT, "events": list(rows)}, origin).document
    return list(document.events or ())
