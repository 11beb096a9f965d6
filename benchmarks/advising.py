"""How true the replay is: of logs under their own settings, of fleets it has not seen, of advice.

Event logs of strangers are read where they are (`../shared/data/spark_logs`), without them our own
of `examples/spark`. The jobs of `advised_jobs.py` run on a fleet of four workers of one slot, each
held to 0.4 of a core by its quota, on 1, 2 and 4 of them, in three turns. From the log of one, the
other two of its turn are predicted. Then, three times, every job runs on one slot and, right after,
with all settings advised from that log, and is compared with what was promised. A virtual machine
is not the same an hour later: the CPU time of the same tasks differs by up to a third from run to
run, so the median of three is judged too, beside every single run.

HEADRACE_ADVISING names a folder that keeps the logs: what is in it does not run again, so that the
seventy minutes can be had in pieces (HEADRACE_MINUTES, of which each piece takes at most so many).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

from measure import Row

from headrace.advise.report import advise_on, core_hours
from headrace.errors import HeadraceError, InvalidInput
from headrace.observe.spark_log.local_files import find_local_logs
from headrace.observe.spark_log.read_trace import read_trace
from headrace.observe.spark_log.trace import Trace
from headrace.run.fleet import Fleet, local_fleet
from headrace.run.machines import Machine

HERE = Path(__file__).resolve()
STRANGERS = HERE.parents[2] / "shared" / "data" / "spark_logs"
OURS = HERE.parents[1] / "examples" / "spark"
PROGRAM = Path(__file__).with_name("advised_jobs.py")
SLOT_CPU = 40.0  # points: 0.4 of a core
JOBS = ("waiting", "shuffle", "python-function", "skewed-join")
FLEETS = (4, 2, 1)
REPEATS = 3
LARGE_BYTES = 100 << 20
NOTHING: Mapping[str, str] = {}


def rows(quick: bool) -> Iterator[Row]:
    """Replay, speed, prediction, advice."""
    yield from replay_rows()
    yield from speed_rows()
    if not quick:
        with ExitStack() as ending:
            kept = os.environ.get("HEADRACE_ADVISING")  # a folder to keep the logs in
            folder = Path(kept or ending.enter_context(tempfile.TemporaryDirectory()))
            yield from fleet_rows(folder)


def replay_rows() -> Iterator[Row]:
    """Every log under its own settings."""
    errors: list[float] = []
    for path in sorted((STRANGERS if STRANGERS.exists() else OURS).iterdir()):
        if path.suffix == ".md":
            continue
        advice = advise_on(read_trace(find_local_logs(path)[0]))
        errors.append(advice.error)
        jobs_s = sum(max((j.ended_ms or 0) - j.submitted_ms, 0) for j in advice.trace.jobs) / 1000
        ours_s = sum(last - first for first, last in advice.replayed.jobs)
        what = (
            f"replay {path.name[:44]}: {advice.trace.wall_s:.1f} s, replayed "
            f"{advice.replayed.wall_s:.1f} s; its jobs alone {jobs_s:.1f} and {ours_s:.1f} s"
        )
        yield Row(what, f"{advice.error:.2%}", "<= 25 %", advice.error <= 0.25)
    middle = statistics.median(errors)
    yield Row("replay, median over the logs", f"{middle:.2%}", "<= 10 %", middle <= 0.10)


def speed_rows() -> Iterator[Row]:
    """A log of 100 MB: the lines of a large one, until there are enough."""
    source = STRANGERS / "nds_q72_dataproc_2_2.zstd"
    if not source.exists():
        return
    from headrace.observe.spark_log.local_files import read_lines

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large"
        written = 0
        lines = list(read_lines(source, []))
        tasks = [line for line in lines if b'"SparkListenerTask' in line[:40]]
        with file.open("wb") as out:
            for batch in (lines, tasks, tasks, tasks):
                for line in batch:
                    if written < LARGE_BYTES:
                        written += out.write(line + b"\n")
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli", "advise", str(file), "--json"],
            capture_output=True,
            check=True,
        )
        took = time.perf_counter() - began
    assert done.stdout.startswith(b"{")
    yield Row(f"headrace advise on {written >> 20} MB", f"{took:.1f} s", "<= 30 s", took <= 30)


class Runs:
    """Applications on a fleet, which starts with the first that is not kept already."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        self.folder, self.ending = folder, ending
        self.fleet: Fleet | None = None
        self.until = time.monotonic() + 60 * float(os.environ.get("HEADRACE_MINUTES", "inf"))

    def log(self, name: str, job: str, slots: int, conf: Mapping[str, str] = NOTHING) -> Trace:
        """The log of one application on so many slots."""
        folder = self.folder / name
        if not (kept := list(folder.glob("app-*[!s]"))):  # .inprogress has not come to its end
            if time.monotonic() > self.until:
                raise InvalidInput("time is up; the logs so far are kept")
            self.run(folder, job, slots, conf)
            kept = list(folder.glob("app-*[!s]"))
        return read_trace(find_local_logs(kept[0])[0])

    def run(self, folder: Path, job: str, slots: int, conf: Mapping[str, str]) -> None:
        if self.fleet is None:
            machines = [
                Machine(f"slot-{i}", f"127.0.0.{i + 1}", 1, 768, cpu=SLOT_CPU) for i in range(1, 5)
            ]
            where = self.folder / "fleet"
            self.fleet = self.ending.enter_context(local_fleet(machines, where, limits=("cpu",)))
        folder.mkdir(parents=True, exist_ok=True)
        given = [f"{key}={value}" for key, value in conf.items()]
        ran = subprocess.run(
            [sys.executable, str(PROGRAM), job, self.fleet.master, str(slots), str(folder), *given],
            env=os.environ | {"HEADRACE_SECRET": self.fleet.secret},  # arguments are seen by all
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise InvalidInput(f"{job} on {slots} slots failed: {ran.stderr[-2000:]}")


def fleet_rows(folder: Path) -> Iterator[Row]:
    """Prediction and advice on a fleet with limits."""
    try:
        with ExitStack() as ending:
            runs = Runs(folder, ending)
            seen = {
                (job, slots, turn): runs.log(f"{job}-{slots}-{turn}", job, slots)
                for turn in range(1, REPEATS + 1)
                for job in JOBS
                for slots in FLEETS
            }
            yield from prediction_rows(seen)
            yield from advice_rows(runs)
    except HeadraceError as error:
        yield Row(f"prediction: {error.message}", "")


def prediction_rows(seen: dict[tuple[str, int, int], Trace]) -> Iterator[Row]:
    """Every fleet from every other, and the median of the jobs."""
    medians: list[float] = []
    every: list[float] = []
    for job in JOBS:
        errors: list[float] = []
        for slots, other in permutations(FLEETS, 2):
            off: list[float] = []
            turns: list[str] = []
            for turn in range(1, REPEATS + 1):
                wall_s = seen[(job, other, turn)].wall_s
                told_s = advise_on(seen[(job, slots, turn)]).what_if(executors=other).wall_s
                off.append(told_s / wall_s - 1)
                turns.append(f"{told_s:.1f} s for {wall_s:.1f} s")
            every += [abs(error) for error in off]
            errors.append(abs(statistics.median(off)))
            what = f"{job}: {other} slots from {slots}: {', '.join(turns)}"
            yield Row(what, f"{errors[-1]:.1%}", "<= 20 %", errors[-1] <= 0.20)
        medians.append(statistics.median(errors))
    middle = statistics.median(medians)
    yield Row("prediction, median of the jobs", f"{middle:.1%}", "<= 10 %", middle <= 0.10)
    within = sum(error <= 0.20 for error in every)
    single = f"prediction, single turns within 20 %, of {len(every)}; the worst"
    yield Row(single, f"{within}; {max(every):.1%}", "all", within == len(every))


def advice_rows(runs: Runs) -> Iterator[Row]:
    """What is promised for the advised settings, and what comes; all of them are followed."""
    worse: dict[str, list[float]] = {job: [] for job in JOBS}
    for number in range(1, REPEATS + 1):
        for job in JOBS:
            log = runs.log(f"{job}-before-{number}", job, 1)
            advice = advise_on(log)
            chosen = advice.chosen
            conf = {s.name: s.value for s in advice.settings if s.name.startswith("spark.")}
            trace = runs.log(f"{job}-advised-{number}", job, chosen.executors, conf)
            slower = trace.wall_s / chosen.wall_s - 1
            dearer = core_hours(trace) / chosen.core_hours - 1
            worse[job].append(max(slower, dearer))
            what = (
                f"{job}: {log.wall_s:.1f} s on 1; advised {chosen.executors} executors, promised "
                f"{chosen.wall_s:.1f} s and {chosen.core_hours:.4f} core-h; run {number}: "
                f"{trace.wall_s:.1f} s, {core_hours(trace):.4f} core-h"
            )
            off = worse[job][-1]
            yield Row(what, f"{slower:+.1%} {dearer:+.1%}", "<= 10 %", off <= 0.10)
    for job, runs_off in worse.items():
        middle = statistics.median(runs_off)
        what = f"{job}, as advised: time or cost above the promise, median of {REPEATS}"
        yield Row(what, f"{middle:+.1%}", "<= 10 %", middle <= 0.10)
