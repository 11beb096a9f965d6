"""What every scheduler promises, checked on the same problems for all of them.

A promise is a function that yields, for every problem it tried, None or what went wrong. A
scheduler may refuse a problem; the verdict counts the problems on which there was a plan to check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from random import Random
from typing import Any

import numpy as np

from headrace.checks.prefix import prefix_names
from headrace.checks.problems import Content, draw_document, draw_roomy_document, problem_of
from headrace.checks.smallest import LOOP, ROOM, SMALLEST
from headrace.errors import HeadraceError, Infeasible, Unsupported
from headrace.judge.feasible import Violation
from headrace.judge.report import judge
from headrace.model.problem import UNPLACED, Assignment, Pairs, Problem, Stream
from headrace.planner.placing import place
from headrace.registry import By, Entry, find, introduction

SEEDS = range(40)  # problems of all kinds
ROOMY_SEEDS = range(8)  # problems that nobody may refuse
SMALL_SEEDS = range(32)  # problems with few plans
MOST_PLANS = 1024

# Word of a Guards line -> its rules. What is before "is never" or "are never" is guarded.
GUARDED_WORDS = {
    "slots": {"no such slot", "slot taken", "slot shared"},
    "CPU": {"overload cpu"},
    "memory": {"overload memory_mb"},
    "further resources": {"overload gpu"},
    "bandwidth": {"overload bandwidth in", "overload bandwidth out"},
    "worker heap": {"worker heap"},
    "pins": {"pinned"},
    "separations": {"apart"},
}

Answer = Assignment | HeadraceError
Findings = Iterator[str | None]


@dataclass
class Subject:
    """A scheduler under test; it remembers its answers, since several promises look at them."""

    by: By
    answers: dict[int, Answer] = field(default_factory=dict[int, Answer])

    @property
    def entry(self) -> Entry:
        """What its file says of it."""
        return introduction("place", self.by)

    @property
    def guards(self) -> set[str]:
        """The words of GUARDED_WORDS that its Guards line promises."""
        return guarded_words(self.entry.guards)

    def plan(self, problem: Problem, seed: int = 0) -> Answer:
        """A plan or a stated refusal; whatever else is raised is a broken promise."""
        try:
            return place(problem, self.by, seed=seed, bounded=False).assignment
        except HeadraceError as error:
            return error

    def answer(self, seed: int) -> Answer:
        """Its answer to the problem of a seed."""
        if seed not in self.answers:
            self.answers[seed] = self.plan(problem_of(content_of(seed)))
        return self.answers[seed]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a promise holds."""

    promise: str
    checked: int  # problems on which there was something to check
    failures: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing went wrong, on at least one problem."""
        return not self.failures and self.checked > 0


def guarded_words(guards: str) -> set[str]:
    """What a Guards line says is never broken."""
    found = re.split(r"\b(?:is|are) never\b", guards, maxsplit=1)
    promise = found[0] if len(found) > 1 else ""
    return {w for w in GUARDED_WORDS if re.search(rf"\b{w}\b", promise, re.IGNORECASE)}


@cache
def content_of(seed: int) -> Content:
    """A problem of any kind, without prices of sending: only the judge knows what a plan pays."""
    content = draw_document(Random(1000 + seed), most_tasks=9)
    content.pop("options", None)
    return content


@cache
def small_content(seed: int) -> Content:
    """A topology so small that all plans could be tried, and too large for one node.

    Even seeds are tight, with every kind of rule, which many schedulers answer with an overload;
    odd ones are loose, which nearly all answer with a feasible plan.
    """
    random = Random(3000 + seed)
    while True:
        content = loose_content(random) if seed % 2 else tight_content(random)
        problem = problem_of(content)
        plans = int(problem.free_slots.sum()) ** problem.task_count
        if "topologies" not in content and has_to_be_split(problem) and plans <= MOST_PLANS:
            return content


def tight_content(random: Random) -> Content:
    """Anything but local-or-shuffle and load-aware, whose traffic depends on workers."""
    content = draw_document(random, most_tasks=6, most_nodes=3)
    content.pop("options", None)
    for spec in content.get("topology", {}).get("components", {}).values():
        for entry in (e for streams in spec.get("inputs", {}).values() for e in streams):
            if entry["grouping"] in ("local-or-shuffle", "load-aware"):
                entry["grouping"] = "shuffle"
    return content


def loose_content(random: Random) -> Content:
    """One worker on each of three nodes, none of which has room for more than 60 % of the tasks."""
    content = draw_roomy_document(random, tasks=6, nodes=3)
    components = content["topology"]["components"].values()
    for spec in components:
        need = random.choice((10, 20, 30))
        spec |= {"cpu": need, "memory_mb": need}
    room = 0.6 * sum(spec["tasks"] * spec["cpu"] for spec in components)
    for node in content["cluster"]["nodes"].values():
        node |= {"slots": 1, "cpu": room, "memory_mb": room}
    content["topology"]["workers"] = 3
    return content


def has_to_be_split(problem: Problem) -> bool:
    """Whether there is traffic, no node could take all tasks, and all together perhaps could."""
    demand = np.array([problem.task_demand(int(t)).sum(axis=0) for t in problem.node_type])
    alone = (demand > problem.free).any(axis=1).all()
    together = (demand.min(axis=0) <= problem.free.sum(axis=0)).all()
    return problem.pair_count > 0 and bool(alone and together)


@cache
def best_traffic(seed: int) -> float | None:
    """The least inter-node traffic of a small problem; inf if no plan fits, None if unknown."""
    problem = problem_of(small_content(seed))
    plan = Subject("optimal").plan(problem)
    if isinstance(plan, Assignment):
        return judge(problem, plan, bounded=False).inter_node_traffic
    return float("inf") if isinstance(plan, Infeasible) else None


def misplaced(problem: Problem, plan: Assignment) -> str | None:
    """What is wrong with where tasks are; None where each is in a free slot that exists."""
    if not len(plan.node) == len(plan.worker) == problem.task_count:
        return f"{len(plan.node)} nodes for {problem.task_count} tasks"
    owner_of: dict[tuple[int, int], str] = {}
    for task in range(problem.task_count):
        topology = problem.topologies[problem.topology[problem.component_of[task]]]
        node, slot = int(plan.node[task]), int(plan.worker[task])
        name = problem.task_name(task)
        if topology in plan.refused:
            if (node, slot) != (UNPLACED, UNPLACED):
                return f"{name} is placed, but its topology is refused"
            continue
        if not 0 <= node < len(problem.nodes):
            return f"{name} is on no node"
        if not 0 <= slot < problem.slots[node] or problem.slot_taken[node, slot]:
            return f"{name} is in slot {slot} of {problem.nodes[node]}, which is not free"
        if owner_of.setdefault((node, slot), topology) != topology:
            return f"{name} shares a slot with another topology"
    return None


def complaint(problem: Problem, plan: Answer) -> str | None:
    """What keeps an answer from being a feasible plan; None if it is one."""
    if isinstance(plan, HeadraceError):
        return f"refused: {plan.message}"
    broken = judge(problem, plan, bounded=False).violations
    refused = f"refused: {', '.join(plan.refused)}" if plan.refused else None
    return misplaced(problem, plan) or refused or (broken[0].message if broken else None)


def same(a: Answer, b: Answer) -> bool:
    """Whether two answers are the same plan, or refusals of the same kind."""
    if isinstance(a, Assignment) and isinstance(b, Assignment):
        return np.array_equal(a.node, b.node) and np.array_equal(a.worker, b.worker)
    return type(a) is type(b)


def arrays(thing: Problem | Pairs | Stream) -> Iterator[np.ndarray[Any, Any]]:
    """Every array of a problem, those of its streams and pairs included."""
    for value in (getattr(thing, entry.name) for entry in fields(thing)):
        if isinstance(value, np.ndarray):
            yield value
    if isinstance(thing, Problem):
        for part in (thing.pairs, *thing.streams):
            yield from arrays(part)


# The promises


def every_task_is_placed_once_in_a_free_slot(subject: Subject) -> Findings:
    """Every task is placed once, in a slot that exists and is free."""
    for seed in SEEDS:
        plan, problem = subject.answer(seed), problem_of(content_of(seed))
        if isinstance(plan, Assignment):
            wrong = misplaced(problem, plan)
            yield f"seed {seed}: {wrong}" if wrong else None
        elif not plan.message:
            yield f"seed {seed}: refused without a reason"


def what_it_guards_is_never_broken(subject: Subject) -> Findings:
    """What its file says it guards is never broken."""
    promised = {rule for word in subject.guards for rule in GUARDED_WORDS[word]}
    for seed in SEEDS:
        plan, problem = subject.answer(seed), problem_of(content_of(seed))
        if isinstance(plan, Assignment):
            report = judge(problem, plan, bounded=False)
            broken = [v.message for v in report.violations if _rule(v) in promised]
            yield f"seed {seed}: {broken[0]}" if broken else None


def _rule(violation: Violation) -> str:
    return f"overload {violation.resource}" if violation.kind == "overload" else violation.kind


def the_same_seed_gives_the_same_plan(subject: Subject) -> Findings:
    """The same seed gives the same plan, and the problem is left as it was."""
    for seed in SEEDS[::3]:
        problem = problem_of(content_of(seed))
        before = [array.copy() for array in arrays(problem)]
        again = subject.plan(problem)
        for old, new in zip(before, arrays(problem), strict=True):
            if not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
                yield f"seed {seed}: an array of the problem was changed"
        alike = same(again, subject.answer(seed))
        yield None if alike else f"seed {seed}: another plan the second time"


def a_common_prefix_changes_nothing(subject: Subject) -> Findings:
    """A common prefix before all names changes nothing."""
    for seed in SEEDS[1::3]:
        other = subject.plan(problem_of(prefix_names(content_of(seed), "prefix-")))
        alike = same(other, subject.answer(seed))
        yield None if alike else f"seed {seed}: other names, another plan"


def where_there_is_room_the_plan_is_feasible(subject: Subject) -> Findings:
    """Where there is room for all, the plan is feasible."""
    for seed in ROOMY_SEEDS:
        problem = problem_of(draw_roomy_document(Random(2000 + seed), topologies=1 + seed % 2))
        wrong = complaint(problem, subject.plan(problem))
        yield f"seed {seed}: {wrong}" if wrong else None


def the_smallest_problems_work(subject: Subject) -> Findings:
    """One task, one node, no traffic, a graph in pieces: all work."""
    for name, content in SMALLEST.items():
        problem = problem_of(content)
        wrong = complaint(problem, subject.plan(problem))
        yield f"{name}: {wrong}" if wrong else None


def a_cycle_works_or_is_named(subject: Subject) -> Findings:
    """A cycle works, or the refusal names it."""
    problem = problem_of({"topology": LOOP, "cluster": ROOM})
    plan = subject.plan(problem)
    if isinstance(plan, HeadraceError):
        named = re.search(r"\b(cycle|loop)\b", plan.message) and re.search(
            r"\b[bcd]\b", plan.message
        )
        good = isinstance(plan, Unsupported) and named
        yield None if good else f"refused without naming the cycle: {plan.message}"
    else:
        yield complaint(problem, plan)


def no_plan_is_better_than_the_best(subject: Subject) -> Findings:
    """No feasible plan has less traffic than the proven optimum."""
    for seed in SMALL_SEEDS:
        best, problem = best_traffic(seed), problem_of(small_content(seed))
        plan = subject.plan(problem)
        if best is None or not isinstance(plan, Assignment):
            continue
        report = judge(problem, plan, bounded=False)
        if report.feasible:
            better = report.inter_node_traffic < best - 1e-9 * report.total_traffic
            yield (
                f"seed {seed}: {report.inter_node_traffic:g} is below {best:g}" if better else None
            )


PROMISES: dict[str, Callable[[Subject], Findings]] = {
    promise.__name__.replace("_", " "): promise
    for promise in (
        every_task_is_placed_once_in_a_free_slot,
        what_it_guards_is_never_broken,
        the_same_seed_gives_the_same_plan,
        a_common_prefix_changes_nothing,
        where_there_is_room_the_plan_is_feasible,
        the_smallest_problems_work,
        a_cycle_works_or_is_named,
        no_plan_is_better_than_the_best,
    )
}


def check_promise(promise: str, subject: Subject) -> Verdict:
    """One promise; an exception that is not one of ours breaks it."""
    checked, failures = 0, list[str]()
    try:
        for finding in PROMISES[promise](subject):
            checked += 1
            failures += [finding] if finding is not None else []
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
        failures.append(f"raised {type(error).__name__}: {error}")
    return Verdict(promise, checked, tuple(failures))


def check_scheduler(by: By) -> list[Verdict]:
    """Hold a scheduler to every promise.

    >>> from headrace.checks import check_scheduler
    >>> all(verdict.holds for verdict in check_scheduler("storm-even"))
    True
    """
    find("place", by)
    subject = Subject(by)
    return [check_promise(promise, subject) for promise in PROMISES]
