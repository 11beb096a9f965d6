"""What can be done: every function here needs the token."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from headrace.control.verdicts import Verdict, keep_verdict, name_plan
from headrace.errors import InvalidInput, Unsupported
from headrace.registry import names
from headrace.serve.examples import example_files
from headrace.serve.lines import newest_measured
from headrace.serve.picture import current_plan, find_section
from headrace.serve.reading import find_advice, find_decision, find_job
from headrace.serve.requests import AdviceRequest, JobRequest, PlanRequest, VerdictRequest
from headrace.serve.runs import Run
from headrace.serve.shelf import Shelf
from headrace.serve.views import waiting

Names = dict[str, str]
LOOKED_AT = 12  # batches, as the loop does


def decide(shelf: Shelf, path: Names, given: VerdictRequest) -> Any:
    """Accept or refuse the plan that a decision proposes."""
    run, entry = shelf.run(path["run"]), find_decision(shelf, path)
    if waiting(run) != int(path["number"]):
        raise Unsupported("this decision does not wait for anybody")
    accept = given.verdict == "accept"
    keep_verdict(run.folder, Verdict(time.time(), entry.proposed, accept, given.reason))
    return {"verdict": given.verdict, "plan": entry.proposed}


def put_in_force(shelf: Shelf, path: Names, given: PlanRequest) -> Any:
    """Hand a plan that was worked out here to the run's loop."""
    run, job = shelf.run(path["run"]), find_job(shelf, given.job)
    if not run.takes_plans:
        raise Unsupported(
            f"the run takes no plans: it is {run.state}"
            if run.state != "running"
            else "the run takes no plans: it was started without --advise or --adaptive"
        )
    sections = (job.answer or {}).get("sections") or []
    section = sections[given.number] if given.number < len(sections) else None
    if section is None or job.request.get("of_run") != run.id:
        raise InvalidInput(f"{job.id} has no plan {given.number} for this run")
    strange = sorted(_nodes(section) - _nodes_of(run))
    if strange:
        raise InvalidInput(f"the plan uses {', '.join(strange[:5])}, which the run does not have")
    by = job.request["by"][given.number if given.number < len(job.request["by"]) else 0]
    verdict = Verdict(time.time(), name_plan(section), True, f"tried by {by} in the page", section)
    keep_verdict(run.folder, verdict)
    return {"plan": verdict.plan}


def ask(shelf: Shelf, path: Names, given: JobRequest) -> Any:
    """Begin a job."""
    sources = [one for one in (given.files, given.example, given.run) if one is not None]
    if len(sources) != 1:
        raise InvalidInput(f"{len(sources)} of files, example and run are given; give one")
    known = names("place")
    for name in given.by:
        if name not in known:  # nothing that is imported by its name
            raise InvalidInput(f"there is no scheduler `{name[:60]}`")
    request = given.model_dump(exclude={"example", "run"})
    title = given.example or (given.files[0].name if given.files else given.run) or ""
    if given.example is not None:
        request["files"] = example_files(given.example)
    if given.run is not None:
        run = shelf.run(given.run)
        request |= {"run": {**live_facts(run), "catalog": given.catalog}, "of_run": run.id}
    return shelf.jobs.ask(request, title).to_json(whole=False)


def live_facts(run: Run) -> dict[str, Any]:
    """What a job needs to plan a run again."""
    section = find_section(run, current_plan(run))
    assert section is not None
    return {
        "document": run.document,
        "plan": dict(section),
        "telemetry": None if run.telemetry is None else str(run.telemetry),
        **newest_measured(list(run.recent)[-LOOKED_AT:], run.document),
    }


async def stop(shelf: Shelf, path: Names, query: Any) -> Any:
    """Stop a job."""
    job = find_job(shelf, path["job"])
    await shelf.jobs.stop(job)
    return job.to_json(whole=False)


async def what_if_of_job(shelf: Shelf, path: Names, given: AdviceRequest) -> Any:
    """Replay a Spark job with something different."""
    advice = find_advice(shelf, path["name"])
    asked = given.model_dump(exclude_none=True)
    outcome = await asyncio.to_thread(advice.what_if, **asked)
    return {
        **asked,
        "wall_s": round(outcome.wall_s, 3),
        "core_hours": round(outcome.core_s / 3600, 6),
        "was_s": round(advice.replayed.wall_s, 3),
    }


def _nodes(section: Any) -> set[str]:
    return {run[0] for runs in section["placement"].values() for run in runs}


def _nodes_of(run: Run) -> set[str]:
    return set(run.document.get("cluster", {}).get("nodes", {}))
