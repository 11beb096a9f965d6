"""What can be done with a case and with plans: one function per question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace import planner
from headrace.errors import InvalidInput
from headrace.judge.explain import Costly, Explanation, costly_streams, explain_task
from headrace.judge.report import judge as judge_assignment
from headrace.library.case import Case, Source, as_case, load
from headrace.library.comparison import Comparison
from headrace.model.plan import assignment_from
from headrace.model.section import Headroom
from headrace.planner import Outcome, Plan, TradeOff
from headrace.planner.placing import check_objective
from headrace.registry import By, names


def place(
    case: Source,
    by: By = planner.DEFAULT,
    *,
    objective: str = "traffic",
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
    headroom: Headroom | None = None,
    **options: Any,
) -> Plan:
    """Decide which task runs in which worker on which node.

    `by` is a scheduler's name, `package.module:function`, or a function of yours that takes the
    problem and gives an `Assignment` or `{task: node}`. Further keywords are its options. With a
    `headroom` of 0.2, or `{"cpu": 0.2}`, nodes are filled to 80 %, whatever the files say.

    >>> import headrace as hr
    >>> case = hr.load(hr.example("quickstart.yaml"))
    >>> plan = hr.place(case)
    >>> plan.report.feasible, plan.report.gap
    (True, 0.0)
    >>> def all_on_one(problem):
    ...     return {problem.task_name(t): "big-1" for t in range(problem.task_count)}
    >>> hr.place(case, by=all_on_one).report.inter_node_traffic
    0.0
    """
    found = as_case(case).with_headroom(headroom)
    plan = planner.place(
        found.problem,
        by,
        objective=objective,
        options=options,
        seed=seed,
        steps=steps,
        seconds=seconds,
    )
    return _made_from(plan, found)


def compare(
    case: Source,
    by: Sequence[By] = (),
    *,
    stage: str = "place",
    objective: str = "traffic",
    budget: float | None = None,
    rate: float | None = None,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
    headroom: Headroom | None = None,
    show: Callable[[Outcome], object] | None = None,
) -> Comparison:
    """The same case through many algorithms of a stage; absent: all. A refusal is a row too.

    Stages are `place`, `size` and `provision`; a rate or a budget is for the latter two. The
    seconds are for each algorithm; one that does not keep to them is stopped, and its row says so.
    `show` is called with every row as it comes. Ctrl-C (KeyboardInterrupt) ends it with the rows
    that are there, and `interrupted` says so.

    >>> import headrace as hr
    >>> table = hr.compare(hr.example("quickstart.yaml"), by=["headrace", "storm-even"])
    >>> [row.scheduler for row in table], table.best.scheduler
    (['headrace', 'storm-even'], 'headrace')
    """
    found = as_case(case).with_headroom(headroom)
    chosen = planner.yardstick(stage, objective, rate)
    if stage == "place":
        limits = {"objective": objective, "seed": seed, "steps": steps, "seconds": seconds}
        results = planner.compare(found.problem, by, **limits)  # pyright: ignore[reportArgumentType]
    else:
        results = planner.compare_counts(
            stage, found.workload, by, budget=budget, rate=rate, seed=seed, seconds=seconds
        )
    rows: list[Outcome] = []
    interrupted = False
    try:
        for row in results:
            if isinstance(row, Plan) and stage == "place":
                row = _made_from(row, found)
            rows.append(row)
            if show is not None:
                show(row)
    except KeyboardInterrupt:
        if not rows:
            raise
        interrupted = True
    return Comparison(tuple(rows), chosen, interrupted)


def trade_off(
    case: Source,
    by: By = planner.DEFAULT,
    *,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
    headroom: Headroom | None = None,
) -> TradeOff:
    """The few plans between the least traffic and the highest rate, and which one to take.

    >>> import headrace as hr
    >>> found = hr.trade_off(hr.example("quickstart.yaml"))
    >>> least, fastest = found.plans[0].report, found.plans[-1].report
    >>> least.inter_node_traffic <= fastest.inter_node_traffic
    True
    """
    asked = as_case(case).with_headroom(headroom)
    found = planner.trade_off(asked.problem, by, seed=seed, steps=steps, seconds=seconds)
    plans = tuple(_made_from(plan, asked) for plan in found.plans)
    return replace(found, plans=plans, chosen=plans[found.plans.index(found.chosen)])


def size(
    case: Source,
    by: By = planner.DEFAULT,
    *,
    rate: float | None = None,
    seed: int = 0,
    seconds: float | None = None,
    headroom: Headroom | None = None,
    **options: Any,
) -> Plan:
    """Decide how many tasks each component gets on the cluster: for the largest rate, or for one.

    >>> import headrace as hr
    >>> files = ("linear.yaml", "cluster-small.yaml")
    >>> case = hr.load(*(hr.example("nasiri", name) for name in files))
    >>> hr.size(case).report.feasible
    True
    """
    workload = as_case(case).with_headroom(headroom).workload
    return planner.size(workload, by, rate=rate, options=options, seed=seed, seconds=seconds)


def provision(
    case: Source,
    by: By = planner.DEFAULT,
    *,
    budget: float | None = None,
    rate: float | None = None,
    seed: int = 0,
    seconds: float | None = None,
    headroom: Headroom | None = None,
    **options: Any,
) -> Plan:
    """Decide which machines to rent: the most for a budget, or the cheapest for a rate.

    >>> import headrace as hr
    >>> case = hr.load(hr.example("cao", "flight.yaml"), hr.example("cao", "vm-types.yaml"))
    >>> hr.provision(case, by="optimal", budget=1.85).report.cost <= 1.85
    True
    """
    workload = as_case(case).with_headroom(headroom).workload
    return planner.provision(
        workload, by, budget=budget, rate=rate, options=options, seed=seed, seconds=seconds
    )


def plan(
    case: Source,
    *,
    rate: float | None = None,
    budget: float | None = None,
    rent: bool = False,
    by: Mapping[str, By] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    running: Case | None = None,
    headroom: Headroom | None = None,
    **options: Any,
) -> Plan:
    """All stages at once: which machines, how many tasks, which of them where.

    Where the files give a cluster and a catalog, machines are rented with `rent` or a budget.
    `by` names an algorithm per stage, such as `{"size": "nasiri", "place": "a3-storm"}`. A plan
    among the files is the current one; `running` is the case it runs in, if that is another.
    """
    return planner.plan(
        as_case(case).with_headroom(headroom).inputs,
        rate=rate,
        budget=budget,
        rent=rent,
        by=by,
        options=options,
        seed=seed,
        seconds=seconds,
        running=None if running is None else running.inputs,
    )


def judge(case: Source, plan: Any = None, *, objective: str = "traffic") -> Plan:
    """Judge a plan of any origin: one of ours, a plan file, or `{task: node}`.

    Absent: the plan that the case's own files hold.

    >>> import headrace as hr
    >>> case = hr.load(hr.example("quickstart.yaml"))
    >>> given = {name: "big-1" for name in hr.place(case).node_of}
    >>> hr.judge(case, given).report.nodes_used
    1
    """
    found = as_case(case)
    if plan is None:
        scheduler = found.inputs.document.scheduler or "given"
        judged = planner.judge_current(found.problem, objective=objective, scheduler=scheduler)
        return _made_from(judged, found)
    check_objective(objective)
    if isinstance(plan, str | Path):
        plan = load(plan).problem.current
    if isinstance(plan, Plan):
        scheduler, answer = plan.scheduler, plan.assignment
    else:
        scheduler, answer = "given", plan
    assignment = assignment_from(found.problem, answer, "the plan")
    report = judge_assignment(found.problem, assignment, objective=objective)
    judged = Plan(scheduler, objective, 0, 0.0, found.problem, assignment, report)
    return _made_from(judged, found)


def explain(plan: Plan | str | Path, task: str | None = None) -> Explanation | list[Costly]:
    """Why a task is where it is; without a task, which streams cost the plan its traffic.

    >>> import headrace as hr
    >>> plan = hr.place(hr.example("quickstart.yaml"))
    >>> hr.explain(plan, "count.3").task
    'count.3'
    """
    found = as_plan(plan)
    if task is None:
        return costly_streams(found.problem, found.assignment)
    return explain_task(found.problem, found.assignment, task)


def schedulers(folder: str = "place") -> list[str]:
    """The names of all algorithms of a folder: place, size, provision or move; plug-ins too."""
    return names(folder)


def _made_from(plan: Plan, case: Case) -> Plan:
    return replace(plan, document=case.inputs.document)


def load_plan(*files: str | Path) -> Plan:
    """The plan that a file holds, judged; a plan that stands alone needs no other file."""
    return judge(load(*files))


def as_plan(plan: Plan | str | Path) -> Plan:
    """A plan, whatever it was given as: itself, or a plan file."""
    if isinstance(plan, Plan):
        return plan
    if load(plan).inputs.document.plan is None:
        raise InvalidInput(f"{plan}: holds no plan; write one with headrace place .. --out")
    return load_plan(plan)
