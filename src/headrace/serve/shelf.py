"""All that a server shows: runs that it follows, advice, jobs, and who looks at them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput
from headrace.serve.events import Hub, as_event
from headrace.serve.jobs import Jobs
from headrace.serve.picture import Pictures
from headrace.serve.runs import Run, find_runs

if TYPE_CHECKING:
    from headrace.advise.report import Advice

POLL_S = 0.15  # between two looks at the folders: a batch is seen well within a second
FIND_S = 2.0  # between two looks for new folders


class NotThere(InvalidInput):
    """Something that a request names does not exist."""

    kind = "not-found"


class Shelf:
    """What there is to see."""

    def __init__(self, folders: Sequence[Path] = (), advice: Sequence[Advice] = ()) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.runs: dict[str, Run] = {}
        self.hubs: dict[str, Hub] = {}
        self.advice: Mapping[str, Advice] = {f"job-{i}": one for i, one in enumerate(advice, 1)}
        self.pictures = Pictures()
        self.jobs = Jobs()
        self.closing = asyncio.Event()
        self.began_s = time.time()
        self._searched_s = 0.0

    def run(self, name: str) -> Run:
        """A run by its name in addresses."""
        if name not in self.runs:
            known = ", ".join(list(self.runs)[:12]) or "none"
            raise NotThere(f"there is no run `{name[:100]}`; there are: {known}")
        return self.runs[name]

    @property
    def viewers(self) -> int:
        """How many look."""
        return sum(len(hub.viewers) for hub in self.hubs.values())

    def look(self) -> None:
        """Read what is new, and tell the viewers."""
        if time.monotonic() - self._searched_s > FIND_S:
            self._searched_s = time.monotonic()
            self._find()
        for run in self.runs.values():
            hub = self.hubs[run.id]
            for name, data in run.refresh():
                if hub.viewers:
                    hub.tell(as_event(name, short_figures(data)))

    async def follow(self) -> None:
        """Look again and again, until the server ends."""
        while not self.closing.is_set():
            self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), POLL_S)

    async def close(self) -> None:
        """End everything that was begun."""
        self.closing.set()
        for hub in self.hubs.values():
            hub.tell(b": the server ends\n\n")
        await self.jobs.close()

    def _find(self) -> None:
        known = {run.folder for run in self.runs.values()}
        for folder in find_runs(self.folders):
            if folder not in known:
                name = self._new_id(folder)
                self.runs[name], self.hubs[name] = Run(name, folder), Hub()

    def _new_id(self, folder: Path) -> str:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.name).strip("-")[:60] or "run"
        number, found = 1, plain
        while found in self.runs:
            number += 1
            found = f"{plain}-{number}"
        return found


def short_figures(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event whose figures have no more digits than a picture shows."""
    figures = data.get("figures")
    if figures is None:
        return data
    return {**data, "figures": {name: float(f"{value:.6g}") for name, value in figures.items()}}
