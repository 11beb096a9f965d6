"""What a run shows: a line after every batch, and its numbers at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.shared import echo, print_json

if TYPE_CHECKING:
    from headrace.model.topology import Topology
    from headrace.run.batches import BatchDone, Settings
    from headrace.run.engine import RunDone


def say(message: str) -> None:
    echo(message, err=True)


class Listener:
    """Prints a line after every batch, and keeps what the summary needs."""

    def __init__(self, name: str | None = None) -> None:
        self.batches: list[BatchDone] = []
        self.name = name  # of the topology, where there are several

    def listen(self, done: BatchDone) -> None:
        self.batches.append(done)
        say(batch_line(done) if self.name is None else f"{self.name}: {batch_line(done)}")

    def summary(self, where: Path, ended: RunDone | None) -> dict[str, Any]:
        """The run in numbers."""
        done = self.batches
        return {
            "batches": len(done),
            "tuples": sum(d.tuples for d in done),
            "seconds": [round(d.seconds, 3) for d in done],
            "remote_bytes": sum(d.remote_bytes for d in done),
            "worker_bytes": sum(d.crossed.worker_bytes for d in done),  # remote ones included
            "total_bytes": sum(d.total_bytes for d in done),
            # As Spark counts what its shuffles read: compressed, unless that is turned off.
            "spark_remote_bytes": ended.spark_remote_bytes if ended is not None else None,
            "spark_total_bytes": ended.spark_total_bytes if ended is not None else None,
            "misplaced": sum(len(d.misplaced) for d in done),
            "shared_workers": sorted({name for d in done for name in d.shared}),
            "quarantined": sum(d.failure is not None for d in done),
            "plans": list(dict.fromkeys(d.plan for d in done if d.plan is not None)),
            "checkpoint": str(where),
        }

    def show_summary(self, where: Path, ended: RunDone | None) -> None:
        """Print the run in numbers."""
        numbers = self.summary(where, ended)
        echo(
            f"{numbers['batches']} batches, {numbers['tuples']:,} tuples, "
            f"{numbers['misplaced']} tasks misplaced, "
            f"{numbers['quarantined']} batches put aside; to go on, run again with {where}"
        )
        if ended is not None:
            echo(
                f"between nodes: {numbers['remote_bytes']:,} bytes as tasks sent them; between "
                f"workers {numbers['worker_bytes']:,}, and {numbers['spark_remote_bytes']:,} as "
                "Spark read them from its shuffles"
            )
        if numbers["shared_workers"]:
            names = ", ".join(numbers["shared_workers"])
            echo(f"workers that shared a process (a node has too little memory or slots): {names}")


@dataclass(frozen=True, slots=True)
class Job:
    """A topology to run, and how."""

    topology: Topology
    where: Path  # as the user names it
    settings: Settings
    listener: Listener

    @property
    def telemetry(self) -> Path:
        assert self.settings.telemetry is not None
        return self.settings.telemetry


def show_summaries(jobs: Sequence[Job], done: Mapping[str, RunDone], as_json: bool) -> None:
    """Print every run in numbers."""
    if as_json:
        runs = {
            j.topology.name: j.listener.summary(j.where, done.get(j.topology.name)) for j in jobs
        }
        one = {"run": next(iter(runs.values()))} if len(jobs) == 1 else {"runs": runs}
        print_json({"format": "headrace/1", **one})
        return
    for job in jobs:
        if len(jobs) > 1:
            echo(f"{job.topology.name}:")
        job.listener.show_summary(job.where, done.get(job.topology.name))


def batch_line(done: BatchDone) -> str:
    """A batch in one line."""
    line = (
        f"batch {done.batch}: {done.tuples:,} tuples in {done.seconds:.2f} s, "
        f"{done.remote_bytes:,} of {done.total_bytes:,} bytes between nodes, "
        f"{done.crossed.worker_bytes:,} between workers"
    )
    if done.plan is not None:
        line += f", plan {done.plan}"
    if done.misplaced:
        line += f", {len(done.misplaced)} misplaced: {', '.join(done.misplaced[:5])}"
    return line if done.failure is None else f"{line}; put aside: {done.failure}"
