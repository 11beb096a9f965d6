"""Runs as the server sees them: their journals, decisions and verdicts, followed as they grow."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.control import history
from headrace.control.history import Entry
from headrace.control.verdicts import LOOP, Verdict, verdicts
from headrace.control.verdicts import NAME as VERDICTS
from headrace.errors import HeadraceError
from headrace.run.journal import NAME as JOURNAL
from headrace.serve.columns import Columns
from headrace.serve.lines import add_all, figures_of

CHUNK = 16_000_000  # bytes of a journal that are read at once
LONGEST_LINE = 64_000_000
RECENT = 64  # lines that are kept as they are
MOST_EVENTS = 64  # of one look; viewers that missed more load again

Event = tuple[str, Mapping[str, Any]]  # what happened, and what to tell viewers


@dataclass(slots=True)
class Run:
    """A run's folder; what is here is as new as the last `refresh`."""

    id: str
    folder: Path
    name: str = ""
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    telemetry: Path | None = None
    began_s: float | None = None
    ended_s: float | None = None
    failure: str | None = None
    simulated: bool = False
    pid: int | None = None
    plans: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    changes: list[tuple[float, str]] = field(default_factory=list[Any])  # when each plan came
    columns: Columns = field(default_factory=Columns)
    recent: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT))
    decisions: list[Entry] = field(default_factory=list[Entry])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    loop: Mapping[str, Any] | None = None
    batches: int = 0
    tuples: int = 0
    fault: str | None = None  # why something in the folder cannot be read
    _read: int = 0  # bytes of the journal
    _rest: bytes = b""
    _before_s: float | None = None
    _new_plan: bool = False
    _stamps: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def newest(self) -> Mapping[str, Any] | None:
        """The last batch."""
        return self.recent[-1] if self.recent else None

    @property
    def state(self) -> str:
        """waiting, running, ended, failed, or stopped: gone without a word."""
        if self.began_s is None:
            return "waiting"
        if self.ended_s is not None:
            return "failed" if self.failure else "ended"
        return "running" if is_alive(self.pid) else "stopped"

    @property
    def takes_plans(self) -> bool:
        """Whether a loop that is at work there listens to people."""
        listens = self.loop is not None and is_alive(self.loop.get("pid"))
        return listens and self.state in ("running", "waiting")

    def plan_names(self) -> list[str]:
        """The plans in the order in which they came."""
        return list(self.plans)

    def refresh(self) -> Sequence[Event]:
        """Read what is new; what viewers are to be told of it, no more than the newest."""
        before = self.state, self.takes_plans
        told: deque[Event] = deque(maxlen=MOST_EVENTS)
        add_all(self.columns, self._rows(told))
        if self._changed(history.NAME) | self._changed(VERDICTS):
            try:
                self.decisions = history.entries(self.folder)
            except HeadraceError as error:
                self.fault = error.message
            self.verdicts = verdicts(self.folder)
            told.append(("decisions", {"count": len(self.decisions)}))
        if self._changed(LOOP):
            self.loop = read_json(self.folder / LOOP)
        if (self.state, self.takes_plans) != before:
            told.append(("state", {"state": self.state, "takes_plans": self.takes_plans}))
        return told if len(told) < MOST_EVENTS else [("reset", {})]

    def _rows(self, told: deque[Event]) -> Iterator[tuple[float, dict[str, float]]]:
        for line in self._lines():
            match line.get("kind"):
                case "begin":
                    self._begin(line)
                    told.append(("begin", {}))
                case "plan":
                    name, at_s = self._new_name(line), self._before_s or self.began_s or 0.0
                    self.plans[name] = {k: line[k] for k in ("tasks", "placement")}
                    self.changes.append((at_s, name))
                    self._new_plan = True
                    told.append(("plan", {"name": name}))
                case "batch":
                    figures = figures_of(line, self._before_s, len(self.changes) - 1)
                    self._before_s = float(line["at_s"])
                    if self._new_plan:  # it held from the start of this batch on
                        began_s = self._before_s - float(line["seconds"])
                        self.changes[-1] = (began_s, self.changes[-1][1])
                        self._new_plan = False
                    self.batches += 1
                    self.tuples += int(line["tuples"])
                    self.recent.append(line)
                    told.append(("batch", {"at_s": line["at_s"], "figures": figures}))
                    yield float(line["at_s"]), figures
                case "end":
                    self.ended_s, self.failure = float(line["at_s"]), line.get("failure")
                case _:
                    continue

    def _begin(self, line: Mapping[str, Any]) -> None:
        """A run begins, or goes on after a pause: that is no time between batches."""
        self.document = line["document"]
        self.name = str(self.document.get("topology", {}).get("name", self.folder.name))
        self.began_s = self.began_s or float(line["at_s"])
        self.ended_s, self.failure, self._before_s = None, None, None
        self.pid, self.simulated = line.get("pid"), bool(line.get("simulated"))
        told = line.get("telemetry")
        beside = self.folder / "telemetry"  # where it is, if the folder was moved
        self.telemetry = Path(told) if told and Path(told).is_dir() else beside

    def _new_name(self, line: Mapping[str, Any]) -> str:
        """A plan's name; another plan of the same name gets a number."""
        name, section = str(line["name"]), {k: line[k] for k in ("tasks", "placement")}
        number, found = 1, name
        while found in self.plans and self.plans[found] != section:
            number += 1
            found = f"{name} ({number})"
        return found

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        """The whole lines that came since the last look; others are left out."""
        try:
            with (self.folder / JOURNAL).open("rb") as journal:
                if journal.seek(0, os.SEEK_END) < self._read:  # it was begun again
                    self.__init__(self.id, self.folder)
                journal.seek(self._read)
                while chunk := journal.read(CHUNK):
                    self._read += len(chunk)
                    *whole, self._rest = (self._rest + chunk).split(b"\n")
                    if len(self._rest) > LONGEST_LINE:
                        self._rest = b""
                    yield from filter(None, map(as_line, whole))
        except OSError:
            return

    def _changed(self, name: str) -> bool:
        try:
            facts = os.stat(self.folder / name)
        except OSError:
            return False
        stamp = (facts.st_mtime_ns, facts.st_size)
        if self._stamps.get(name) == stamp:
            return False
        self._stamps[name] = stamp
        return True


def as_line(data: bytes) -> Mapping[str, Any] | None:
    """A line of a journal; None if it is not one."""
    try:
        line = json.loads(data)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None  # pyright: ignore[reportUnknownVariableType]


def read_json(file: Path) -> Mapping[str, Any] | None:
    """What a small file holds; None while it is not there."""
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None


def is_alive(pid: object) -> bool:
    """Whether a process of this machine is at work."""
    if not isinstance(pid, int) or pid <= 0:  # 0 would be our own group
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """The folders that are runs, or hold runs; one that is not there yet is a run to come."""
    found: list[Path] = []
    for folder in folders:
        if (folder / JOURNAL).exists() or not folder.exists():
            found.append(folder)
            continue
        inside = sorted(f.parent for f in folder.glob(f"*/{JOURNAL}"))
        found += inside or [folder]
    return list(dict.fromkeys(found))
