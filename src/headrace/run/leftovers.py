"""Folders and processes that must not outlive their owner, however it ends.

A scratch folder has a file that its owner keeps locked. The kernel lets go of the lock when the
owner ends, by kill -9 too, and then the next command removes the folder (`sweep_scratch`).
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PREFIX = "headrace-scratch-"
LOCK = "owner.lock"
GONE_WITHIN_S = 10
YOUNG_S = 60  # a folder without a lock may be about to get one


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A folder for files of this process alone; gone after the `with`, or at the next command."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            remove_folder(folder)


@functools.cache
def own_scratch() -> Path:
    """The scratch folder of this process as a whole: what Java puts there lasts as long as Java."""
    kept = ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(scratch_folder())


def sweep_scratch() -> list[Path]:
    """Remove scratch folders whose owners are gone; which they were."""
    found: list[Path] = []
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        try:
            if not (folder / LOCK).exists() and time.time() - folder.stat().st_mtime < YOUNG_S:
                continue
            with (folder / LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(folder)
                found.append(folder)
        except OSError:  # its owner lives, or it is another user's
            continue
    return found


def remove_folder(folder: Path) -> None:
    """End the processes that work in a folder, and remove it."""
    end_processes_in(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end_processes_in(folder: Path) -> None:
    """Kill what works in a folder: executors notice late that their fleet is gone."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while (inside := processes_in(folder)) and time.monotonic() < deadline:
        for pid in inside:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def processes_in(folder: Path) -> list[int]:
    """The processes whose working directory is a folder or one inside it, but for this one."""
    where, found = folder.resolve(), list[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            place = Path(os.readlink(process / "cwd").removesuffix(" (deleted)"))
            if place.is_relative_to(where) and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found
