"""The telemetry pipeline: speed beside a bare scan, memory, accuracy of the fit, and ten kills.

`python benchmarks/observing.py [fitting] [batch] [streaming] [killing] [--quick]` measures some of
these alone.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import importlib.util
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Row, within

from headrace.model.telemetry import TASKS
from headrace.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_COUNT, COMPONENTS, NODES = 1000, 20, 50
ROWS_PER_FILE = 500_000
START = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
CONF = {"spark.driver.memory": "2g"}


PARTS: Mapping[str, Callable[[SparkSession, Path, bool], Iterator[Row]]] = {
    "fitting": lambda spark, folder, quick: fitting(spark, folder),
    "batch": lambda spark, folder, quick: batch(
        spark, folder, 3_000_000 if quick else 100_000_000, 1 if quick else 3
    ),
    "streaming": lambda spark, folder, quick: streaming(
        spark, folder, 1_000_000 if quick else 5_000_000, 1 if quick else 3
    ),
    "killing": lambda spark, folder, quick: killing(
        spark, folder, 200_000 if quick else 2_000_000, 2 if quick else 10
    ),
}


def rows(quick: bool, parts: Sequence[str] = tuple(PARTS)) -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as name:
        spark = session(app="headrace-benchmark", master="local[2]", conf=CONF)
        try:
            for part in parts:
                yield from PARTS[part](spark, Path(name) / part, quick)
        finally:
            spark.stop()


def batch(spark: SparkSession, folder: Path, count: int, runs: int) -> Iterator[Row]:
    """Parquet to validated windows, beside a scan of the same columns."""
    from pyspark.sql import functions as F

    from headrace.observe.classify import events
    from headrace.observe.source import read_files
    from headrace.observe.windows import task_windows

    generate(folder / "tasks", count)
    files = sorted((folder / "tasks").iterdir())
    samples = read_files(spark, "tasks", files)
    texts = ("topology", "task", "component", "node", "machine_type")
    numbers = ("tuples_in", "tuples_out", "cpu_ms", "queue_length", "memory_mb")
    times = [F.sum(F.unix_micros(name) % 1000) for name in ("event_time", "arrival")]
    bare = samples.agg(
        *(F.sum(n) for n in numbers), *(F.sum(F.octet_length(t)) for t in texts), *times
    )
    work: Mapping[str, Callable[[int], None]] = {
        "bare": lambda run: discard(bare),
        "windows": lambda run: discard(task_windows(events(samples, "tasks"))),
    }
    measured, used = in_turns(spark, work, runs)
    ours, speed = measured["windows"], count / measured["windows"]
    yield Row(
        f"batch, {count:,} rows: Parquet to validated windows",
        f"{speed:,.0f} rows/s",
        ">= 1,000,000",
        speed >= 1e6,
    )
    yield Row(
        "  as its CPU seconds would have it, on two cores of its own",
        f"{2 * count / used['windows']:,.0f} rows/s",
    )
    yield Row(
        "  times the seconds of a bare scan of the same columns",
        *within(ours / measured["bare"], 2.5, "x"),
    )
    yield Row(
        "  the same in CPU seconds, which a busy machine disturbs less",
        f"{used['windows'] / used['bare']:.3g} x",
    )
    yield Row("  peak memory of the driver and its JVM", *within(peak_gb(spark), 4, "GB"))
    yield Row(
        "  the same windows in DuckDB", duckdb_seconds(folder / "tasks"), f"ours {ours:.3g} s"
    )


def duckdb_seconds(folder: Path) -> str:
    """How long DuckDB takes, if it is there."""
    if importlib.util.find_spec("duckdb") is None:
        return "not installed"
    import duckdb  # pyright: ignore[reportMissingImports]

    query = f"""
        select topology, task, node, machine_type, epoch_us(event_time) // 60000000 as start,
               sum(tuples_in), sum(tuples_out), sum(cpu_ms), count(*), count(distinct event_time)
        from '{folder}/*.parquet' where tuples_in >= 0 and tuples_out >= 0 and cpu_ms >= 0
              and epoch_us(arrival) - epoch_us(event_time) <= 60000000
        group by all"""
    connection = duckdb.connect(config={"threads": 2})

    def run() -> None:
        connection.sql(query).fetchall()

    return f"{seconds_of(run):.3g} s"


def streaming(spark: SparkSession, folder: Path, count: int, runs: int) -> Iterator[Row]:
    """Into the store, beside Spark's own de-duplication of the same files, which checks nothing."""
    from headrace.observe import source
    from headrace.observe.classify import KEYS
    from headrace.observe.follow import take_in

    generate(folder / "tasks", count, duplicates=0.01, rows_per_file=100_000)
    size = sum(file.stat().st_size for file in (folder / "tasks").iterdir())
    source.BYTES_PER_BATCH = min(
        source.BYTES_PER_BATCH, size // 2
    )  # more than one batch even of few rows

    def bare(sink: str, run: int) -> None:
        reader = spark.readStream.schema(source.columns_of("tasks")).option(
            "maxBytesPerTrigger", source.BYTES_PER_BATCH
        )
        samples = reader.parquet(str(folder / "tasks")).withWatermark("event_time", "60 seconds")
        once = samples.dropDuplicatesWithinWatermark(list(KEYS["tasks"]))
        query = (
            once.writeStream.format(sink)
            .option("path", str(folder / f"kept-{run}"))
            .trigger(availableNow=True)
        )
        query.option(
            "checkpointLocation", str(folder / f"bare-{sink}-{run}")
        ).start().awaitTermination()

    work: Mapping[str, Callable[[int], object]] = {
        "bare": lambda run: bare("noop", run),
        "keeping": lambda run: bare("parquet", run),
        "ours": lambda run: take_in(spark, folder, folder / f"store-{run}"),
    }
    measured, used = in_turns(spark, work, runs)
    yield Row(
        f"streaming, {count:,} rows into the store", f"{count / measured['ours']:,.0f} rows/s"
    )
    speed = measured["bare"] / measured["ours"]
    yield Row(
        "  times the speed of dropDuplicatesWithinWatermark into nothing",
        f"{speed:.2f} x",
        ">= 0.8 x",
        speed >= 0.8,
    )
    yield Row(
        "  the same in CPU seconds, which a busy machine disturbs less",
        f"{used['bare'] / used['ours']:.2f} x",
    )
    yield Row(
        "  times the speed of the same into Parquet",
        f"{measured['keeping'] / measured['ours']:.2f} x",
    )


def in_turns(
    spark: SparkSession, work: Mapping[str, Callable[[int], object]], runs: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Median seconds, and median CPU seconds of the JVM, of several works.

    They take turns, so that all see the same machine. The first turn does not count: it pays for
    the compilation of what comes after.
    """
    measured: dict[str, list[float]] = {what: [] for what in work}
    used: dict[str, list[float]] = {what: [] for what in work}
    for run in range(runs + 1):
        for what, doing in work.items():
            before = cpu_seconds(spark)
            seconds = seconds_of(lambda doing=doing, run=run: doing(run))
            measured[what] += [seconds] if run else []
            used[what] += [cpu_seconds(spark) - before] if run else []
    return {what: statistics.median(m) for what, m in measured.items()}, {
        what: statistics.median(u) for what, u in used.items()
    }


def fitting(spark: SparkSession, folder: Path) -> Iterator[Row]:
    """Known costs, 10 % noise, 1 % outliers."""
    from headrace.observe.fit import fits, load_points
    from headrace.observe.source import read_files
    from headrace.observe.windows import task_windows

    random, windows = np.random.default_rng(7), 5000
    truth = {
        (f"c{c}", machine): (0.02 * 1.5**c * slower, 1 + c)
        for c in range(8)
        for machine, slower in (("i7", 1), ("i5", 1.8))
    }
    folder.mkdir()
    for i, ((component, machine), (cpu_ms, cpu_fixed)) in enumerate(truth.items()):
        tuples = random.integers(60, 60_000, windows)
        points = (tuples / 60 * cpu_ms / 10 + cpu_fixed) * random.normal(1, 0.1, windows)
        points *= np.where(random.random(windows) < 0.01, 10, 1)
        times = (START + 60 * np.arange(windows)) * 1_000_000
        given = {
            "task": f"{component}.1",
            "component": component,
            "machine_type": machine,
            "tuples_in": tuples,
        }
        pq.write_table(
            samples_of(times, {**given, "cpu_ms": np.maximum(points, 0) * 600}),
            folder / f"{i}.parquet",
        )
    samples = read_files(spark, "tasks", sorted(folder.iterdir()))
    found = fits(load_points(task_windows(samples), 60))
    errors: dict[str, float] = {"slope": 0.0, "fixed": 0.0, "predicted": 0.0}
    for f in found:
        cpu_ms, cpu_fixed = truth[f.component, f.machine_type or ""]
        rates = np.linspace(1, 1000, 200)
        predicted = (rates * f.cpu_ms / 10 + f.cpu_fixed) / (rates * cpu_ms / 10 + cpu_fixed) - 1
        worst = {
            "slope": f.cpu_ms / cpu_ms - 1,
            "fixed": f.cpu_fixed / cpu_fixed - 1,
            "predicted": np.abs(predicted).max(),
        }
        errors = {what: max(error, abs(float(worst[what]))) for what, error in errors.items()}
    yield Row(
        f"fit, {len(found)} components and types: largest error of cpu_ms",
        *within(100 * errors["slope"], 3, "%"),
    )
    yield Row("  largest error of cpu_fixed", *within(100 * errors["fixed"], 3, "%"))
    yield Row(
        "  largest error of predicted CPU at any rate", *within(100 * errors["predicted"], 8, "%")
    )


DRIVER = """
import sys
from pathlib import Path
from headrace.observe import source
from headrace.observe.follow import take_in
from headrace.spark import session
source.BYTES_PER_BATCH = 1  # every file is a batch of its own
# A quick start, since there are many.
conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
take_in(session(master="local[2]", conf=conf), Path(sys.argv[1]), Path(sys.argv[2]))
"""
BATCHES = 40


def killing(spark: SparkSession, folder: Path, count: int, kills: int) -> Iterator[Row]:
    """A stream with 1 % duplicates, 1 % malformed and 1 % late rows; the driver is killed."""
    from headrace.observe.classify import KEYS
    from headrace.observe.store import rows_of, segments

    faults = {"duplicates": 0.005, "resent": 0.005, "malformed": 0.01, "late": 0.01}
    expected = generate(folder / "tasks", count, **faults, rows_per_file=count // BATCHES)
    store, chance = folder / "store", random.Random(5)
    moments = sorted(chance.uniform(0, BATCHES - 1) for _ in range(kills))
    hit = [kill(folder, store, moment) for moment in moments]
    subprocess.run(driver_of(folder, store), check=True)
    kept = rows_of(spark, store, "tasks", segments(store, "tasks"))
    tables = {row["table"]: row["count"] for row in kept.groupBy("table").count().collect()}
    once = kept.where("table = 'events'").select(*KEYS["tasks"]).distinct().count()
    reasons = kept.where("table = 'quarantine' and reason = 'cpu_ms is negative'").count()
    exact = tables == expected and once == expected["events"] and reasons == expected["quarantine"]
    shown = ", ".join(f"{n:,} {table}" for table, n in sorted(tables.items()))
    yield Row(
        f"{count:,} rows, driver killed {kills} times: {shown}",
        "exact" if exact else "NOT exact",
        "exact",
        exact,
    )
    yield Row(
        f"  killed in batches {', '.join(map(str, hit))} of {BATCHES}",
        f"{len(segments(store, 'tasks'))} segments",
    )


def kill(folder: Path, store: Path, moment: float) -> int:
    """Kill a driver after some batches, somewhere within the next one; the batch it was in."""

    def begun() -> int:
        return max(
            (int(f.name) for f in store.glob("tasks/_checkpoint/offsets/*") if f.name.isdigit()),
            default=-1,
        )

    def at_work() -> bool:  # it has made a segment, or made one again that was cut off
        return (store / "tasks").exists() and (store / "tasks").stat().st_mtime > started

    batch, part = divmod(moment, 1)
    started = time.time()
    driver = subprocess.Popen(driver_of(folder, store), start_new_session=True)
    try:
        while driver.poll() is None and not (at_work() and begun() >= batch):
            time.sleep(0.01)
        commits = sorted(
            f.stat().st_mtime
            for f in store.glob("tasks/_checkpoint/commits/*")
            if f.stat().st_mtime > started
        )
        typical_s = (
            statistics.median(b - a for a, b in pairwise(commits)) if len(commits) > 1 else 1.0
        )
        time.sleep(part * typical_s)
        if driver.poll() is not None:
            raise RuntimeError(
                f"the driver ended by itself, with status {driver.returncode}, before it was killed"
            )
        return begun()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)  # the JVM with it
        driver.wait()


def driver_of(folder: Path, store: Path) -> list[str]:
    return [sys.executable, "-c", DRIVER, str(folder), str(store)]


def generate(
    folder: Path,
    count: int,
    *,
    duplicates: float = 0,
    resent: float = 0,
    malformed: float = 0,
    late: float = 0,
    rows_per_file: int = ROWS_PER_FILE,
) -> Mapping[str, int]:
    """One sample per task and second; how many of them are events, late and to be quarantined.

    Besides, some are sent again: duplicates in the same file, resent ones in the next.
    """
    folder.mkdir(parents=True)
    random, n = np.random.default_rng(3), np.arange(TASK_COUNT)
    names = {
        "task": [f"c{i % COMPONENTS}.{i // COMPONENTS + 1}" for i in n],
        "component": [f"c{i % COMPONENTS}" for i in n],
        "node": [f"node-{i % NODES}" for i in n],
        "machine_type": [("i5", "i7")[i % NODES % 2] for i in n],
    }
    texts = {name: pa.array(values).dictionary_encode() for name, values in names.items()}
    totals, waiting = {"events": 0, "late": 0, "quarantine": 0}, TASKS.empty_table()
    for number, start in enumerate(range(0, count, rows_per_file)):
        row = np.arange(start, min(count, start + rows_per_file))
        task, tuples = row % TASK_COUNT, random.integers(0, 1000, len(row))
        times = (START + row // TASK_COUNT) * 1_000_000 + task
        kind = random.random(len(row))
        wrong, behind = kind < malformed, (kind >= malformed) & (kind < malformed + late)
        given: dict[str, Any] = {
            name: column.take(pa.array(task)) for name, column in texts.items()
        }
        given |= {"tuples_in": tuples, "cpu_ms": np.where(wrong, -1.0, tuples * 0.05 + 2)}
        arrival = times + np.where(behind, 3_600_000_000, random.integers(0, 2_000_000, len(row)))
        good = np.flatnonzero(~wrong & ~behind)
        table = samples_of(times, given, arrival)
        again = table.take(pa.array(random.choice(good, int(duplicates * len(row)), replace=False)))
        sent = pa.concat_tables([table, again, waiting])
        waiting = table.take(pa.array(random.choice(good, int(resent * len(row)), replace=False)))
        if sent.num_rows > len(row):
            sent = sent.take(pa.array(random.permutation(sent.num_rows)))
        pq.write_table(sent, folder / f"{number:06d}.parquet")
        totals["events"] += len(good)
        totals["late"] += int(behind.sum())
        totals["quarantine"] += int(wrong.sum())
    return {table: n for table, n in totals.items() if n}


def samples_of(times: Any, given: dict[str, Any], arrival: Any = None) -> pa.Table:
    """Task samples as a table of telemetry; what is not given is the same everywhere."""
    default = {
        "topology": "words",
        "node": "n1",
        "tuples_out": 0,
        "queue_length": 0,
        "memory_mb": 64.0,
    }
    columns: dict[str, Any] = {
        "event_time": times,
        "arrival": times if arrival is None else arrival,
        **default,
        **given,
    }
    arrays: list[Any] = []
    for field in TASKS:
        value = columns[field.name]
        whole = pa.repeat(value, len(times)) if isinstance(value, str | int | float) else value
        arrays.append((whole if isinstance(whole, pa.Array) else pa.array(whole)).cast(field.type))
    return pa.table(arrays, schema=TASKS)


def discard(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_gb(spark: SparkSession) -> float:
    """Largest memory of this process and the JVM it started."""
    status = [Path(f"/proc/{pid}/status").read_text() for pid in (os.getpid(), jvm(spark))]
    return sum(int(text.split("VmHWM:")[1].split()[0]) for text in status) / 1e6


def cpu_seconds(spark: SparkSession) -> float:
    """CPU that the JVM has used so far."""
    fields = Path(f"/proc/{jvm(spark)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def jvm(spark: SparkSession) -> int:
    return spark.sparkContext._gateway.proc.pid  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess, reportAttributeAccessIssue]


def main() -> int:
    """Print each row as soon as it is known; the exit status says whether every target holds."""
    parts = [a for a in sys.argv[1:] if not a.startswith("-")] or tuple(PARTS)
    missed = 0
    for row in rows("--quick" in sys.argv[1:], parts):
        print(row, flush=True)
        missed += row.holds is False
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
