"""How benchmarks measure: medians after warm-up, commands as processes, a calibration loop."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from generated_clusters import MANY_TASKS, real_or_generated

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PRODUCTION = real_or_generated(
    DATA / "production_cluster.json", seed=1, nodes=80, racks=2, topologies=50
)
LARGE_PRODUCTION = real_or_generated(
    DATA / "production_cluster_large.json",
    seed=2,
    nodes=1312,
    racks=16,
    topologies=40,
    tasks=MANY_TASKS,
    slots=50,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `holds` is None where nothing was promised."""

    what: str
    value: str
    target: str = ""
    holds: bool | None = None

    @property
    def verdict(self) -> str:
        """Whether it holds, in a word."""
        return {True: "holds", False: "MISSED", None: ""}[self.holds]

    def __str__(self) -> str:
        return f"{self.what:<90} {self.value:>16}  {self.target:>12}  {self.verdict}"


def median_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median of several runs after one to warm up, of processor: others may use the machine too."""
    work()
    return statistics.median(_seconds(work) for _ in range(runs))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def command(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a headrace command in a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(
            f"headrace {' '.join(arguments)} ended with status {os.waitstatus_to_exitcode(status)}"
        )
    return time.perf_counter() - start, used.ru_maxrss / 1024


def median_command(arguments: Sequence[str], runs: int = 5) -> tuple[float, float]:
    """Median seconds and largest megabytes of a command, after one run to warm up."""
    command(arguments)
    measured = [command(arguments) for _ in range(runs)]
    return statistics.median(s for s, _ in measured), max(mb for _, mb in measured)


def calibration() -> float:
    """Seconds of a fixed loop: half interpreter, half numpy."""

    def work() -> None:
        total = 0
        for i in range(2_000_000):
            total += i * i % 7
        values = np.arange(2_000_000, dtype=np.float64)
        for _ in range(20):
            values = np.sqrt(values * values + 1.0)

    return median_seconds(work)


def within(value: float, limit: float, unit: str) -> tuple[str, str, bool]:
    """A figure, its target and whether it holds."""
    return f"{value:.3g} {unit}", f"<= {limit:g} {unit}", value <= limit
