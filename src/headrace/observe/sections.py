"""From windows to the measured sections of the contract: profile, streams, traffic and history."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.errors import InvalidInput
from headrace.observe.fit import Figures, Fit, fits, load_points
from headrace.observe.rounding import six_digits
from headrace.observe.spans import (
    Span,
    clocks_ahead,
    keep_whole,
    shift_clocks,
    spans_of,
    whole_windows,
)
from headrace.observe.windows import WINDOW_S

HALF_LIFE = 5  # windows, of the exponential average
KEPT = 0.5 ** (1 / HALF_LIFE)  # of a window's weight in that average, with every later window
MOST_PAIRS = 20_000  # in `traffic`; beyond, streams and their shares say it shorter
HEAVIEST = 10
HISTORY = 1440  # windows: a day of minutes
COPIED = 0.02  # how closely a stream must match one copy for every target task to count as copied


@dataclass(frozen=True, slots=True)
class Question:
    """How to add up, and about which topologies; None: all, with their names if several."""

    window_s: int = WINDOW_S
    traffic: str = "last"
    topologies: tuple[str, ...] | None = None
    prefixed: bool | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tasks that talk, by name, and how much."""

    source: str
    target: str
    tuples_per_s: float
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class MeasuredSections:
    """The measured sections, the pairs that talk most, and what to know about both."""

    sections: dict[str, Any]
    heaviest: tuple[Pair, ...]
    fits: tuple[Fit, ...]
    notes: tuple[str, ...]


Naming = Callable[[str, str], str]  # topology, name -> the name in a file
Both = tuple[Any, Any]  # frames of windows: of tasks, and of edges


@dataclass(frozen=True, slots=True)
class Frames:
    """The same questions over one kind of frame: Spark's, or those of pandas."""

    steady_figure: Callable[[str], Any]
    spans_of: Callable[[Any, Any], list[Span]]
    shift_clocks: Callable[[Any, Any, Mapping[str, int]], Both]
    keep_whole: Callable[[Any, Mapping[str, tuple[int, int]], int], Any]
    keep_topologies: Callable[[Any, Collection[str]], Any]
    fits: Callable[[Any, int], list[Fit]]
    heaviest_pairs: Callable[[Any, Any, int, Naming], list[Pair]]
    streams: Callable[[Any, Any, Any, int, Naming], list[dict[str, Any]]]
    history: Callable[[Any, int, Naming], dict[str, list[list[float]]]]


def measure(frames: Frames, tasks: Any, edges: Any, question: Question) -> MeasuredSections:
    """Everything that windows of tasks and edges say. Both are read several times: cache them.

    The sections are about the topologies of the question, the fits are of all. Names are prefixed
    with their topology if asked, or if there are several.
    """
    window_s, steady = question.window_s, frames.steady_figure(question.traffic)
    notes: list[str] = []
    spans = frames.spans_of(tasks, edges)
    ahead = clocks_ahead(spans, window_s, notes)
    whole = whole_windows(spans, ahead, window_s, notes)
    tasks, edges = (
        frames.keep_whole(windows, whole, window_s)
        for windows in frames.shift_clocks(tasks, edges, ahead)
    )
    found = frames.fits(tasks, window_s)
    shown = set(whole) if question.topologies is None else set(question.topologies)
    name_of = naming(len(shown) > 1 if question.prefixed is None else question.prefixed)
    if not shown >= set(whole):
        tasks, edges = (frames.keep_topologies(windows, shown) for windows in (tasks, edges))
    pairs = frames.heaviest_pairs(edges, steady, window_s, name_of)
    sections = {
        "profile": profile([f for f in found if f.topology in shown], name_of),
        "streams": frames.streams(tasks, edges, steady, window_s, name_of),
        "traffic": traffic_rows(pairs, notes),
        "history": frames.history(tasks, window_s, name_of),
    }
    return MeasuredSections(
        {name: s for name, s in sections.items() if s},
        tuple(pairs[:HEAVIEST]),
        tuple(found),
        tuple(notes),
    )


Steady = Callable[[str], Column]


def naming(prefixed: bool) -> Naming:
    """Names as the contract has them: with the topology in front if there are several."""
    return (lambda topology, name: f"{topology}/{name}") if prefixed else (lambda _, name: name)


def steady_figure(traffic: str) -> Steady:
    """One figure for a series of windows: the last, the exponential average, or a percentile.

    An absent window counts as 0.
    """
    match read_traffic(traffic):
        case "last":
            return last
        case "average":
            return average
        case percent:
            return lambda series: percentile(series, percent)


def read_traffic(traffic: str) -> Literal["last", "average"] | int:
    """A word for steady figures; a percentile is its number."""
    if traffic in ("last", "average"):
        return traffic
    if match := re.fullmatch(r"p([1-9][0-9]?)", traffic):
        return int(match[1])
    raise InvalidInput(
        f"traffic `{traffic}` is not known; "
        "there are `last`, `average` and percentiles such as `p95`"
    )


def last(series: str) -> Column:
    """The value of the last window."""
    return F.coalesce(F.sum(F.when(F.col("age") == 0, F.col(series))), F.lit(0.0))


def average(series: str) -> Column:
    """The exponential average over all windows."""
    weights = (1 - F.pow(F.lit(KEPT), F.max("windows"))) / (1 - KEPT)
    return F.sum(F.col(series) * F.pow(F.lit(KEPT), F.col("age"))) / weights


def percentile(series: str, percent: int) -> Column:
    """The smallest value that so many percent of all windows do not exceed."""
    present, windows = F.sort_array(F.collect_list(series)), F.max("windows")
    rank = (F.ceil(windows * percent / 100) - (windows - F.size(present))).cast("int")
    return F.when(rank < 1, 0.0).otherwise(F.element_at(present, F.greatest(rank, F.lit(1))))


def profile(found: Sequence[Fit], name_of: Naming) -> dict[str, dict[str, dict[str, Any]]]:
    """The fits as the contract's `profile`."""
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for f in found:
        cost: dict[str, Any] = {
            "cpu_ms": six_digits(f.cpu_ms),
            "cpu_fixed": six_digits(f.cpu_fixed),
            "windows": f.windows,
        }
        cost |= {"r2": six_digits(f.r2)} if f.r2 is not None else {}
        cost |= {"flag": f.flag} if f.flag else {}
        result.setdefault(name_of(f.topology, f.component), {})[f.machine_type or "*"] = cost
    return result


def streams(
    tasks: DataFrame, edges: DataFrame, steady: Steady, window_s: int, name_of: Naming
) -> list[dict[str, Any]]:
    """The contract's `streams`: rate, selectivity, bytes per tuple and shares of target tasks."""
    ends = ("topology", "source", "target")
    series = edges.groupBy(*ends, "age", "windows").agg(F.sum("tuples").alias("tuples"))
    rates = {
        tuple(row[:3]): row[3] / window_s
        for row in series.groupBy(*ends).agg(steady("tuples")).collect()
    }
    received: dict[tuple[str, ...], dict[int, Figures]] = {}
    for row in (
        edges.groupBy(*ends, "to_task")
        .agg(F.sum("tuples").alias("tuples"), F.sum("bytes").alias("bytes"))
        .collect()
    ):
        received.setdefault(tuple(row[:3]), {})[task_number(row["to_task"])] = row
    most = F.max(F.substring_index("task", ".", -1).cast("int")).alias("tasks")
    totals = F.sum("tuples_in").alias("taken"), F.sum("tuples_out").alias("given")
    flows = {
        tuple(row[:2]): row
        for row in tasks.groupBy("topology", "component").agg(*totals, most).collect()
    }
    return stream_entries(rates, received, flows, name_of)


def stream_entries(
    rates: Mapping[tuple[str, ...], float],
    received: Mapping[tuple[str, ...], Mapping[int, Figures]],
    flows: Mapping[tuple[str, ...], Figures],
    name_of: Naming,
) -> list[dict[str, Any]]:
    """Streams from their rates, what each target task received, and what components took and gave.

    The first two by (topology, source, target), the last by (topology, component).
    """
    result: list[dict[str, Any]] = []
    for key in sorted(rates):
        topology, source, target = key
        to, sender, receiver = (
            received[key],
            flows.get((topology, source)),
            flows.get((topology, target)),
        )
        q = max(max(to), receiver["tasks"] if receiver else 0)
        tuples = sum(row["tuples"] for row in to.values())
        sized = [row for row in to.values() if row["bytes"] is not None]
        copies = (
            q if sender and q > 1 and abs(tuples - q * sender["given"]) <= COPIED * tuples else 1
        )
        entry: dict[str, Any] = {
            "from": name_of(topology, source),
            "to": name_of(topology, target),
        }
        entry["tuples_per_s"] = six_digits(rates[key] / copies)
        if sender and (sender["taken"] or sender["given"]):
            worked_on = sender["taken"] or sender["given"]
            entry["selectivity"] = six_digits(tuples / copies / worked_on)
        if carried := sum(row["tuples"] for row in sized):
            entry["bytes"] = six_digits(sum(row["bytes"] for row in sized) / carried)
        if tuples:
            entry["shares"] = [
                six_digits(to[n]["tuples"] / tuples) if n in to else 0.0 for n in range(1, q + 1)
            ]
        result.append(entry)
    return result


def pair_rates(edges: DataFrame, steady: Steady, window_s: int) -> DataFrame:
    """One row per pair of tasks that talk: tuples/s and, where they were counted, bytes/s."""
    tuples = steady("tuples") / window_s
    data = F.when(F.count("bytes") > 0, steady("bytes") / window_s)
    pairs = edges.groupBy("topology", "from_task", "to_task").agg(
        tuples.alias("tuples_per_s"), data.alias("bytes_per_s")
    )
    return pairs.where("tuples_per_s > 0")


def heaviest_pairs(edges: DataFrame, steady: Steady, window_s: int, name_of: Naming) -> list[Pair]:
    """Pairs of tasks, those that talk most first; one more than a file should hold at most."""
    order = F.desc("tuples_per_s"), F.col("topology"), F.col("from_task"), F.col("to_task")
    rows = pair_rates(edges, steady, window_s).orderBy(*order).limit(MOST_PAIRS + 1).collect()
    return [Pair(name_of(t, a), name_of(t, b), tuples, data) for t, a, b, tuples, data in rows]


def traffic_rows(pairs: Sequence[Pair], notes: list[str]) -> list[list[Any]]:
    """The contract's `traffic`, if there are not too many pairs for a file."""
    if len(pairs) > MOST_PAIRS:
        notes.append(
            f"traffic: more than {MOST_PAIRS:,} pairs of tasks talk, "
            "so only streams and their shares are given"
        )
        return []
    sized = [[] if p.bytes_per_s is None else [six_digits(p.bytes_per_s)] for p in pairs]
    return sorted(
        [p.source, p.target, six_digits(p.tuples_per_s), *size]
        for p, size in zip(pairs, sized, strict=True)
    )


def history(tasks: DataFrame, window_s: int, name_of: Naming) -> dict[str, list[list[float]]]:
    """The contract's `history`: what every spout emitted in each window, by seconds since 1970."""
    spouts = (
        tasks.groupBy("topology", "component")
        .agg(F.sum("tuples_in").alias("taken"))
        .where("taken = 0")
    )
    emitted = tasks.join(F.broadcast(spouts), ["topology", "component"], how="left_semi")
    rates = emitted.groupBy("topology", "component", "start_s").agg(
        (F.sum("tuples_out") / window_s).alias("rate")
    )
    return history_entries(rates.orderBy("topology", "component", "start_s").collect(), name_of)


def history_entries(rates: Sequence[Figures], name_of: Naming) -> dict[str, list[list[float]]]:
    """The newest windows of every spout, from its rates in the order of time."""
    result: dict[str, list[list[float]]] = {}
    for row in rates:
        result.setdefault(name_of(row["topology"], row["component"]), []).append(
            [row["start_s"], six_digits(row["rate"])]
        )
    return {spout: series[-HISTORY:] for spout, series in result.items()}


def task_number(task: str) -> int:
    return int(task.rpartition(".")[2])


SPARK = Frames(
    steady_figure=steady_figure,
    spans_of=spans_of,
    shift_clocks=shift_clocks,
    keep_whole=keep_whole,
    keep_topologies=lambda windows, shown: windows.where(F.col("topology").isin(*shown)),
    fits=lambda tasks, window_s: fits(load_points(tasks, window_s)),
    heaviest_pairs=heaviest_pairs,
    streams=streams,
    history=history,
)
