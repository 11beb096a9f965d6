"""Place a problem's tasks, and judge a plan that is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.errors import Infeasible, InvalidInput
from headrace.judge.bounds import Bound, bound, no_bound
from headrace.judge.report import FIGURES, confirm_proof, judge, plannable
from headrace.model.headroom import name_headroom, within_headroom
from headrace.model.plan import assignment_from
from headrace.model.problem import Problem, StatedProof
from headrace.model.progress import NOW, begin
from headrace.model.request import Deadline, Request
from headrace.planner.result import Plan
from headrace.registry import Algorithm, By, find, introduction

DEFAULT = "headrace"
LEAST_CHECK_S, CHECK_SHARE = 10.0, 1.5  # for checking a proof: seconds, and shares of its own time
BOUND_SHARE = 0.25  # of the seconds given: what a bound may take even if the search took them all


def place(
    problem: Problem,
    by: By = DEFAULT,
    *,
    objective: str = "traffic",
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
    limit: Bound | None = None,
    bounded: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> Plan:
    """Place a problem's tasks and judge the plan; options given here go before the file's.

    The scheduler gets nodes without the headroom, but for a resource with a ceiling of its own.
    How good any plan could be is `limit` if given, else worked out; not at all if not `bounded`.
    """
    check_objective(objective)
    algorithm = find("place", by)
    if objective == "latency" and algorithm.takes_request:
        from headrace.planner.latency import place_for_latency  # here: it simulates

        limits = {"options": options, "seed": seed, "steps": steps, "seconds": seconds}
        return place_for_latency(problem, by, clock=clock, **limits)  # pyright: ignore[reportArgumentType]
    stated = problem.options.get(algorithm.name, {})
    deadline = Deadline(seconds, clock)
    request = Request(objective=objective, seed=seed, steps=steps, deadline=deadline)
    own_ceiling = introduction("place", by).ceiling if problem.headroom else ""
    planned = within_headroom(problem, but=own_ceiling)
    begin(f"{algorithm.name} places {problem.task_count:,} tasks on {len(problem.nodes):,} nodes")
    try:
        answer = algorithm(planned, request, {**stated, **(options or {})})
    except Infeasible as error:
        raise name_headroom(error, problem.headroom) from None
    assignment = assignment_from(problem, answer, algorithm.name)
    if assignment.refused and problem.headroom:
        refused = {g: name_headroom(e, problem.headroom) for g, e in assignment.refused.items()}
        assignment = replace(assignment, refused=refused)
    took, stopped = deadline.elapsed, deadline.stopped
    notes: tuple[str, ...] = ()
    if bounded and assignment.proof is not None and not (limit is not None and limit.proven):
        found = confirm_proof(planned, assignment, time_to_check(deadline, took))
        if found is None:
            notes = (unconfirmed(algorithm.name, assignment.proof),)
        elif found.of == FIGURES[objective]:
            limit = found
    if limit is None and bounded:
        limit = limit_of(plannable(problem, objective), objective, algorithm, deadline)
    report = judge(
        problem,
        assignment,
        objective=objective,
        limit=limit or no_bound(FIGURES[objective]),
        stopped=stopped,
        notes=(*assignment.notes, *notes),
    )
    return Plan(algorithm.name, objective, seed, took, problem, assignment, report)


def limit_of(problem: Problem, objective: str, algorithm: Algorithm, used: Deadline) -> Bound:
    """How good any plan could be; beside a plan without a search, only what needs none either."""
    begin("working out how good any plan could be", NOW.best)
    cheap = not algorithm.takes_request
    if used.seconds is None:
        return bound(problem, FIGURES[objective], cheap=cheap)
    left = max(used.seconds - used.elapsed, BOUND_SHARE * used.seconds)
    return bound(
        problem,
        FIGURES[objective],
        cheap=cheap,
        deadline=Deadline(left, used.clock),
        thorough=algorithm.ours and introduction("place", algorithm.name).maturity == "exact",
    )


def time_to_check(used: Deadline, took: float) -> Deadline:
    """As long as the proof itself took, and more where it took little: checking it is as hard."""
    return Deadline(max(LEAST_CHECK_S, CHECK_SHARE * took, used.left or 0.0), used.clock)


def unconfirmed(name: str, stated: StatedProof) -> str:
    """What a report says of a proof that the judge did not come to itself."""
    return (
        f"{name} says it has proven that {stated.of} cannot be better than {stated.value:g}; "
        "the judge could not confirm it"
    )


def check_objective(objective: str) -> None:
    """Refuse an objective that there is not."""
    if objective not in FIGURES:
        raise InvalidInput(f"no objective `{objective}`; there are: {', '.join(FIGURES)}")


def judge_current(
    problem: Problem, *, objective: str = "traffic", scheduler: str = "given"
) -> Plan:
    """The plan that the files hold, judged."""
    if problem.current is None:
        raise InvalidInput("no plan to judge: give a file with `plan`")
    check_objective(objective)
    start = time.perf_counter()
    report = judge(problem, problem.current, objective=objective)
    took = time.perf_counter() - start
    return Plan(scheduler, objective, 0, took, problem, problem.current, report)
