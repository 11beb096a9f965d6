"""Files of state put together while later batches run, so that a key is found in few of them.

One range of keys is at work at a time, in a thread of the driver; no batch waits for it. The files
it read stay in force until a commit names the new one in their place. If a plan has divided the
range otherwise meanwhile, the new file is dropped.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.model.topology import Keyed, Topology
from headrace.run.state import KINDS, Commit, files_of_task, groups_of_task
from headrace.run.state_files import Life, StateFile, merge, merge_all, timers_of
from headrace.run.storage import StorageFailed, write_table

MANY = 8  # files of a range from which on the later ones are put together
LARGE = 0.5  # share of the oldest file's rows from which on it is written again, too


@dataclass(frozen=True, slots=True)
class Job:
    """Files of one range that follow each other in age, to become one."""

    files: tuple[StateFile, ...]
    groups: tuple[int, int]
    all: bool  # from the oldest on
    keyed: Keyed
    life: Life | None

    @property
    def names(self) -> list[str]:
        return [entry.file for entry in self.files]


class Merging:
    """The work on one run's files."""

    def __init__(self, folder: Path, topology: Topology) -> None:
        self._folder, self._topology = folder, topology
        self._job: Job | None = None
        self._name = ""
        self._done: StateFile | None = None
        self._thread: threading.Thread | None = None

    @property
    def at_work(self) -> tuple[str, ...]:
        """Files that no commit names yet."""
        return (self._name,) if self._job is not None else ()

    def begin(self, commit: Commit) -> None:
        """Start on the range that has most files, if one has many and nothing is at work."""
        if self._job is not None:
            return
        job = next_job(commit, self._topology)
        if job is not None:
            self._job, self._done = job, None
            self._name = f"merged/{job.files[0].component}-{uuid.uuid4().hex[:8]}.arrow"
            self._thread = threading.Thread(target=self._work, args=(job, self._name), daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for what is at work."""
        if self._thread is not None:
            self._thread.join()

    def _work(self, job: Job, name: str) -> None:
        try:
            self._done = put_together(job, self._folder, name)
        except StorageFailed:
            self._job = None  # a batch that needs the file will say so

    def swap_in(self, commit: Commit) -> Commit:
        """The commit with the new file in the place of those it was made of, once it is there."""
        job, done = self._job, self._done
        if job is None or done is None:
            return commit
        self._job = self._done = None
        if not (self._folder / done.file).exists():
            return commit  # somebody else has committed meanwhile
        if tuple(e for e in commit.state if e.file in job.names and _within(e, done)) != job.files:
            return commit
        first = next(i for i, e in enumerate(commit.state) if e == job.files[0])
        state = [e for e in commit.state if e not in job.files]
        return replace(commit, state=(*state[:first], done, *state[first:]))


def _within(entry: StateFile, other: StateFile) -> bool:
    same = (entry.component, entry.kind) == (other.component, other.kind)
    return same and other.first <= entry.first and entry.end <= other.end


def next_job(commit: Commit, topology: Topology) -> Job | None:
    """What to put together next: of the task that has most files, if it has many."""
    found = list(_files_of_tasks(commit, topology))
    if not found:
        return None
    files, groups = max(found, key=lambda one: len(one[0]))
    if len(files) < MANY:
        return None
    keyed, mark = topology.code[files[0].component].state, commit.watermark(topology)
    assert keyed is not None
    life = None
    if keyed.ttl_s is not None and mark is not None and commit.first_watermark is not None:
        life = mark - round(keyed.ttl_s * 1e6), commit.first_watermark
    if files[0].kind == "timers":
        keyed = timers_of(keyed)
    if sum(entry.rows for entry in files[1:]) >= LARGE * files[0].rows:
        return Job(files, groups, True, keyed, life)
    return Job(files[1:], groups, False, keyed, None)


def _files_of_tasks(
    commit: Commit, topology: Topology
) -> Iterator[tuple[tuple[StateFile, ...], tuple[int, int]]]:
    """The files of every task of the batch, and the key groups that it holds."""
    counts: Mapping[str, int] = commit.facts.get("tasks", {})
    for name in dict.fromkeys(entry.component for entry in commit.state):
        component = topology.components[name].model_copy(update={"tasks": counts.get(name, 1)})
        for number in range(component.tasks):
            found = files_of_task(commit.state, name, component, number)
            for kind in KINDS:
                files = tuple(entry for entry in found if entry.kind == kind)
                yield files, groups_of_task(component, number)


def put_together(job: Job, folder: Path, name: str) -> StateFile:
    """Write the file that says what several say."""
    (folder / "merged").mkdir(exist_ok=True)
    if job.all:
        rows = merge_all(job.files, folder, job.keyed, job.life)
    else:
        rows = merge(job.files, folder, job.keyed)
    write_table(folder / name, rows)
    kind = job.files[0].kind
    return StateFile(job.files[0].component, *job.groups, name, kind=kind, rows=rows.num_rows)
