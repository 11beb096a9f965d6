"""What a batch costs as its state grows: as much as the keys that it touches."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import Row

from headrace.run import Keyed, Topology
from headrace.run.batches import Batches, Settings
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse_batch
from headrace.run.sources import numbers
from headrace.run.state import Store
from headrace.run.state_files import read_state

COUNTS = Keyed(pa.schema([("key", pa.int64()), ("count", pa.int64())]), ("key",))
TOUCHED, MANY, FEW = 10_000, 1_000_000, 10_000
TASKS, MOST = 2, 1.3


def count(table: pa.Table, state: pa.Table) -> tuple[None, pa.Table]:
    """How often each key has come."""
    fresh = table.group_by("key").aggregate([("key", "count")]).rename_columns(["key", "count"])
    both = pa.concat_tables([state, fresh]).group_by("key").aggregate([("count", "sum")])
    return None, both.rename_columns(["key", "count"])


def count_tuple(row: dict[str, int], state: dict[int, dict[str, int]]) -> None:
    """The same, tuple by tuple."""
    held = state.setdefault(row["key"], {"key": row["key"], "count": 0})
    held["count"] += 1


class Run:
    """A run whose state has so many keys, of which every batch touches some, without Spark."""

    def __init__(self, folder: Path, keys: int, form: str) -> None:
        self.keys, self.batch, self.touched = keys, 0, np.zeros(keys, dtype=np.int64)
        self.topology = (
            Topology("t")
            .spout("key", numbers(1), tasks=TASKS)
            .bolt(
                "count",
                count if form == "arrow" else count_tuple,
                form=form,  # pyright: ignore[reportArgumentType]
                inputs={"key": {"grouping": "fields", "fields": ["key"]}},
                tasks=TASKS,
                state=COUNTS,
            )
        )
        self.folder = folder
        self.batches = Batches(self.topology, PlanInForce(self.topology), Settings(folder))
        self.take(np.arange(keys))

    def take(self, keys: np.ndarray) -> tuple[float, float]:
        """Run a batch; gives its seconds, and those of CPU with the merging of files after it."""
        self.touched[keys] += 1
        began = time.process_time()
        done = rehearse_batch(self.batches, self.batch, {"key": pa.table({"key": keys})})
        assert done is not None
        self.batch += 1
        self.batches.wait()
        return done.seconds, time.process_time() - began

    def exact(self) -> bool:
        """Whether the files hold every count."""
        self.batches.wait()
        rows = read_state(Store(self.folder).last().state, self.folder, COUNTS)
        found = np.zeros(self.keys, dtype=np.int64)
        found[rows["key"].to_numpy()] = rows["count"].to_numpy()
        return bool((found == self.touched).all()) and rows.num_rows == self.keys


def rows(quick: bool) -> Iterator[Row]:
    """Batches with much and with little state in turns, so that what disturbs, disturbs both."""
    batches = 12 if quick else 60
    for form in ("arrow", "tuple"):
        with tempfile.TemporaryDirectory() as name:
            runs = [Run(Path(name) / str(keys), keys, form) for keys in (MANY, FEW)]
            chance = np.random.default_rng(1)
            taken: list[list[tuple[float, float]]] = [[], []]
            for _ in range(batches if form == "arrow" else batches // 3):
                for run, times in zip(runs, taken, strict=True):
                    times.append(run.take(chance.choice(run.keys, TOUCHED, replace=False)))
            exact = all(run.exact() for run in runs)
        what = f"{form}: {MANY:,} keys of state, {TOUCHED:,} touched, over {FEW:,} keys"
        wrong = "" if exact else "; WRONG COUNTS"
        for name, mean, column in (
            ("median batch", statistics.median, 0),
            ("mean batch", statistics.fmean, 0),
            ("mean CPU, with the merging that no batch waits for", statistics.fmean, 1),
        ):
            many, few = (mean(times[column] for times in some) for some in taken)
            yield Row(
                f"{what}: {name}",
                f"{many / few:.2f} ({many * 1000:.0f} over {few * 1000:.0f} ms{wrong})",
                f"<= {MOST}",
                many / few <= MOST and exact,
            )
