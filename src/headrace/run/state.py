"""What a batch leaves for the next one: keyed state and tuples on back edges, in files.

    run                    the name of the run, its topology, and the version of these files
    commits/<batch>.json   names the files that hold everything after this batch; written last
    batches/<batch>/       files that tasks wrote in this batch, some of them by attempts that
                           failed: only what a commit names counts
    merged/                files of several batches put together

A batch that is run again starts from the commit before it. See
docs/decisions/0005-state-and-recovery.md.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.document import Component
from headrace.model.files import write_whole
from headrace.model.keys import GROUPS, groups_owned_by, holding_of
from headrace.model.topology import Keyed, Topology
from headrace.run.state_files import Kind, StateFile, merge, timers_of
from headrace.run.storage import StorageFailed, name_fault, write_table

VERSION = 2  # of the files of a run
COMMITS_KEPT = 2  # the last one is needed, the one before it is for whoever looks for a mistake
KINDS: tuple[Kind, ...] = ("state", "timers")


@dataclass(frozen=True, slots=True)
class Carried:
    """Tuples that a task sent along back edges, to be delivered in the next batch."""

    component: str
    number: int  # of the sending task, from 0
    stream: str
    file: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that the next batch starts from."""

    batch: int
    state: tuple[StateFile, ...] = ()  # of each component and kind, older files first
    carried: tuple[Carried, ...] = ()
    run: str = ""  # the name of the run, which its outputs bear too
    quarantined: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what happened, for people
    # Microseconds since 1970: the latest event time of each component that has one, and the first
    # watermark there was.
    latest: Mapping[str, int] = field(default_factory=dict[str, int])
    first_watermark: int | None = None

    @property
    def files(self) -> set[str]:
        return {entry.file for entry in (*self.state, *self.carried)}

    def watermark(self, topology: Topology) -> int | None:
        """The time that no row may be older than; None until every event time has been seen."""
        if not topology.times or topology.times.keys() - self.latest.keys():
            return None
        return min(
            self.latest[name] - round(time.late_s * 1e6) for name, time in topology.times.items()
        )


class Store:
    """The folder of a run: it lies where the driver and all tasks can read and write it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._name = uuid.uuid4().hex[:12]  # of a run that has not begun

    def last(self) -> Commit:
        """The last commit; one with batch -1 and a name for the run if there is none yet."""
        ids = self._ids()
        return self.read(ids[-1]) if ids else Commit(-1, run=self._about().get("run", self._name))

    def check(self, topology: Topology) -> None:
        """Refuse a folder of another topology or of another version; nothing is written."""
        about = self._about()
        if not about and self._ids():
            about = {"version": 1}
        if not about:
            return
        if about.get("version") != VERSION:
            raise InvalidInput(
                f"{self.folder}: is a run of version {about.get('version')} of these files; "
                f"this headrace continues runs of version {VERSION}",
                fix="name another folder (--checkpoint), or go on with the headrace that began it",
            )
        if about["topology"] != topology.name:
            raise InvalidInput(
                f"{self.folder}: is a run of the topology `{about['topology']}`, "
                f"and this is `{topology.name}`",
                fix="name another folder (--checkpoint)",
            )
        for entry in self.last().state:
            code = topology.code.get(entry.component)
            if code is None or code.state is None:
                raise InvalidInput(
                    f"{self.folder}: holds state of `{entry.component}`, "
                    "which keeps none in this topology",
                    fix="name another folder (--checkpoint), or keep the component as it was",
                )

    def claim(self, topology: Topology) -> None:
        """Take the folder for a run; once its first batch begins."""
        if not self._about():
            about = {"version": VERSION, "run": self.last().run, "topology": topology.name}
            with name_fault(self.folder / "run", "the run's own file"):
                (self.folder / "commits").mkdir(parents=True, exist_ok=True)
                write_whole(self.folder / "run", json.dumps(about), durable=True)

    def _about(self) -> dict[str, Any]:
        file = self.folder / "run"
        if not file.exists():
            return {}
        try:
            return json.loads(file.read_text())
        except ValueError:
            return {"version": 1}  # then it held the name alone

    def read(self, batch: int) -> Commit:
        file = self._commit_file(batch)
        try:
            content = json.loads(file.read_text())
            state = tuple(StateFile(**entry) for entry in content.pop("state"))
            carried = tuple(Carried(**entry) for entry in content.pop("carried"))
            return Commit(state=state, carried=carried, **content)
        except (ValueError, TypeError, KeyError):
            raise StorageFailed(
                f"{file}: is not a commit that can be read",
                fix=how_to_repeat(batch),
            ) from None

    def commit(self, commit: Commit, keep: Collection[str] = ()) -> None:
        """Make a batch final, then remove what no kept commit names; `keep`: files at work."""
        file = self._commit_file(commit.batch)
        with name_fault(file, "the commit"):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps(asdict(commit)), durable=True)
        ids = self._ids()
        needed = {
            str(self.folder / name)
            for batch in ids[-COMMITS_KEPT:]
            for name in (commit if batch == commit.batch else self.read(batch)).files
        } | {str(self.folder / name) for name in keep}
        for batch in ids[:-COMMITS_KEPT]:
            self._commit_file(batch).unlink(missing_ok=True)
        for folder in (self.folder / "batches").glob("*"):
            if int(folder.name) <= commit.batch:
                _remove_all_but(folder, needed)
        if (self.folder / "merged").exists():
            _remove_all_but(self.folder / "merged", needed)

    def batch_folder(self, batch: int) -> Path:
        folder = self.folder / "batches" / str(batch)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _commit_file(self, batch: int) -> Path:
        return self.folder / "commits" / f"{batch}.json"

    def _ids(self) -> list[int]:
        return sorted(int(file.stem) for file in (self.folder / "commits").glob("*.json"))


def how_to_repeat(batch: int) -> str:
    """What to do about a batch whose commit is lost."""
    return (
        f"put commits/{batch}.json back as it was; if it is lost, remove what there is of it, "
        f"spark/commits from {batch} on and spark/offsets from {batch + 1} on: "
        f"then batch {batch} is run again, from the commit before it"
    )


def files_of_task(
    files: Iterable[StateFile], name: str, component: Component, number: int
) -> tuple[StateFile, ...]:
    """The files with a task's keys (tasks from 0): several, if the task count has changed."""
    first, end = groups_of_task(component, number)
    found = (_clip(f, first, end) for f in files if f.component == name)
    return tuple(f for f in found if f.first < f.end)


def _clip(entry: StateFile, first: int, end: int) -> StateFile:
    """What a file holds of [first, end)."""
    if first <= entry.first and entry.end <= end:
        return entry
    return replace(entry, first=max(first, entry.first), end=min(end, entry.end), whole=False)


def groups_of_task(component: Component, number: int) -> tuple[int, int]:
    """The key groups [first, end) whose state a task holds."""
    if holding_of(component) == "first":
        return (0, GROUPS) if number == 0 else (0, 0)
    return groups_owned_by(number, component.tasks)


def carry_out(
    store: Store, ranges: Iterable[tuple[str, int, int]], keyed: Mapping[str, Keyed]
) -> Commit:
    """Give every (component, first, end) a state file of its own: a step of a move, as committed.

    It is called between two batches. What is kept stays the same, and so does who holds it. Once
    all steps of an order are carried out, the tasks of the new plan find whole files of their own,
    and none has to look through those of others.
    """
    last = store.last()
    files = list(last.state)
    for component, first, end in ranges:
        if component not in keyed:
            raise InvalidInput(f"`{component}` has no keyed state to move")
        for kind in KINDS:
            parts = [
                _clip(f, first, end) for f in files if (f.component, f.kind) == (component, kind)
            ]
            parts = [f for f in parts if f.first < f.end]
            if not parts or parts == [replace(parts[0], first=first, end=end, whole=True)]:
                continue  # no state yet, or a file of its own already
            columns = keyed[component] if kind == "state" else timers_of(keyed[component])
            rows = merge(parts, store.folder, columns)
            folder = store.batch_folder(last.batch)
            path = folder / f"{component}-{kind}-{first}-{end}-{uuid.uuid4().hex[:8]}.arrow"
            write_table(path, rows)
            file = str(path.relative_to(store.folder))
            others = [rest for f in files for rest in _cut_out(f, component, kind, first, end)]
            own = StateFile(component, first, end, file, kind=kind, rows=rows.num_rows)
            files = [*others, own]
    commit = replace(last, state=tuple(files))
    if files != list(last.state):
        store.commit(commit)
    return commit


def _cut_out(entry: StateFile, component: str, kind: Kind, first: int, end: int) -> list[StateFile]:
    """What a file holds outside [first, end) of a component."""
    other = (entry.component, entry.kind) != (component, kind)
    if other or entry.end <= first or end <= entry.first:
        return [entry]
    sides = _clip(entry, 0, first), _clip(entry, end, GROUPS)
    return [side for side in sides if side.first < side.end]


def _remove_all_but(folder: Path, needed: set[str]) -> None:
    keep = [file for file in folder.iterdir() if str(file) in needed]
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for file in folder.iterdir():
        if file in keep:
            continue
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)
