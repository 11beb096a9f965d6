"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

import headrace
from headrace.serve.runs import Run
from headrace.serve.shelf import Shelf

TYPES = {
    "headrace_info": ("gauge", "the version that serves"),
    "headrace_viewers": ("gauge", "browsers that look"),
    "headrace_jobs": ("gauge", "jobs that wait or are at work"),
    "headrace_run_up": ("gauge", "1 while the run is at work"),
    "headrace_run_batches_total": ("counter", "batches that were committed"),
    "headrace_run_tuples_total": ("counter", "tuples that the spouts took in"),
    "headrace_run_tuples_per_second": ("gauge", "tuples/s that the spouts took in last"),
    "headrace_run_batch_seconds": ("gauge", "seconds of the last batch"),
    "headrace_run_latency_seconds": ("gauge", "age of a tuple at its commit, at most"),
    "headrace_run_remote_mbps": ("gauge", "Mbit/s between nodes"),
    "headrace_run_misplaced_tasks": ("gauge", "tasks that ran elsewhere than planned"),
    "headrace_run_decisions_total": ("counter", "decisions of the loop"),
    "headrace_run_moves_total": ("counter", "decisions that were carried out"),
    "headrace_node_cpu_points": ("gauge", "CPU of a node's tasks; 100 is one core"),
    "headrace_node_memory_mb": ("gauge", "memory of a node's tasks"),
    "headrace_node_mbps": ("gauge", "Mbit/s of the busier direction of a node's link"),
    "headrace_stream_tuples_per_second": ("gauge", "tuples/s from one component to another"),
}
OF_RUN = {
    "tuples_per_s": "headrace_run_tuples_per_second",
    "batch_s": "headrace_run_batch_seconds",
    "latency_s": "headrace_run_latency_seconds",
    "remote_mbps": "headrace_run_remote_mbps",
    "misplaced": "headrace_run_misplaced_tasks",
}
OF_NODE = {
    "cpu": "headrace_node_cpu_points",
    "memory_mb": "headrace_node_memory_mb",
    "mbps": "headrace_node_mbps",
}
Sample = tuple[str, dict[str, str], float]


def metrics(shelf: Shelf) -> str:
    """All metrics; samples of one name together, as the format asks."""
    samples: dict[str, list[str]] = {name: [] for name in TYPES}
    for name, labels, value in _samples(shelf):
        inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        samples[name].append(f"{name}{{{inside}}} {value:.10g}" if inside else f"{name} {value:g}")
    lines: list[str] = []
    for name, found in samples.items():
        if found:
            kind, words = TYPES[name]
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *found]
    return "\n".join(lines) + "\n"


def _samples(shelf: Shelf) -> Iterator[Sample]:
    yield "headrace_info", {"version": headrace.__version__}, 1.0
    yield "headrace_viewers", {}, shelf.viewers
    busy = [job for job in shelf.jobs.jobs.values() if job.state in ("waiting", "working")]
    yield "headrace_jobs", {}, len(busy)
    for run in shelf.runs.values():
        yield from _run_samples(run)


def _run_samples(run: Run) -> Iterator[Sample]:
    own = {"run": run.id, "topology": run.name}
    yield "headrace_run_up", own, float(run.state == "running")
    yield "headrace_run_batches_total", own, run.batches
    yield "headrace_run_tuples_total", own, run.tuples
    yield "headrace_run_decisions_total", own, len(run.decisions)
    yield "headrace_run_moves_total", own, sum(entry.applied for entry in run.decisions)
    if not run.columns.rows:
        return
    for figure, value in run.columns.row(run.columns.rows - 1).items():
        kind, colon, name = figure.partition(":")
        if not colon and figure in OF_RUN:
            yield OF_RUN[figure], own, value
        elif colon and kind in OF_NODE:
            yield OF_NODE[kind], {**own, "node": name}, value
        elif kind == "stream":
            source, _, target = name.partition("→")
            yield "headrace_stream_tuples_per_second", {**own, "from": source, "to": target}, value


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
