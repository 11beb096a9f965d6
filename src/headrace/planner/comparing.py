"""The same question to many algorithms of a stage; a refusal is an answer too."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.judge.bounds import bound
from headrace.judge.report import FIGURES, plannable
from headrace.judge.survival import broken_headroom
from headrace.model.problem import Problem
from headrace.model.progress import begin
from headrace.model.request import Deadline
from headrace.model.workload import Workload
from headrace.planner.limited import answer_within, can_limit
from headrace.planner.placing import check_objective, place
from headrace.planner.result import Outcome, Plan, Refusal
from headrace.planner.sizing import provision, size
from headrace.registry import By, find, names


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The figure that plans are compared by."""

    name: str
    value: Callable[[Plan], float | None]
    more: bool = False  # is better

    def score(self, plan: Plan) -> float:
        """The less, the better; a plan without the figure is last, or unlimited in its rate."""
        value = self.value(plan)
        score = math.inf if value is None else round(float(value), 9)
        return -score if self.more else score

    def ratio(self, plan: Plan, top: Plan) -> float | None:
        """How much worse than another, 1 where it is as good; None where there is no figure."""
        value, best = self.value(plan), self.value(top)
        if value is None or best is None:
            return None
        a, b = (best, value) if self.more else (value, best)
        return 1.0 if a == b else a / b if b else math.inf


STAGES = ("place", "size", "provision")  # those that make a plan

# Algorithms look at the clock now and then, and judging takes time too: one that needs this share
# of its seconds more, and these seconds, is stopped.
MORE_SHARE, MORE_S = 0.5, 2.0
LONGEST_S = 120.0  # for an algorithm that was given no limit, of a problem that is not small
SMALL = 500  # tasks of a problem that needs no limit

TASKS = Yardstick("tasks", lambda plan: plan.problem.task_count)
COST = Yardstick("cost", lambda plan: plan.report.cost)
RATE = Yardstick("max_rate", lambda plan: plan.report.max_rate, more=True)


def yardstick(stage: str, objective: str, rate: float | None = None) -> Yardstick:
    """What a stage is asked for: few tasks or a low price where the rate is given."""
    if stage not in STAGES:
        raise InvalidInput(f"no stage `{stage}`; there are: {', '.join(STAGES)}")
    if stage == "place":
        check_objective(objective)
        figure = FIGURES[objective]
        return (
            RATE if objective == "rate" else Yardstick(figure, lambda p: getattr(p.report, figure))
        )
    if rate is None:
        return RATE
    return TASKS if stage == "size" else COST


def best(results: Sequence[Outcome], by: Yardstick | None = None) -> Plan | None:
    """The best feasible plan by the figure, then by nodes, then by rate; None if none is.

    One that leaves less free than was asked for is behind all that do not.
    """
    feasible = [r for r in results if isinstance(r, Plan) and r.report.feasible]
    return min(feasible, key=lambda plan: standing(plan, by), default=None)


def standing(plan: Plan, by: Yardstick | None = None) -> tuple[bool, float, int, float]:
    """What feasible plans are ranked by, the least first."""
    chosen = by or yardstick("place", plan.objective)
    nodes = plan.report.nodes_used
    return (breaks_headroom(plan), chosen.score(plan), nodes, RATE.score(plan))


def breaks_headroom(plan: Plan) -> bool:
    """Whether a node has less left than was asked for."""
    return bool(broken_headroom(plan.problem, plan.report.headroom))


def compare(
    problem: Problem,
    by: Sequence[By] = (),
    *,
    objective: str = "traffic",
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
) -> Iterator[Outcome]:
    """The same problem through many schedulers, one after another."""
    check_objective(objective)
    deadline = None if seconds is None else Deadline(seconds)
    begin("working out how good any plan could be")
    limit = bound(plannable(problem, objective), FIGURES[objective], deadline=deadline)

    def make(one: By) -> Plan:
        asked = {"objective": objective, "seed": seed, "steps": steps, "seconds": seconds}
        return place(problem, one, limit=limit, **asked)  # pyright: ignore[reportArgumentType]

    longest = longest_wait(seconds, problem.task_count)
    return outcomes("place", by, make, objective, seed, problem, longest)


def longest_wait(seconds: float | None, tasks: int) -> float | None:
    """Seconds after which an algorithm is stopped that was given so many; None: never."""
    if not can_limit():
        return None
    if seconds is not None:
        return seconds * (1 + MORE_SHARE) + MORE_S
    return LONGEST_S if tasks > SMALL else None


def compare_counts(
    stage: str,
    workload: Workload,
    by: Sequence[By] = (),
    *,
    budget: float | None = None,
    rate: float | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> Iterator[Outcome]:
    """The same workload through many sizers or provisioners, one after another."""
    if stage == "size" and budget is not None:
        raise InvalidInput("sizers have the machines they have: a budget is for provisioners")

    def make(one: By) -> Plan:
        if stage == "size":
            return size(workload, one, rate=rate, seed=seed, seconds=seconds)
        return provision(workload, one, budget=budget, rate=rate, seed=seed, seconds=seconds)

    return outcomes(stage, by, make, "rate", seed, longest=longest_wait(seconds, 0))


def outcomes(
    stage: str,
    by: Sequence[By],
    make: Callable[[By], Plan],
    objective: str,
    seed: int,
    problem: Problem | None = None,
    longest: float | None = None,
) -> Iterator[Outcome]:
    """What each algorithm of a stage makes, or why it makes nothing; absent: all of them.

    An error of ours is ours to mend, one of a plug-in is its answer. With `longest`, each runs in a
    process of its own, which is stopped after so many seconds.
    """
    algorithms = [find(stage, one) for one in by or names(stage)]  # an unknown name ends it here
    for one, algorithm in zip(by or names(stage), algorithms, strict=True):
        start = time.perf_counter()
        try:
            if longest is None:
                yield make(one)
            else:
                yield make_within(longest, make, one, problem)
        except HeadraceError as error:
            took = time.perf_counter() - start
            yield Refusal(algorithm.name, objective, seed, took, problem, error)
        except Exception as error:
            if algorithm.ours:
                raise
            took = time.perf_counter() - start
            broken = Unsupported(f"it raised {type(error).__name__}: {error}")
            yield Refusal(algorithm.name, objective, seed, took, problem, broken)


def make_within(
    seconds: float, make: Callable[[By], Plan], by: By, problem: Problem | None
) -> Plan:
    """A plan made in a child process; a problem that both know is not sent back."""

    def without_problem() -> Plan:
        plan = make(by)
        return plan if problem is None else replace(plan, problem=None)  # pyright: ignore[reportArgumentType]

    plan = answer_within(seconds, without_problem)
    return plan if problem is None else replace(plan, problem=problem)
