"""Plans under load-aware streams: what crosses depends on which tasks are near each other.

The search over counts takes such a stream for an even one. From its plan, and from those of Storm's
own schedulers, single tasks are moved and swapped here, and the judge's own figures say what is
better: so no plan is worse than theirs in what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from headrace.errors import HeadraceError
from headrace.judge.feasible import violations
from headrace.judge.rate import max_rate
from headrace.judge.thread_rate import plan_rate, with_threads
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.arrays import TOLERANCE
from headrace.model.load_aware import settle
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.request import Request
from headrace.place.storm_even import storm_even
from headrace.place.storm_ras import storm_ras

MOST_TRIALS, LEAST_TRIALS = 4000, 200
PAIRS_PER_TRIAL = 2_000_000  # pairs of tasks that all trials together look at
Score = tuple[float, ...]  # smaller is better


def move_near(problem: Problem, plan: Assignment, request: Request) -> Assignment:
    """The best plan found from this one, the current one and Storm's, by moving single tasks."""
    if plan.refused:
        return plan
    best, best_score = plan, None
    current = problem.current
    starts = [plan, *_storm_plans(problem)]
    if current is not None and (current.node != UNPLACED).all():
        starts.insert(0, current)
    pairs = sum(int(problem.tasks[s.source] * problem.tasks[s.target]) for s in problem.streams)
    trials = request.steps or max(LEAST_TRIALS, min(MOST_TRIALS, PAIRS_PER_TRIAL // max(pairs, 1)))
    for start in starts:
        found = climb(problem, start, request, trials // len(starts))
        score = score_plan(problem, found, request.objective, problem, exact=True)
        if best_score is None or score < best_score:
            best, best_score = found, score
    return Assignment(best.node, best.worker, plan.refused, plan.notes)


def _storm_plans(problem: Problem) -> Iterator[Assignment]:
    for scheduler in (storm_even, storm_ras):
        try:
            plan = scheduler(problem)
        except HeadraceError:
            continue
        if not plan.refused:
            yield plan


def climb(problem: Problem, plan: Assignment, request: Request, trials: int) -> Assignment:
    """Move or swap tasks while that is no worse; sideways steps lead off plateaus."""
    random, objective = Random(f"near {request.seed}"), request.objective
    fast = at_its_rate(problem, plan, objective)
    score = score_plan(problem, plan, objective, fast)
    for _ in range(trials):
        if request.deadline is not None and request.deadline():
            break
        other = propose(problem, plan, random)
        if other is None:
            continue
        if objective == "rate" and score[0] == 0 and slowness(fast, other) > score[1]:
            continue  # the rest of the score need not be known
        found = score_plan(problem, other, objective, fast)
        if found > score:
            continue
        if objective == "rate" and found[1] < score[1] * (1 - TOLERANCE):
            fast = at_its_rate(problem, other, objective)
            found = score_plan(problem, other, objective, fast)
        plan, score = other, found
    return plan


def at_its_rate(problem: Problem, plan: Assignment, objective: str) -> Problem:
    """The problem at the rate that a plan sustains, near which plans for the rate are compared."""
    return problem.scaled(_sustained(problem, plan)) if objective == "rate" else problem


def propose(problem: Problem, plan: Assignment, random: Random) -> Assignment | None:
    """A plan in which one task is elsewhere, or two have changed places; None for the same plan."""
    node, worker = plan.node.copy(), plan.worker.copy()
    a = random.randrange(len(node))
    if random.random() < 0.5:
        b = random.randrange(len(node))
        topology = problem.topology[problem.component_of[[a, b]]]
        if topology[0] != topology[1] or (node[a], worker[a]) == (node[b], worker[b]):
            return None
        node[[a, b]], worker[[a, b]] = node[[b, a]], worker[[b, a]]
        return Assignment(node, worker)
    slots = list(open_slots(problem, plan, int(problem.topology[problem.component_of[a]])))
    n, slot = random.choice(slots)
    if (n, slot) == (node[a], worker[a]):
        return None
    node[a], worker[a] = n, slot
    return Assignment(node, worker)


def open_slots(problem: Problem, plan: Assignment, topology: int) -> Iterable[tuple[int, int]]:
    """Slots that a topology uses, and of every node the first that nobody does."""
    own = problem.topology[problem.component_of] == topology
    used = dict.fromkeys(zip(plan.node[own].tolist(), plan.worker[own].tolist(), strict=True))
    taken = problem.slot_taken.copy()
    placed = plan.node != UNPLACED
    taken[plan.node[placed], plan.worker[placed]] = True
    for n in np.flatnonzero(~taken.all(axis=1)).tolist():
        used.setdefault((n, int((~taken[n]).argmax())))
    return used


@dataclass(frozen=True, slots=True)
class Figures:
    """What the judge says of a plan."""

    broken: float
    inter_node: float
    inter_worker: float
    network_cost: float
    nodes: int
    balance: float


def score_plan(
    problem: Problem, plan: Assignment, objective: str, fast: Problem, *, exact: bool = False
) -> Score:
    """How good a plan is for an objective, broken rules first; its speed is that near `fast`."""
    figures = measure(problem, plan)
    firsts: dict[str, Callable[[], tuple[float, ...]]] = {
        "traffic": lambda: (),
        "network": lambda: (figures.network_cost,),
        "rate": lambda: (slowness(fast, plan, exact=exact),),
        "batch": lambda: (slowness(fast, plan),),
        "nodes": lambda: (figures.nodes,),
        "balance": lambda: (figures.balance,),
    }
    return (figures.broken, *firsts[objective](), figures.inter_node, figures.inter_worker)


def slowness(fast: Problem, plan: Assignment, *, exact: bool = False) -> float:
    """1 / the factor that nodes and threads sustain."""
    if exact:
        return 1 / max(_sustained(fast, plan), 1e-300)
    settled, workers = settle(fast, plan), Workers.of(plan)
    sent = traffic(settled, plan, workers)
    used = use(settled, plan, workers, sent)
    speed = with_threads(settled, plan, max_rate(settled, sent, used)).value
    return 0.0 if speed is None else round(1 / max(speed, 1e-300), 12)


def measure(problem: Problem, plan: Assignment) -> Figures:
    """The figures of a plan."""
    settled, workers = settle(problem, plan), Workers.of(plan)
    sent = traffic(settled, plan, workers)
    used = use(settled, plan, workers, sent)
    broken = violations(settled, plan, workers, sent, used)
    cpu = problem.capacity[:, 0]
    share = np.divide(used.resources[:, 0], cpu, out=np.zeros(len(cpu)), where=cpu > 0)
    return Figures(
        sum(max(0.0, v.needed - v.available) / max(v.available, 1.0) for v in broken),
        sent.inter_node,
        sent.inter_worker,
        sent.network_cost(problem.network),
        int((used.tasks > 0).sum()),
        float(np.std(share)),
    )


def _sustained(problem: Problem, plan: Assignment) -> float:
    settled, workers = settle(problem, plan), Workers.of(plan)
    sent = traffic(settled, plan, workers)
    at_given = with_threads(
        settled, plan, max_rate(settled, sent, use(settled, plan, workers, sent))
    )
    found = plan_rate(problem, plan, at_given).value
    return 1e12 if found is None else max(found, 1e-12)
