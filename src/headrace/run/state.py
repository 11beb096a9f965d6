"""What a batch leaves for the next one: keyed state and the tuples on back edges, as files that a commit names.

    commits/<batch>.json   the files that hold everything after this batch; written last, in one
    step batches/<batch>/       files that tasks wrote in this batch, some of them by attempts that
    failed: only what a commit names counts

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.errors import InvalidInput
from headrace.model.document import Component
from headrace.model.topology import Keyed, first_task_holds_state
from headrace.run.routing import GROUPS, key_groups, owned

KEPT = (
    2  # commits; the last one is needed, the one before it is there for whoever looks for a mistake
)
CHECKED = 1000  # rows of a state table whose keys are checked


@dataclass(frozen=True, slots=True)
class StateFile:
    """Keyed state of the key groups [first, end) of a component, in a file under the run's folder."""

    component: str
    first: int
    end: int
    file: str
    whole: bool = (
        True  # False: the file also holds groups outside the range, which are no longer its own
    )


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
    state: tuple[StateFile, ...] = ()
    carried: tuple[Carried, ...] = ()
    run: str = ""  # the name of the run, which its outputs bear too
    quarantined: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what happened, for people

    @property
    def files(self) -> set[str]:
        return {entry.file for entry in (*self.state, *self.carried)}


class Store:
    """The folder of a run: it lies where the driver and all tasks can read and write it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        (self.folder / "commits").mkdir(parents=True, exist_ok=True)

    def last(self) -> Commit:
        """The last commit; one with batch -1 and a name for the run if there is none yet."""
        ids = self._ids()
        if ids:
            return self.read(ids[-1])
        first = self.folder / "run"
        if not first.exists():
            write_whole(first, uuid.uuid4().hex[:12].encode())
        return Commit(-1, run=first.read_text())

    def read(self, batch: int) -> Commit:
        content = json.loads(self._commit_file(batch).read_text())
        state = tuple(StateFile(**entry) for entry in content.pop("state"))
        carried = tuple(Carried(**entry) for entry in content.pop("carried"))
        return Commit(state=state, carried=carried, **content)

    def commit(self, commit: Commit) -> None:
        """Make a batch final, then remove what no kept commit names."""
        write_whole(self._commit_file(commit.batch), json.dumps(asdict(commit)).encode())
        ids = self._ids()
        kept = {str(self.folder / file) for batch in ids[-KEPT:] for file in self.read(batch).files}
        for batch in ids[:-KEPT]:
            self._commit_file(batch).unlink(missing_ok=True)
        for folder in (self.folder / "batches").glob("*"):
            if int(folder.name) <= commit.batch:
                _remove_all_but(folder, kept)

    def batch_folder(self, batch: int) -> Path:
        folder = self.folder / "batches" / str(batch)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _commit_file(self, batch: int) -> Path:
        return self.folder / "commits" / f"{batch}.json"

    def _ids(self) -> list[int]:
        return sorted(int(file.stem) for file in (self.folder / "commits").glob("*.json"))


def files_of_task(
    files: Iterable[StateFile], name: str, component: Component, number: int
) -> tuple[StateFile, ...]:
    """The files that hold a task's keys (numbers from 0): several, or parts of some, where the number of tasks has changed."""
    first, end = groups_of_task(component, number)
    found = (_clipped(f, first, end) for f in files if f.component == name)
    return tuple(f for f in found if f.first < f.end)


def _clipped(entry: StateFile, first: int, end: int) -> StateFile:
    """The part of a file that lies in [first, end)."""
    if first <= entry.first and entry.end <= end:
        return entry
    return replace(entry, first=max(first, entry.first), end=min(end, entry.end), whole=False)


def groups_of_task(component: Component, number: int) -> tuple[int, int]:
    """The key groups [first, end) whose state a task holds."""
    if first_task_holds_state(component):
        return (0, GROUPS) if number == 0 else (0, 0)
    return owned(number, component.tasks)


def read_state(files: Sequence[StateFile], folder: Path, keyed: Keyed) -> pa.Table:
    """The rows of all files."""
    tables = [keyed.schema.empty_table()]
    for entry in files:
        rows = read_table(folder / entry.file)
        if rows.schema.names != keyed.schema.names:
            raise InvalidInput(
                f"the state of `{entry.component}` was kept with columns {', '.join(rows.schema.names)}; "
                f"now it has {', '.join(keyed.schema.names)}"
            )
        if not entry.whole:
            groups = key_groups(rows, keyed.key)
            rows = rows.filter(pa.array((groups >= entry.first) & (groups < entry.end)))
        tables.append(rows.cast(keyed.schema))
    return pa.concat_tables(tables)


def check_state(state: Any, keyed: Keyed, first: int, end: int) -> pa.Table:
    """State as a bolt returned it; a key that belongs to another task is a mistake that would show only after a re-plan."""
    if not isinstance(state, pa.Table):
        raise InvalidInput(f"the new state is {type(state).__name__}; a table is needed")
    if set(state.column_names) != set(keyed.schema.names):
        raise InvalidInput(
            f"the new state has columns {', '.join(state.column_names)}; needed: {', '.join(keyed.schema.names)}"
        )
    state = state.select(keyed.schema.names).cast(keyed.schema)
    groups = key_groups(state.slice(0, CHECKED), keyed.key)
    if len(groups) and (groups.min() < first or groups.max() >= end):
        raise InvalidInput(
            f"the new state holds keys of other tasks: its key columns {', '.join(keyed.key)} must equal, in value and type, the fields "
            "that the inputs are grouped by"
        )
    return state


def write_table(path: Path, table: pa.Table) -> None:
    """Write an Arrow file that is whole or not there."""
    half = path.with_name(f".{path.name}.part")
    with pa.OSFile(str(half), "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    to_disk(half)
    half.replace(path)


def read_table(path: Path) -> pa.Table:
    """An Arrow file, mapped into memory."""
    with pa.memory_map(str(path)) as stream:
        return pa.ipc.open_file(stream).read_all()


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file in one step that survives a crash."""
    half = path.with_name(f".{path.name}.part")
    half.write_bytes(content)
    to_disk(half)
    half.replace(path)
    to_disk(path.parent)


def to_disk(path: Path) -> None:
    """Have a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_all_but(folder: Path, kept: set[str]) -> None:
    held = [file for file in folder.iterdir() if str(file) in kept]
    if not held:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for file in folder.iterdir():
        if file not in held:
            shutil.rmtree(file, ignore_errors=True) if file.is_dir() else file.unlink(
                missing_ok=True
            )
