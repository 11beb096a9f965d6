"""Files that nobody would write: every command answers, refuses in words, and ends in time.

    python benchmarks/fuzzing.py                          # 10,000 mutated files: an hour
    python benchmarks/fuzzing.py --files 500 --first 2000 # those with the seeds 2000 to 2499
    python benchmarks/fuzzing.py --one 2317 --keep x.yaml # one of them, with its file and output

Each file is an example, or a topology and a cluster of the same folder, with one to four changes:
values that are too small, too large or of another kind, keys that are gone, renamed or doubled,
and bytes that are wrong. `check` and one more command read it in this process. Counted as faults
are tracebacks, commands that take more than 20 seconds of processor time, library warnings,
anything that a library prints, answers to `--json` that are not one JSON object, and escape
sequences of a file that reach the terminal. The same seed gives the same file and command.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import yaml
from click.testing import CliRunner
from measure import Row

from headrace.cli import main as headrace
from headrace.model.starter import STARTER
from headrace.registry import names

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FILES = 10_000
LONGEST_S = 20.0  # of processor time
GIVEN_UP_S = 1800  # of the clock: then the whole process ends, with a traceback of where it was
MOST_MEMORY = 8 << 30  # bytes
EXITS = (0, 1, 2, 3)  # done, refused, wrong usage, strict
ESCAPE = "\x1b"
NUMBERS = (
    0, 1, -1, 2, 3, 7, 0.5, 1e-9, 1e-320, 5e-324, 1e9, 1e12, 1e18, 1e300, 1.7e308, 2**31, 2**53,
    2**63 - 1, 2**63, 10**30, -1e-9, -(2**63), float("inf"), float("nan"), 1 / 3, 100_000, 999_999,
)  # fmt: skip
WORDS = (
    "", " ", "x", "0", "-", ".", "*", "a.1", "x/y", "n-{1..}", "n-{3..1}", "n-{1..4}", "{1..9}",
    "n-{1..200000}", "[bold]", "[/red]", "{}", "é", "日本", "\u202e", f"{ESCAPE}[31mred{ESCAPE}[0m",
    f"{ESCAPE}]0;title\a", "a\nb", "k" * 5000, "shuffle", "fields", "all", "global", "direct",
    "local-or-shuffle", "copy", "divide", "none", "true", "null",
)  # fmt: skip
OTHER: tuple[Any, ...] = (None, True, False, [], {}, [1], {"a": 1}, [[]], [None])


@dataclass(frozen=True, slots=True)
class Fault:
    """A file and a command that went wrong, and how."""

    seed: int
    command: str
    what: str
    detail: str


@cache
def terminal() -> TextIO:
    """Standard error as it is now, also while it is captured."""
    return os.fdopen(os.dup(2), "w")


class TooLong(BaseException):
    """A command used up its processor time. No handler of errors may catch it."""


@cache
def sources() -> tuple[dict[str, Any], ...]:
    """What is mutated: every example that can be planned, as one document."""
    found: list[dict[str, Any]] = [yaml.safe_load(STARTER)]
    for folder in sorted({path.parent for path in EXAMPLES.rglob("*.yaml")}):
        files = [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]
        machines = [file for file in files if not _planned(file)]
        for file in filter(_planned, files):
            found.append(file)
            if "cluster" not in file:
                found += [{**other, **file} for other in machines[:3]]
    return tuple(found)


def _planned(file: dict[str, Any]) -> bool:
    return any(section in file for section in ("topology", "topologies", "tasks"))


def mutated(chance: random.Random) -> str:
    """The text of a file with a few changes."""
    document = copy.deepcopy(chance.choice(sources()))
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        change_value(document, chance)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return change_text(text, chance) if chance.random() < 0.1 else text


def change_value(document: Any, chance: random.Random) -> None:
    """Change one place of a document."""
    all_places = list(places(document))
    if not all_places:  # a change before this one left nothing
        return
    holder, key = chance.choice(all_places)
    what = chance.random()
    if what < 0.6:
        holder[key] = other_value(holder[key], chance)
    elif what < 0.75:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(chance.choice(holder)))
    elif what < 0.9:
        holder[chance.choice((*WORDS, *holder))] = holder.pop(key)
    else:
        holder[chance.choice(WORDS)] = copy.deepcopy(chance.choice(list(holder.values())))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: what holds it, and its key there."""
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    for key, child in inside:
        yield value, key
        yield from places(child)


def other_value(value: Any, chance: random.Random) -> Any:
    """Another value, mostly of the same kind."""
    if chance.random() < 0.2:
        return copy.deepcopy(chance.choice((*OTHER, *NUMBERS, *WORDS)))
    if isinstance(value, int | float) and not isinstance(value, bool):
        scaled = value * chance.choice((10, 1000, 1e6, -1, 0.001, 1e-12))
        return chance.choice((*NUMBERS, scaled, scaled))
    if isinstance(value, str):
        return chance.choice(WORDS)
    return copy.deepcopy(chance.choice(OTHER))


def change_text(text: str, chance: random.Random) -> str:
    """Bytes that are wrong: cut, doubled, exchanged or put in."""
    at = chance.randrange(len(text))
    end = min(len(text), at + chance.choice((1, 1, 5, 80, 1000)))
    put = chance.choice(
        ("", "\x00", "\t", "&a ", "*a", "{", "[" * 2000, "\ufeff", "!!x ", text[at:end] * 2)
    )
    return text[:at] + put + text[end:]


def command_for(chance: random.Random, file: str, folder: Path) -> list[str]:
    """A command that reads the file."""
    by = {stage: chance.choice(names(stage)) for stage in ("place", "size", "provision", "move")}
    goal = chance.choice(("traffic", "rate", "batch", "nodes", "balance", "network", "latency"))
    short, out = ["--seconds", "1"], ["--out", str(folder / "out.html")]
    commands: list[list[str]] = [
        ["place", file, "--by", by["place"], "--objective", goal, *short],
        ["place", file, "--by", by["place"], *short, *chance.choice(([], out))],
        ["place", file, "--steps", "2000", "--rate-factor", "2"],
        ["place", file, "--trade-off", *short],
        ["compare", file, "--by", by["place"], "--by", "storm-even", "--by", "headrace", *short],
        ["compare", file, "--stage", "size", "--by", by["size"], *short],
        ["judge", file],
        ["explain", file],
        ["explain", file, "--task", chance.choice(("count.1", "split.2", "a"))],
        ["size", file, "--by", by["size"], *short],
        ["provision", file, "--by", by["provision"], "--rate", "1000", *short],
        ["plan", file, *chance.choice(([], ["--rate", "500"], ["--budget", "3"])), *short],
        ["simulate", file, "--seconds-simulated", "1", "--by", by["place"]],
        ["simulate", file, "--detail", chance.choice(("fluid", "batch"))],
        ["diff", file, file],
        ["move", file, file, "--by", by["move"]],
        ["export", "spark", file],
        ["export", "kubernetes", file],
        ["import", "flux", file],
        ["import", "production", file],
    ]
    chosen = chance.choice(commands)
    with_json = chance.random() < 0.3 and chosen[0] not in ("export", "import")
    return [*chosen, "--json"] if with_json else chosen


def faults_of(seed: int, folder: Path, show: bool = False) -> list[Fault]:
    """What goes wrong with one file."""
    chance = random.Random(seed)
    text, file = mutated(chance), folder / "mutated.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    commands = [["check", str(file)], command_for(chance, str(file), folder)]
    found: list[Fault] = []
    for arguments in commands:
        said = " ".join(arguments).replace(str(file), "FILE").replace(str(folder), "FOLDER")
        for what, detail in run(arguments, show):
            found.append(Fault(seed, said, what, detail))
    return found


def run(arguments: Sequence[str], show: bool) -> Iterator[tuple[str, str]]:
    """Run a command in this process; what is wrong with how it went."""
    start = time.process_time()
    faulthandler.dump_traceback_later(GIVEN_UP_S, exit=True, file=terminal())
    with warnings.catch_warnings(record=True) as warned, fds_captured() as printed, time_limit():
        warnings.simplefilter("always")
        result = CliRunner().invoke(headrace, list(arguments))
    faulthandler.cancel_dump_traceback_later()
    took = time.process_time() - start
    if show:
        print(f"$ headrace {' '.join(arguments)}\n{result.output}\nexit {result.exit_code}")
    error = result.exception
    if isinstance(error, TooLong) or took > LONGEST_S:
        yield "hang", f"{took:.0f} s"
    elif error is not None and not isinstance(error, SystemExit):
        trace = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in trace if "headrace" in frame.filename] or list(trace)
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
        yield "traceback", f"{type(error).__name__} at {where}: {str(error)[:120]}"
    elif result.exit_code not in EXITS:
        yield "exit", str(result.exit_code)
    for warning in warned:
        name = Path(warning.filename).name
        yield "warning", f"{name}:{warning.lineno}: {str(warning.message)[:100]}"
    if text := printed():
        yield "printed", text[:200]
    if ESCAPE in result.output:
        yield "escape", repr(result.output[max(0, result.output.index(ESCAPE) - 40) :][:80])
    if "--json" in arguments and result.exit_code in (0, 1, 3) and error is None:
        yield from _json_fault(result.stdout)


def _json_fault(text: str) -> Iterator[tuple[str, str]]:
    def no_constant(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    try:
        json.loads(text, parse_constant=no_constant)
    except ValueError as error:
        yield "json", f"{error}: {text[:80]!r}"


@contextmanager
def time_limit() -> Generator[None]:
    """Raise `TooLong` where the processor was busy for longer than a command may take."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def fds_captured() -> Generator[Any]:
    """What is written past Python, by libraries: as a function that gives it afterwards."""
    kept = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as sink:
        text: list[str] = []
        for number in (1, 2):
            os.dup2(sink.fileno(), number)
        try:
            yield lambda: "".join(text)
        finally:
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)
            sink.seek(0)
            text.append(sink.read().decode(errors="replace"))


def fuzz(
    seeds: Sequence[int], watch: bool = False, seconds: float | None = None
) -> tuple[list[Fault], int]:
    """The faults of many files, and how many there was time for."""
    end = None if seconds is None else time.monotonic() + seconds
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.RLIM_INFINITY))
    found: list[Fault] = []
    with tempfile.TemporaryDirectory(prefix="headrace-fuzzing-") as folder:
        for i, seed in enumerate(seeds):
            if end is not None and time.monotonic() > end:
                return found, i
            new = faults_of(seed, Path(folder))
            found += new
            for fault in new if watch else ():
                print(
                    f"{fault.seed}: {fault.what}: {fault.detail}\n    {fault.command}", flush=True
                )
            if watch and (i + 1) % 500 == 0:
                print(f"{i + 1} files, {len(found)} faults", flush=True)
    return found, len(seeds)


def rows(quick: bool) -> list[Row]:
    """One row for the table of benchmarks."""
    files = 200 if quick else FILES
    found, _ = fuzz(range(files))
    kinds = sorted({fault.what for fault in found})
    value = f"{len(found)} ({', '.join(kinds)})" if found else "0"
    what = f"robust: {files:,} mutated files, tracebacks, hangs above 20 s and library warnings"
    return [Row(what, value, "0", not found)]


def main() -> int:
    """Fuzz as the arguments say; the exit status says whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--one", type=int, help="one seed, with what it prints")
    parser.add_argument("--keep", type=Path, help="with --one: write its file here")
    asked = parser.parse_args()
    if asked.one is not None:
        with tempfile.TemporaryDirectory() as folder:
            found = faults_of(asked.one, Path(folder), show=True)
            if asked.keep is not None:
                asked.keep.write_text((Path(folder) / "mutated.yaml").read_text())
        print(*found, sep="\n")
        return 1 if found else 0
    seeds = range(asked.first, asked.first + asked.files)
    found, done = fuzz(seeds, watch=True, seconds=asked.seconds)
    print(f"{done:,} files, seeds {asked.first} to {asked.first + done - 1}: {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
