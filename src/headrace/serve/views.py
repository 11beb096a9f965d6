"""What the API says of runs, as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from headrace.control.learning import outcomes
from headrace.errors import HeadraceError
from headrace.serve.picture import current_plan
from headrace.serve.requests import SeriesQuery
from headrace.serve.runs import Run
from headrace.serve.work import machine_kinds

MOST_NODES = 64  # whose figures travel one by one
TOTALS = ("tuples_per_s", "batch_s", "latency_s", "remote_mbps", "total_mbps", "pending")
PER_NODE = ("cpu", "memory_mb", "mbps")


def overview(run: Run) -> dict[str, Any]:
    """A run in short."""
    newest = run.newest
    return {
        "id": run.id,
        "name": run.name or run.folder.name,
        "folder": str(run.folder),
        "state": run.state,
        "failure": run.failure,
        "fault": run.fault,
        "simulated": run.simulated,
        "began_s": run.began_s,
        "ended_s": run.ended_s,
        "newest_s": None if newest is None else newest["at_s"],
        "batches": run.batches,
        "tuples": run.tuples,
        "plan": run.changes[-1][1] if run.changes else None,
        "plans": [{"at_s": at_s, "name": name} for at_s, name in run.changes],
        "decisions": len(run.decisions),
        "waiting": waiting(run),
        "takes_plans": run.takes_plans,
        "loop": run.loop,
        "nodes": list(run.document.get("cluster", {}).get("nodes", {})),
        "kinds": list(machine_kinds(run.document)),
    }


def waiting(run: Run) -> int | None:
    """The decision whose plan waits for a person; None if none does."""
    if not run.takes_plans or not run.decisions:
        return None
    last = run.decisions[-1]
    if not (last.proposed and last.move and not last.applied):
        return None
    spoken = any(v.plan == last.proposed and v.at_s >= last.at_s for v in run.verdicts)
    return None if spoken else len(run.decisions) - 1


def decisions(run: Run) -> list[dict[str, Any]]:
    """Every decision with its reason, what it predicted and what came of it."""
    try:
        came = {outcome.entry.at_s: outcome for outcome in outcomes(run.decisions)}
    except HeadraceError:
        came = {}
    rows: list[dict[str, Any]] = []
    awaited = waiting(run)
    for number, entry in enumerate(run.decisions):
        row = asdict(entry)
        del row["plans"]
        outcome = came.get(entry.at_s)
        said = [v for v in run.verdicts if entry.proposed and v.plan == entry.proposed]
        said = [v for v in said if v.at_s >= entry.at_s]
        row |= {
            "number": number,
            "waiting": number == awaited,
            "verdict": None if not said else "accepted" if said[0].accept else "refused",
            "outcome": None
            if outcome is None
            else {k: getattr(outcome, k) for k in ("figure", "predicted", "measured", "before")},
        }
        rows.append(row)
    return rows


def series(run: Run, query: SeriesQuery) -> dict[str, Any]:
    """Figures over time, in at most so many groups."""
    columns = run.columns
    if not columns.rows:
        return {"at_s": [], "totals": {}, "nodes": {}, "components": {}, "streams": {},
                "plan": [], "batch": []}  # fmt: skip
    first = -np.inf if query.from_s is None else query.from_s
    last = np.inf if query.to_s is None else query.to_s
    bounds = columns.buckets(float(first), float(last), query.points)
    ends = bounds[1:] - 1
    known = [name for name in TOTALS if name in columns.numbers]
    nodes = [name[4:] for name in columns.numbers if name.startswith("cpu:")]
    streams = [name[7:] for name in columns.numbers if name.startswith("stream:")]
    found: dict[str, Any] = {
        "at_s": [round(at, 3) for at in columns.at_s[ends].tolist()],
        "totals": columns.series(known, bounds),
        "streams": {
            name: columns.series((f"stream:{name}", f"crossing:{name}"), bounds)
            for name in streams[:MOST_NODES]
        },
        "plan": [_whole(v) for v in columns.column("plan")[ends].tolist()],
        "batch": [_whole(v) for v in columns.column("batch")[ends].tolist()],
        "of_nodes": len(nodes),
        "nodes": {},
    }
    components = [name[3:] for name in columns.numbers if name.startswith("in:")][:MOST_NODES]
    rows = columns.series([f"{k}:{c}" for c in components for k in ("in", "out")], bounds)
    found["components"] = {c: {k: rows[f"{k}:{c}"] for k in ("in", "out")} for c in components}
    found["streams"] = {
        name: {"tuples": rows[f"stream:{name}"], "crossing": rows[f"crossing:{name}"]}
        for name, rows in found["streams"].items()
    }
    if len(nodes) <= MOST_NODES:
        rows = columns.series([f"{k}:{n}" for n in nodes for k in PER_NODE], bounds)
        found["nodes"] = {n: {k: rows[f"{k}:{n}"] for k in PER_NODE} for n in nodes}
    return found


def plan_in_force(run: Run) -> str | None:
    """The name of the plan in force, if there is one."""
    try:
        return current_plan(run)
    except HeadraceError:
        return None


def _whole(value: float) -> int:
    return -1 if np.isnan(value) else round(value)
