"""Work that is asked for: each job a process of its own, limited and stoppable."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.errors import HeadraceError

AT_ONCE = 2  # jobs at work
MOST_WAITING = 16
MOST_KEPT = 64  # with their answers
MOST_ANSWER = 48_000_000  # bytes
MOST_S = 120.0  # of one job, at most
SPARE_S = 40.0  # for the start, the drawing and the simulation, beyond the seconds of the search
STOPPED = {"kind": "stopped", "message": "it was stopped"}

State = Literal["waiting", "working", "done", "failed", "stopped"]


class Busy(HeadraceError):
    """There is too much to do already."""

    kind = "busy"


@dataclass(slots=True)
class Job:
    """A job and what came of it."""

    id: str
    request: Mapping[str, Any]
    title: str
    asked_s: float
    state: State = "waiting"
    answer: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    seconds: float | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def to_json(self, *, whole: bool = True) -> dict[str, Any]:
        """The job, with its answer if it is to be looked at whole."""
        found: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "state": self.state,
            "asked_s": self.asked_s,
            "seconds": self.seconds,
            "error": self.error,
        }
        return found | {"answer": self.answer} if whole else found


class Jobs:
    """The jobs of a server."""

    def __init__(self, at_once: int = AT_ONCE, spare_s: float = SPARE_S) -> None:
        self.jobs: dict[str, Job] = {}
        self.spare_s = spare_s
        self._turn = asyncio.Semaphore(at_once)
        self._number = 0

    def ask(self, request: Mapping[str, Any], title: str) -> Job:
        """Begin a job, or refuse while there are too many."""
        waiting = sum(job.state == "waiting" for job in self.jobs.values())
        if waiting >= MOST_WAITING:
            raise Busy(f"{waiting} jobs wait already; stop one, or ask again later")
        self._number += 1
        job = Job(f"job-{self._number}", request, title, time.time())
        self._make_room()
        self.jobs[job.id] = job
        job.task = asyncio.create_task(self._do(job))
        return job

    async def stop(self, job: Job) -> None:
        """Stop a job; its process is gone when this returns."""
        if job.task is not None and not job.task.done():
            job.task.cancel()
            await asyncio.wait([job.task])
        if job.state == "waiting":  # it was never begun
            job.state, job.error = "stopped", STOPPED

    async def close(self) -> None:
        """Stop all of them."""
        for job in list(self.jobs.values()):
            await self.stop(job)

    async def _do(self, job: Job) -> None:
        limit_s = min(float(job.request["seconds"]) + self.spare_s, MOST_S)
        try:
            async with self._turn:
                job.state = "working"
                began = time.monotonic()
                answer = await answer_of(job.request, limit_s)
                job.seconds = time.monotonic() - began
                job.answer, job.error = answer.get("answer"), answer.get("error")
                job.state = "done" if job.error is None else "failed"
        except asyncio.CancelledError:
            job.state, job.error = "stopped", STOPPED
        except TimeoutError:
            job.state = "failed"
            job.error = {"kind": "seconds", "message": f"no answer after {limit_s:.3g} s"}

    def _make_room(self) -> None:
        over = [job for job in self.jobs.values() if job.state not in ("waiting", "working")]
        for job in over[: max(0, len(self.jobs) - MOST_KEPT + 1)]:
            del self.jobs[job.id]


async def answer_of(request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
    """The answer of a process of its own, which is ended with all of its children."""
    # Not in a thread: it must be known before anything can be cancelled.
    process = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-m", "headrace.serve.work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    talk = asyncio.create_task(asyncio.to_thread(_talk, process, json.dumps(request).encode()))
    try:
        async with asyncio.timeout(limit_s):
            said = await asyncio.shield(talk)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its session, whatever it has started
        await asyncio.wait([talk])
    return _parse(said, process.returncode)


def _talk(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Hand the request over and take the answer, in a thread; ends when the process does."""
    assert process.stdin is not None
    assert process.stdout is not None
    with process, suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.close()
        said = process.stdout.read(MOST_ANSWER + 1)
        return said if len(said) <= MOST_ANSWER else b""
    return b""


def _parse(said: bytes, status: int | None) -> Mapping[str, Any]:
    try:
        return json.loads(said)
    except ValueError:
        message = (
            f"the answer has more than {MOST_ANSWER:,} bytes"
            if status == 0 or status is None
            else f"its process ended with status {status}, without an answer; "
            "perhaps memory ran out"
        )
        return {"error": {"kind": "failed", "message": message}}
