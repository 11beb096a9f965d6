"""What a job works out, in a process of its own: `python -m headrace.serve.work`.

The request is one JSON object on stdin, the answer one on stdout. Whatever a file says is read as
text: it names no other file, no module and no command.
"""

from __future__ import annotations

import copy
import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.plan import assignment_section, counts_section
from headrace.model.problem import UNPLACED
from headrace.model.read import Inputs, file_of, merge, validated
from headrace.model.what_if import WhatIf, apply_change
from headrace.planner import Outcome, Plan, Refusal, best, judge_current

if TYPE_CHECKING:
    from headrace.library.case import Case

MOST_SIMULATED = 3  # plans of a comparison
MEMORY_BYTES = 8 << 30
NICE = 5

Request = Mapping[str, Any]


def work(request: Request) -> dict[str, Any]:
    """The answer to a request."""
    from headrace.library.case import Case

    inputs = read_source(request)
    changed = Case(apply_change(inputs, change_of(request)))
    results = plan_all(changed, request)
    answer: dict[str, Any] = {
        "plans": [one.to_json(compact=True) for one in results],
        "changed": change_of(request).words(),
    }
    if request.get("run") is not None:
        answer["html"] = side_by_side(inputs, results, request.get("objective") or "traffic")
        answer["sections"] = [section_of(one) for one in results]
    else:
        answer["html"] = drawn(results, Case(inputs), request)
    if request.get("simulate"):
        answer |= simulated(results)
    return answer


def read_source(request: Request) -> Inputs:
    """What is to be planned: a run's topology as it was measured, or files."""
    run = request.get("run")
    if run is not None:
        return live_inputs(run)
    files: Sequence[Mapping[str, str]] = request.get("files") or ()
    return without_paths(merge([file_of(one["name"], one["text"]) for one in files]))


def without_paths(inputs: Inputs) -> Inputs:
    """The inputs, if they name no other file: those of the server are not theirs to read."""
    document = inputs.document
    if document.arrivals is not None and document.arrivals.file is not None:
        raise InvalidInput("`arrivals.file` names a file; give its `points` here")
    if any(event.plan is not None for event in document.events or ()):
        raise InvalidInput("`events` name plan files; here they cannot")
    return inputs


def change_of(request: Request) -> WhatIf:
    """What is to be tried."""
    change: Mapping[str, Any] = request.get("change") or {}
    return WhatIf(
        settings=tuple((change.get("set") or {}).items()),
        rate_factor=change.get("rate_factor"),
        without=tuple(change.get("without") or ()),
        added=tuple((change.get("add") or {}).items()),
        prices=tuple((change.get("price") or {}).items()),
    )


def live_inputs(run: Mapping[str, Any]) -> Inputs:
    """A run's topology and nodes, with what was measured of them and the plan in force."""
    content = copy.deepcopy(dict(run["document"]))
    for name, count in run["plan"]["tasks"].items():
        content["topology"]["components"][name]["tasks"] = count
    found = measured_or_stated(content, measure(run), run.get("rates") or {})
    document = found.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for costs in (document.get("profile") or {}).values():
        costs.setdefault("*", next(iter(costs.values())))  # for machines that were never there
    catalog = {**machine_kinds(content), **read_catalog(run.get("catalog"))}
    return validated({**document, "format": FORMAT, "plan": run["plan"], "catalog": catalog}, {})


def machine_kinds(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The kinds of nodes of a run as machines that could be added: those that are alike, once."""
    found: dict[str, dict[str, Any]] = {}
    for name, facts in document.get("cluster", {}).get("nodes", {}).items():
        machine = {k: v for k, v in facts.items() if k not in ("type", "rack", "taken")}
        if machine not in found.values():
            found[f"like {name}"] = machine
    return {kind: {**machine, "price": 1.0} for kind, machine in found.items()}


def read_catalog(text: str | None) -> dict[str, Any]:
    """The machine types of a file."""
    if not text:
        return {}
    catalog = merge([file_of("the catalog", text)]).document.catalog or {}
    return {
        name: machine.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, machine in catalog.items()
    }


def measure(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the newest telemetry says; where there is none, what the newest batches say."""
    telemetry = run.get("telemetry")
    if telemetry and Path(telemetry).is_dir():
        try:
            from headrace.control.on_spark import RECENT
            from headrace.observe.sections import Question
            from headrace.observe.small import observe_small

            topology = str(run["document"]["topology"]["name"])
            question = Question(5, "average", (topology,), prefixed=False)
            return observe_small(Path(telemetry), question, newest=RECENT).sections
        except (HeadraceError, ImportError):
            pass
    return run.get("measured") or {}


def measured_or_stated(
    content: dict[str, Any], measured: Mapping[str, Any], rates: Mapping[str, float]
) -> Inputs:
    """The run's files with the measured sections, as the loop plans on them."""
    inputs = validated(content, {})
    if not measured:
        return inputs
    from headrace.control.measured_inputs import measured_inputs
    from headrace.model.cluster import nodes_of

    return measured_inputs(dict(content["topology"]), nodes_of(inputs), measured, rates)


def plan_all(case: Case, request: Request) -> list[Outcome]:
    """The plans that are asked for; a refusal is one of them."""
    from headrace.library import verbs

    objective, seconds = request.get("objective") or "traffic", float(request["seconds"])
    names: Sequence[str] = request.get("by") or ["headrace"]
    document = case.inputs.document
    if document.cluster is None and document.inventory is None and document.catalog:
        rate, budget = request.get("rate"), request.get("budget")
        return [verbs.plan(case, rate=rate, budget=budget, seconds=seconds)]
    if len(names) > 1:
        each = max(1.0, 0.8 * seconds / len(names))
        return list(verbs.compare(case, names, objective=objective, seconds=each))
    problem = case.problem  # a fault of the files is no refusal of a scheduler
    try:
        return [verbs.place(case, names[0], objective=objective, seconds=0.8 * seconds)]
    except HeadraceError as error:
        return [Refusal(names[0], objective, 0, 0.0, problem, error)]


def section_of(result: Outcome) -> dict[str, Any] | None:
    """Counts and places, as a run takes them; None where not every task has a place."""
    if not isinstance(result, Plan) or (result.assignment.node == UNPLACED).any():
        return None
    return {
        "tasks": counts_section(result.problem),
        **assignment_section(result.problem, result.assignment, compact=True),
    }


def drawn(results: Sequence[Outcome], before: Case, request: Request) -> str:
    """The sections of a report; with a change, also without it."""
    from headrace.page import sections
    from headrace.page.view import View

    problem = results[0].problem
    title = ", ".join(problem.topologies[:3]) if problem is not None else "Plan"
    without = None
    if change_of(request):
        try:
            without = plan_all(before, request)
        except HeadraceError as error:
            without = error
    return sections(View.of(results, title, None, before=without))


def side_by_side(inputs: Inputs, results: Sequence[Outcome], objective: str) -> str:
    """The plan in force beside the best of the new ones, on what was measured."""
    from headrace.page import sections
    from headrace.page.change import before_and_after
    from headrace.page.comparison import comparison
    from headrace.page.markup import join
    from headrace.page.view import View

    running = judge_current(build(inputs), objective=objective, scheduler="in force")
    plans = [one for one in results if isinstance(one, Plan)]
    found = best(plans) or next(iter(plans), None)
    if found is None:
        return sections(View.of(results, "What if", None))
    names = ("in force", "what if")
    many = comparison(View.of(results, "Compared", None)) if len(results) > 1 else ""
    return join([before_and_after(running, found, "In force, and what if", names), many])


def simulated(results: Sequence[Outcome]) -> dict[str, Any]:
    """What plans do, tuple by tuple."""
    from headrace.library.simulation import simulate_shortly
    from headrace.page.markup import join
    from headrace.page.simulation import simulation_section

    whole = [one for one in results if isinstance(one, Plan) and section_of(one) is not None]
    found = [simulate_shortly(plan) for plan in whole[:MOST_SIMULATED]]
    return {
        "simulations": [{"plan": one.scheduler, "summary": one.summary()} for one in found],
        "simulation_html": join(simulation_section(one) for one in found),
    }


def answer_to(text: str) -> dict[str, Any]:
    """The answer to a request's text, or why there is none."""
    try:
        return {"answer": work(cast("Request", json.loads(text)))}
    except HeadraceError as error:
        return {"error": error.fields()}
    except MemoryError:
        return {"error": {"kind": "infeasible", "message": "it needs more memory than jobs have"}}
    except RecursionError:
        return {"error": {"kind": "invalid-input", "message": "it is nested too deeply"}}


def limit_process() -> None:
    """Less important than a run on the same machine, and no more memory than there is for it."""
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    from headrace.model.output import to_json_text

    limit_process()
    sys.stdout.write(to_json_text(answer_to(sys.stdin.read())))
