"""What a batch leaves for the next one, keyed state and tuples on back edges, in files.

    commits/<batch>.json   names the files that hold everything after this batch; written last
    batches/<batch>/       files that tasks wrote in this batch, some of them by attempts that
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
from headrace.model.files import replace_file, write_whole
from headrace.model.keys import GROUPS, groups_owned_by, holding_of
from headrace.model.topology import Keyed
from headrace.run.routing import key_groups

COMMITS_KEPT = 2  # the last one is needed, the one before it is for whoever looks for a mistake
ROWS_CHECKED = 1000  # of a state table, whether their keys are the task's


@dataclass(frozen=True, slots=True)
class StateFile:
    """A component's keyed state of the key groups [first, end), in a file of the run's folder."""

    component: str
    first: int
    end: int
    file: str
    whole: bool = True  # False: the file also holds groups outside the range, now others'


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
            write_whole(first, uuid.uuid4().hex[:12], durable=True)
        return Commit(-1, run=first.read_text())

    def read(self, batch: int) -> Commit:
        content = json.loads(self._commit_file(batch).read_text())
        state = tuple(StateFile(**entry) for entry in content.pop("state"))
        carried = tuple(Carried(**entry) for entry in content.pop("carried"))
        return Commit(state=state, carried=carried, **content)

    def commit(self, commit: Commit) -> None:
        """Make a batch final, then remove what no kept commit names."""
        write_whole(self._commit_file(commit.batch), json.dumps(asdict(commit)), durable=True)
        ids = self._ids()
        needed = {
            str(self.folder / file)
            for batch in ids[-COMMITS_KEPT:]
            for file in self.read(batch).files
        }
        for batch in ids[:-COMMITS_KEPT]:
            self._commit_file(batch).unlink(missing_ok=True)
        for folder in (self.folder / "batches").glob("*"):
            if int(folder.name) <= commit.batch:
                _remove_all_but(folder, needed)

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


def read_state(files: Sequence[StateFile], folder: Path, keyed: Keyed) -> pa.Table:
    """The rows of all files."""
    tables = [keyed.schema.empty_table()]
    for entry in files:
        rows = read_table(folder / entry.file)
        if rows.schema.names != keyed.schema.names:
            before, now = (", ".join(schema.names) for schema in (rows.schema, keyed.schema))
            raise InvalidInput(
                f"the state of `{entry.component}` was kept with columns {before}; now it has {now}"
            )
        if not entry.whole:
            groups = key_groups(rows, keyed.key)
            rows = rows.filter(pa.array((groups >= entry.first) & (groups < entry.end)))
        tables.append(rows.cast(keyed.schema))
    return pa.concat_tables(tables)


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
        parts = [_clip(f, first, end) for f in files if f.component == component]
        parts = [f for f in parts if f.first < f.end]
        if not parts or parts == [replace(parts[0], first=first, end=end, whole=True)]:
            continue  # no state yet, or a file of its own already
        rows = read_state(parts, store.folder, keyed[component])
        folder = store.batch_folder(last.batch)
        path = folder / f"{component}-{first}-{end}-{uuid.uuid4().hex[:8]}.arrow"
        write_table(path, rows)
        others = [rest for f in files for rest in _cut_out(f, component, first, end)]
        files = [*others, StateFile(component, first, end, str(path.relative_to(store.folder)))]
    commit = replace(last, state=tuple(files))
    if files != list(last.state):
        store.commit(commit)
    return commit


def _cut_out(entry: StateFile, component: str, first: int, end: int) -> list[StateFile]:
    """What a file holds outside [first, end) of a component."""
    if entry.component != component or entry.end <= first or end <= entry.first:
        return [entry]
    sides = _clip(entry, 0, first), _clip(entry, end, GROUPS)
    return [side for side in sides if side.first < side.end]


def check_state(state: Any, keyed: Keyed, first: int, end: int) -> pa.Table:
    """State as a bolt returned it, checked.

    A key that belongs to another task is a mistake that would show only after a re-plan.
    """
    if not isinstance(state, pa.Table):
        raise InvalidInput(f"the new state is {type(state).__name__}; a table is needed")
    if set(state.column_names) != set(keyed.schema.names):
        columns, needed = ", ".join(state.column_names), ", ".join(keyed.schema.names)
        raise InvalidInput(f"the new state has columns {columns}; needed: {needed}")
    state = state.select(keyed.schema.names).cast(keyed.schema)
    groups = key_groups(state.slice(0, ROWS_CHECKED), keyed.key)
    if len(groups) and (groups.min() < first or groups.max() >= end):
        raise InvalidInput(
            f"the new state holds keys of other tasks: its key columns {', '.join(keyed.key)} "
            "must equal, in value and type, the fields that the inputs are grouped by"
        )
    return state


def write_table(path: Path, table: pa.Table) -> None:
    """Write an Arrow file that is whole or not there."""
    with (
        replace_file(path, durable=True) as draft,
        pa.OSFile(str(draft), "wb") as stream,
        pa.ipc.new_file(stream, table.schema) as writer,
    ):
        writer.write_table(table)


def read_table(path: Path) -> pa.Table:
    """An Arrow file, mapped into memory."""
    with pa.memory_map(str(path)) as stream:
        return pa.ipc.open_file(stream).read_all()


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
