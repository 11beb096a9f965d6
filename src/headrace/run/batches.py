"""One batch from the plan in force to the commit, whoever runs its stages.

Take the plan in force, compile the stages, have them run (`Job`), compare hosts with the plan,
deliver to the sinks, commit, record. A batch that was committed before is passed over.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.files import write_whole
from headrace.model.topology import Topology
from headrace.run.batch_telemetry import record_batch
from headrace.run.compiling import CompiledBatch, compile_batch
from headrace.run.crossing import Crossed, Whereabouts, find_tasks, measure_crossing
from headrace.run.merging import Merging
from headrace.run.placement import Placement, PlanInForce
from headrace.run.seats import TaskReport
from headrace.run.stages import stages
from headrace.run.state import Commit, Store, how_to_repeat
from headrace.run.storage import StorageFailed

OnError = Literal["stop", "quarantine"]
# Runs the stages; gives a report of every task.
RunStages = Callable[[CompiledBatch, Topology], Sequence[TaskReport]]
SaveInput = Callable[[Path], None]  # writes the batch's input into a folder


class BoltFailed(HeadraceError):
    """A component's own code raised an error."""

    kind = "bolt-failed"


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What is known about a batch once it is over."""

    batch: int
    seconds: float
    plan: str | None
    tuples: int  # that the spouts took from their sources
    remote_bytes: int  # between nodes, as the tasks really ran
    total_bytes: int
    misplaced: tuple[str, ...]  # tasks that did not run on the node, or in the worker, of the plan
    reports: tuple[TaskReport, ...] = field(repr=False, default=())
    failure: str | None = None  # the batch was put aside
    stages_s: float = 0.0  # of its seconds, until the last task was done: the rest is the commit
    ended: float = 0.0  # seconds since 1970
    crossed: Crossed = field(default_factory=Crossed)
    shared: tuple[str, ...] = ()  # workers without a process of their own, as node:worker


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run."""

    checkpoint: Path  # a folder that the driver and all tasks can read and write
    hosts: Mapping[str, str] | None = None  # node -> host; None: places are not looked at
    batches: int | None = None  # stop after so many; None: when the sources end, or never
    once: bool = False  # take what the sources hold now, batch by batch, and end
    interval_s: float = 0.0  # least time from the start of one batch to the start of the next
    telemetry: Path | None = None
    on_error: OnError = "stop"
    listen: Callable[[BatchDone], None] = lambda done: None


class Batches:
    """The batches of a topology, one after another."""

    def __init__(self, topology: Topology, plan: PlanInForce, settings: Settings) -> None:
        topology.check_runnable()
        self.topology, self.plan, self.settings = topology, plan, settings
        self.order = stages(topology.components)
        self.store = Store(settings.checkpoint)
        self.store.check(topology)
        run_name = self.store.last().run
        for output in topology.outputs:
            output.sink.check(run_name)
        self._claimed = False
        self._merging = Merging(settings.checkpoint, topology)

    def run(self, batch: int, run_stages: RunStages, save_input: SaveInput) -> BatchDone | None:
        """Run a batch; None if it was committed before."""
        last, start = self.store.last(), time.time()
        if last.batch > batch:
            raise InvalidInput(
                f"{self.settings.checkpoint}: its commits are ahead of the stream; "
                "the folder was changed by hand"
            )
        if last.batch == batch:
            return None
        if last.batch < batch - 1:
            raise StorageFailed(
                f"{self.settings.checkpoint}: the stream goes on with batch {batch}, "
                f"and the commit of batch {batch - 1} is not there",
                fix=how_to_repeat(last.batch + 1),
            )
        self._claim(last)
        placement = self.plan.current()
        topology = self.topology if placement is None else self.topology.with_tasks(placement.tasks)
        self.store.batch_folder(batch)
        attempt, folder = uuid.uuid4().hex[:8], self.settings.checkpoint
        ready = compile_batch(
            topology, self.order, placement, last, batch=batch, attempt=attempt, folder=folder
        )
        began = time.time()
        reports = run_stages(ready, topology)
        stages_s = time.time() - began
        failed = next((r for r in reports if r.failure is not None), None)
        if failed is not None and failed.storage:
            raise StorageFailed(
                f"task {failed.task}, batch {batch}: {failed.failure}",
                task=failed.task,
                fix="mend it and start again: the run goes on from the last commit",
            )
        if failed is not None:
            self._put_aside(failed, batch, save_input)
            for i, output in enumerate(topology.outputs):
                # Nothing of the batch, and what tasks have written goes away.
                output.sink.deliver(batch, ready.parts[i], ())
            facts = {"task": failed.task, "error": failed.failure}
            aside = replace(last, batch=batch, quarantined=True, facts=facts)
            self.store.commit(aside, keep=self._merging.at_work)
        else:
            for i, output in enumerate(topology.outputs):
                files = [Path(file) for r in reports for number, file in r.parts if number == i]
                output.sink.deliver(batch, ready.parts[i], files)
            self._commit(topology, placement, reports, batch, last)
        where = find_tasks(reports, self.settings.hosts, placement)
        done = self._outcome(reports, where, placement, batch, time.time() - start, failed)
        done = replace(done, stages_s=stages_s)
        if self.settings.telemetry is not None and failed is None:
            record_batch(self.settings.telemetry, topology, batch, reports, where, placement)
        self.settings.listen(done)
        return done

    def wait(self) -> None:
        """Wait for files of state that are being put together."""
        self._merging.wait()

    def _claim(self, last: Commit) -> None:
        """Take the run's folder and its outputs, once a first batch is there."""
        if not self._claimed:
            self.store.claim(self.topology)
            for output in self.topology.outputs:
                output.sink.open(last.run)
            self._claimed = True

    def _commit(
        self,
        topology: Topology,
        placement: Placement | None,
        reports: Sequence[TaskReport],
        batch: int,
        last: Commit,
    ) -> None:
        """Make a batch final: the next one starts from what its tasks have written."""
        folder = self.settings.checkpoint
        state = dict.fromkeys(entry for r in reports for entry in r.state)
        carried = tuple(entry for r in reports for entry in r.carried)
        for entry in (*state, *carried):
            if not (folder / entry.file).exists():
                raise InvalidInput(
                    f"{folder}: {entry.file} was written by a task and is not there; "
                    "all nodes must share the folder"
                )
        facts = {
            "plan": placement.name if placement else None,
            "tasks": {n: c.tasks for n, c in topology.components.items()},
        }
        latest = dict(last.latest)
        for r in reports:
            if r.latest is not None:
                latest[r.component] = max(r.latest, latest.get(r.component, r.latest))
        commit = Commit(batch, tuple(state), carried, last.run, facts=facts, latest=latest)
        mark, first = commit.watermark(topology), last.first_watermark
        commit = replace(commit, first_watermark=mark if first is None else first)
        commit = self._merging.swap_in(commit)
        self.store.commit(commit, keep=self._merging.at_work)
        self._merging.begin(commit)

    def _put_aside(self, failed: TaskReport, batch: int, save_input: SaveInput) -> None:
        """Keep the batch that a component could not take, or give up."""
        if self.settings.on_error == "stop":
            raise BoltFailed(
                f"component `{failed.component}`, task {failed.task}, batch {batch}: "
                f"{failed.failure}",
                task=failed.task,
                fix="mend the component and start again, "
                "or put such batches aside with --on-error quarantine",
            )
        folder = self.settings.checkpoint / "quarantine" / f"batch={batch}"
        folder.mkdir(parents=True, exist_ok=True)
        save_input(folder / "input")
        error = {
            "batch": batch,
            "component": failed.component,
            "task": failed.task,
            "error": failed.failure,
        }
        write_whole(folder / "error.json", json.dumps(error), durable=True)

    def _outcome(
        self,
        reports: Sequence[TaskReport],
        where: Whereabouts,
        placement: Placement | None,
        batch: int,
        seconds: float,
        failed: TaskReport | None,
    ) -> BatchDone:
        crossed = measure_crossing(reports, where)
        checked = self.settings.hosts is not None
        return BatchDone(
            batch=batch,
            seconds=seconds,
            plan=placement.name if placement else None,
            tuples=sum(r.tuples_in for r in reports if self.topology.components[r.component].spout),
            remote_bytes=crossed.node_bytes,
            total_bytes=crossed.bytes,
            misplaced=where.misplaced(placement) if placement is not None and checked else (),
            reports=tuple(reports),
            failure=None if failed is None else f"{failed.task}: {failed.failure}",
            ended=time.time(),
            crossed=crossed,
            shared=where.shared(),
        )
