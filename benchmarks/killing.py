"""Drivers and executors of a local fleet: found, killed with kill -9, and counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.run.fleet import WORK, Fleet
from headrace.run.supervisor import start_fleet, stop_fleet

EXECUTOR = b"CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True, order=True)
class Executor:
    """A Spark executor, at work in `work/<node>/<slot>/<application>/<number>` of its fleet."""

    node: str
    application: str
    number: int
    pid: int


@contextmanager
def fleet_up(cluster: Path, folder: Path) -> Generator[Fleet]:
    """A fleet that other processes find in its folder, for as long as the `with` lasts."""
    try:
        yield start_fleet([str(cluster)], folder)
    finally:
        stop_fleet(folder)


@contextmanager
def driver(arguments: Sequence[str], *, ends_within_s: float) -> Generator[subprocess.Popen[str]]:
    """`headrace run ..` in a session of its own, killed with its JVM if it does not end in time."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "run", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    too_long = threading.Timer(ends_within_s, kill, [process])
    too_long.start()
    try:
        yield process
    finally:
        too_long.cancel()
        if process.poll() is None:
            kill(process)


def kill(process: subprocess.Popen[str]) -> int:
    """Kill a driver and its JVM at once; gives its exit status."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def executors(folder: Path) -> list[Executor]:
    """The executors that are alive on the fleet of a folder; needs /proc."""
    found: list[Executor] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if EXECUTOR in (process / "cmdline").read_bytes():
                place = (process / "cwd").readlink()
                node, slot, application, number = place.parts[-4:]
                if place == (folder / WORK / node / slot / application / number).resolve():
                    found.append(Executor(node, application, int(number), int(process.name)))
        except (OSError, ValueError):  # it has ended meanwhile, or is not ours to look at
            continue
    return sorted(found)


def count_executors(folder: Path, application: str) -> int:
    """How many executors an application has had so far: each leaves its folder."""
    return len(list((folder / WORK).glob(f"*/*/{application}/[0-9]*")))
