"""The headrace/1 document of an application: stages as components, executors as nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from operator import add
from statistics import median
from typing import Any

from headrace.model.document import FORMAT
from headrace.observe.rounding import six_digits
from headrace.observe.spark_log.application import (
    Application,
    ComponentFigures,
    Executor,
    TaskTotals,
    executors_at_peak,
)

PYTHON_FLAG = "the CPU of Python workers is not in Spark's figures"
NO_COUNT = "Spark counted no records; its rate is in tasks, as if each were one tuple"
NO_RECORDS_FLAG = "Spark counted no records, so the whole cost is fixed"
WARM_UP = 2  # batches at the start, which compile and read what had piled up
EVEN_WITHIN = 0.02  # shares that differ less from even ones are left out


def document_of(application: Application) -> tuple[dict[str, Any], list[str]]:
    """The document, and notes on what it takes for granted."""
    executors = executors_at_peak(application.executors)
    by_name = {m.component.name: m for m in application.components}
    notes = [
        f"rates are per second of the {application.seconds:.3g} s "
        + ("from the first task to the last" if application.streaming else "in which tasks ran")
    ]
    left_out = len(application.executors) - len(executors)
    if left_out:
        notes.append(
            f"{left_out} of {len(application.executors)} executors came or went; "
            "the cluster is as it was at its largest"
        )
    in_python = [m.component.name for m in application.components if m.component.in_python]
    if in_python:
        notes.append(
            f"{', '.join(in_python)}: {PYTHON_FLAG}; measure it in the tasks, or set cpu_ms by hand"
        )
    counted = [m for m in application.components if not m.component.inputs]
    silent = [m.component.name for m in counted if not _counts_records(m.work)]
    if silent:
        notes.append(f"{', '.join(silent)}: {NO_COUNT}")
    notes.append(
        "a log does not say how fast the network is: "
        "set bandwidth_mbps on the nodes to have it counted"
    )
    content: dict[str, Any] = {
        "format": FORMAT,
        "topology": {
            "name": application.name.replace("/", "-") or "application",
            "workers": len(executors),
            "components": {name: _component(m, application) for name, m in by_name.items()},
        },
        "cluster": {"nodes": {e.node: _node(e) for e in executors}},
        "profile": {name: _costs(m, application, executors) for name, m in by_name.items()},
    }
    content |= _micro_batches(application)
    streams = [
        stream for m in application.components for stream in _streams(m, by_name, application)
    ]
    return content | ({"streams": streams} if streams else {}), notes


def _component(m: ComponentFigures, application: Application) -> dict[str, Any]:
    memory_mb = m.work.byte_seconds / application.seconds / m.component.tasks / 2**20
    memory = {"memory_mb": six_digits(memory_mb)} if memory_mb > 0 else {}
    if m.component.inputs:
        return {
            "tasks": m.component.tasks,
            "inputs": dict.fromkeys(m.component.inputs, "shuffle"),
            **memory,
            **_state(m, application),
        }
    return {
        "spout": True,
        "tasks": m.component.tasks,
        "rate": six_digits(_processed(m.work) / application.seconds),
        **memory,
        **_state(m, application),
    }


def _counts_records(work: TaskTotals) -> bool:
    return bool(work.records_in or work.written_records or work.sink_records)


def _processed(work: TaskTotals) -> float:
    """Records a stage worked on; a source that counts none (a generated range) by what it wrote.

    Where Spark counts neither, a task is a tuple: a spout that emits nothing cannot be planned.
    """
    return work.records_in or work.written_records or work.sink_records or float(work.succeeded)


def _state(m: ComponentFigures, application: Application) -> dict[str, Any]:
    """The state that a task of a streaming query keeps, as the query reported it last."""
    if not any("StateStore" in operator for operator in m.component.operators):
        return {}
    last = next((p for p in reversed(application.progress) if p.query == m.component.query), None)
    used = sum(float(s.get("memoryUsedBytes") or 0) for s in last.state) if last else 0.0
    return {"state_mb": six_digits(used / m.component.tasks / 2**20)} if used else {}


def _micro_batches(application: Application) -> dict[str, Any]:
    """What the judge needs to know of a stream's batches: how often, and what the engine adds."""
    warm = [p for p in application.progress if p.input_rows > 0][WARM_UP:]
    if len(warm) < 2:
        return {}
    interval_s = median((b.at_ms - a.at_ms) / 1000 for a, b in pairwise(warm))
    around = ("addBatch", "triggerExecution")
    added = [
        max(p.duration_ms["triggerExecution"] - p.duration_ms["addBatch"], 0) / 1000
        for p in warm
        if all(part in p.duration_ms for part in around)
    ]
    overhead_s = median(added) if added else 0.0
    batches = {
        "batch_interval_s": six_digits(interval_s),
        "batch_overhead_s": six_digits(overhead_s),
    }
    return {"options": {"judge": batches}} if interval_s > 0 else {}


def _node(executor: Executor) -> dict[str, Any]:
    # Executors of one host are one rack: what passes between them does not leave the machine.
    return {
        "type": executor.type,
        "rack": executor.host,
        "cpu": executor.cores * 100,
        "cores": executor.cores,
        "memory_mb": executor.memory_mb,
        "slots": 1,
    }


def _costs(
    m: ComponentFigures, application: Application, executors: tuple[Executor, ...]
) -> dict[str, Any]:
    """CPU per record, over all executors, and where they are of several types also by type."""
    types = {e.id: e.type for e in executors}
    found = {"*": _cost(m, m.work, application.seconds)}
    if len(set(types.values())) > 1:
        for machine in sorted(set(types.values())):
            parts = [work for executor, work in m.on.items() if types.get(executor) == machine]
            if parts and _processed(here := reduce(add, parts)) > 0:
                found[machine] = _cost(m, here, application.seconds)
    return found


def _cost(m: ComponentFigures, work: TaskTotals, seconds: float) -> dict[str, Any]:
    flags = [PYTHON_FLAG] if m.component.in_python else []
    runs = {"windows": len(m.runs)} if len(m.runs) > 1 else {}
    read = work.shuffle_records if m.component.inputs else _processed(work)
    if read > 0:
        return {"cpu_ms": six_digits(work.cpu_ms / read), **runs, **_flag(flags)}
    points = work.cpu_ms / seconds / 10 / m.component.tasks
    return {"cpu_fixed": six_digits(points), **runs, **_flag([*flags, NO_RECORDS_FLAG])}


def _flag(flags: list[str]) -> dict[str, str]:
    return {"flag": "; ".join(flags)} if flags else {}


def _streams(
    m: ComponentFigures, by_name: Mapping[str, ComponentFigures], application: Application
) -> list[dict[str, Any]]:
    """What each input brought: what the stage read, shared out by what the sources wrote.

    Spark counts only what a stage reads as a whole.
    """
    sources = [by_name[name] for name in m.component.inputs]
    written = [source.work.written_records for source in sources]
    total = sum(written)
    shares = _shares(m.partition_records)
    found: list[dict[str, Any]] = []
    for source, wrote in zip(sources, written, strict=True):
        share = wrote / total if total > 0 else 1 / len(sources)
        records = m.work.shuffle_records * share
        worked_on = _processed(source.work)
        stream: dict[str, Any] = {
            "from": source.component.name,
            "to": m.component.name,
            "tuples_per_s": six_digits(records / application.seconds),
        }
        if worked_on > 0:
            stream["selectivity"] = six_digits(records / worked_on)
        if wrote > 0:
            stream["bytes"] = six_digits(source.work.written_bytes / wrote)
        found.append(stream | ({"shares": list(shares)} if shares else {}))
    return found


def _shares(records: tuple[float, ...]) -> list[float]:
    """The share of each target task; nothing if all are much the same."""
    total = sum(records)
    if total <= 0 or max(records) - min(records) <= EVEN_WITHIN * total / len(records):
        return []
    return [six_digits(value / total) for value in records]
