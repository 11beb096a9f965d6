"""Small telemetry without Spark: the same definitions over pandas frames, in milliseconds.

Every function here says what one of the same meaning says over Spark's; tests run both on the same
data. Spark plans some 70 jobs for a decision, whatever little there is to read. Percentiles are
exact here, and as near as Spark's own accuracy there.
"""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.model.telemetry import KINDS
from headrace.observe.classify import (
    AHEAD_S,
    EVENTS,
    FRACTIONS,
    LARGEST,
    LATE,
    LATENESS_S,
    NEEDED,
    OPTIONAL,
    QUARANTINE,
    TASK_NAMES,
    TEXTS,
)
from headrace.observe.inventory import FACTS, inventory_of
from headrace.observe.pipeline import Account, Observed, assemble, count_rows
from headrace.observe.sections import (
    KEPT,
    MOST_PAIRS,
    Frames,
    Naming,
    Pair,
    Question,
    history_entries,
    measure,
    read_traffic,
    stream_entries,
    task_number,
)
from headrace.observe.small_fit import fits
from headrace.observe.source import check_folder
from headrace.observe.spans import Span

SMALL_BYTES = 8_000_000  # of files
Frame = Any  # a pandas frame, whose types are not known here
Steady = Callable[[Sequence[float], Sequence[int], int], float]  # values, ages, windows


def is_small(files: Mapping[str, Sequence[Path]]) -> bool:
    """Whether telemetry is little enough to be read here; JSON lines are left to Spark."""
    every = [file for found in files.values() for file in found]
    parquet = all(file.suffix == ".parquet" for file in every)
    return parquet and sum(file.stat().st_size for file in every) <= SMALL_BYTES


def observe_small(
    folder: Path,
    question: Question,
    *,
    lateness_s: float = LATENESS_S,
    newest: int | None = None,
) -> Observed:
    """What a small telemetry folder says, as `observe_folder` does."""
    files = check_folder(folder, newest)
    rows = {kind: classify(read_kind(kind, files[kind]), kind, lateness_s) for kind in KINDS}
    used = {kind: frame[frame["table"] == EVENTS] for kind, frame in rows.items()}
    accounts = {kind: account(frame, kind) for kind, frame in rows.items()}
    usable = {kind: len(frame) for kind, frame in used.items()}
    counts, notes = count_rows(str(folder), usable, accounts)
    tasks = task_windows(used["tasks"], question.window_s)
    edges = edge_windows(used["edges"], question.window_s)
    samples = {
        kind: int(windows["samples"].sum())
        for kind, windows in (("tasks", tasks), ("edges", edges))
    }
    facts = inventory_of(latest_facts(used["nodes"])) if usable["nodes"] else {}
    return assemble(counts, notes, samples, measure(PANDAS, tasks, edges, question), facts)


def read_inventory(folder: Path) -> dict[str, dict[str, Any]]:
    """The contract's `inventory`, from the last facts of every node, however old they are.

    Of each writer the newest file is enough: what a node is changes rarely.
    """
    files = (f for f in sorted((folder / "nodes").glob("*.parquet")) if f.name[0] not in "._")
    newest = {file.stem.rpartition("-")[0]: file for file in files}
    rows = classify(read_kind("nodes", list(newest.values())), "nodes", LATENESS_S)
    return inventory_of(latest_facts(rows[rows["table"] != QUARANTINE]))


def read_kind(kind: str, files: Sequence[Path]) -> Frame:
    """All rows of one kind; times are microseconds since 1970."""
    schema = KINDS[kind]
    tables = [schema.empty_table()]
    for file in files:
        read = pq.ParquetFile(file).read()
        nulls = {f.name: pa.nulls(read.num_rows, f.type) for f in schema}
        own = {f.name: read[f.name].cast(f.type) for f in schema if f.name in read.column_names}
        tables.append(pa.table({**nulls, **own}, schema=schema))
    whole = pa.concat_tables(tables)
    for name in ("event_time", "arrival"):
        whole = whole.set_column(
            whole.schema.get_field_index(name), name, whole[name].cast(pa.int64())
        )
    types = {pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype()}
    return whole.to_pandas(types_mapper=types.get)


def classify(rows: Frame, kind: str, lateness_s: float) -> Frame:
    """Rows with their `table` and, if that is the quarantine, the `reason`."""
    reason = pd.Series([None] * len(rows), index=rows.index, dtype=object)
    for fault, text in faults(rows, kind):
        at_fault = fault.fillna(False).astype(bool)
        reason = reason.where(reason.notna() | ~at_fault, text)
    delay = (rows["arrival"] - rows["event_time"]).astype("Float64")
    late = (delay > round(lateness_s * 1e6)).fillna(False)
    table = np.where(reason.notna(), QUARANTINE, np.where(late, LATE, EVENTS))
    return rows.assign(reason=reason, table=table)


def faults(rows: Frame, kind: str) -> Iterator[tuple[Frame, str]]:
    """What can be wrong with a row of a Parquet file, and how it is said."""
    for name in ("event_time", "arrival"):
        yield rows[name].isna(), f"no {name}"
    yield rows["event_time"] < 0, "event_time is before 1970"
    for name in TEXTS[kind]:
        yield rows[name].isna() | (rows[name] == ""), f"no {name}"
    for name in TASK_NAMES[kind]:
        named = rows[name].map(_is_task_name, na_action="ignore").astype("boolean")
        yield ~named, f"{name} is not component.N"
    if kind == "tasks":
        pairs = zip(rows["task"], rows["component"], strict=True)
        own = [a is None or b is None or a.startswith(b) for a, b in pairs]
        yield ~pd.Series(own, index=rows.index, dtype=bool), "task is not one of its component"
    for name in NEEDED[kind]:
        yield rows[name].isna() & ~_is_nan(rows[name]), f"no {name}"
    for name in (*NEEDED[kind], *OPTIONAL[kind]):
        yield rows[name] < 0, f"{name} is negative"
    for name in FRACTIONS[kind]:
        yield _is_nan(rows[name]) | (rows[name] > LARGEST), f"{name} is not a number"
    ahead = rows["event_time"] - rows["arrival"] > round(AHEAD_S * 1e6)
    yield ahead, "event_time is after arrival: a clock is ahead"


def _is_task_name(task: str) -> bool:
    _, dot, number = task.rpartition(".")
    return bool(dot) and re.fullmatch(r"\s*\+?[0-9]+\s*", number) is not None and int(number) >= 1


def _is_nan(column: Frame) -> Frame:
    """Where a fraction is there and is not a number."""
    values = column.to_numpy(dtype=float, na_value=0.0)
    return pd.Series(np.isnan(values), index=column.index)


def account(rows: Frame, kind: str) -> Account:
    """How many rows were not used, by table, reason and, in quarantine, the node."""
    found: Account = {}
    others = rows[rows["table"] != EVENTS]
    nodes = others["node"] if "node" in others else [None] * len(others)
    for table, reason, node in zip(others["table"], others["reason"], nodes, strict=True):
        key = (table, reason, node if reason is not None else None)
        found[key] = found.get(key, 0) + 1
    return found


def task_windows(samples: Frame, window_s: int) -> Frame:
    """One row per topology, task, node, machine type and window: tuples in and out, and CPU."""
    keys = ["topology", "task", "node", "machine_type", "start_s"]
    windows = sum_windows(samples, keys, ["tuples_in", "tuples_out", "cpu_ms"], window_s)
    return windows.assign(component=windows["task"].map(component_of))


def edge_windows(samples: Frame, window_s: int) -> Frame:
    """One row per topology, pair of tasks and window: what went from one to the other."""
    keys = ["topology", "from_task", "to_task", "start_s"]
    windows = sum_windows(samples, keys, ["tuples", "bytes"], window_s)
    return windows.assign(
        source=windows["from_task"].map(component_of), target=windows["to_task"].map(component_of)
    )


def sum_windows(samples: Frame, keys: list[str], sums: list[str], window_s: int) -> Frame:
    """Samples added up per key, each sample once."""
    start_s = samples["event_time"] // (window_s * 1_000_000) * window_s
    timed = samples.assign(start_s=start_s.astype("int64"))
    once = timed.groupby([*keys, "event_time"], dropna=False, as_index=False)[sums].max()
    groups = once.groupby(keys, dropna=False)
    added = groups[sums].sum(min_count=1).assign(samples=groups.size()).reset_index()
    return added.astype({name: "Float64" for name in sums})


def component_of(task: str) -> str:
    return re.sub(r"\.[0-9]+$", "", task)


def latest_facts(nodes: Frame) -> list[dict[str, Any]]:
    """What each node last said it is."""
    newest = nodes.sort_values("event_time", kind="stable").groupby("node").tail(1)
    rows = newest.sort_values("node")[["node", *FACTS]].to_dict("records")
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in rows]


def spans_of(tasks: Frame, edges: Frame) -> list[Span]:
    """Where samples begin and end."""
    found: list[Span] = []
    for windows, keys in ((edges, ["topology"]), (tasks, ["topology", "node"])):
        for key, start_s in windows.groupby(keys)["start_s"]:
            node = key[1] if len(keys) > 1 else None
            found.append(Span(key[0], node, int(start_s.min()), int(start_s.max())))
    return sorted(found, key=lambda span: (span.topology, span.node or ""))


def shift_clocks(tasks: Frame, edges: Frame, ahead: Mapping[str, int]) -> tuple[Frame, Frame]:
    """Windows of nodes whose clock is ahead, moved back by as much."""
    if not ahead:
        return tasks, edges
    shift = tasks["node"].map(ahead)
    theirs = {
        (topology, task): by
        for topology, task, by in zip(tasks["topology"], tasks["task"], shift, strict=True)
        if not math.isnan(by)
    }
    senders = zip(edges["topology"], edges["from_task"], strict=True)
    sent = [theirs.get(sender, 0) for sender in senders]
    moved = tasks.assign(start_s=tasks["start_s"] - shift.fillna(0).astype("int64"))
    return moved, edges.assign(start_s=edges["start_s"] - np.array(sent, dtype=np.int64))


def keep_whole(windows: Frame, whole: Mapping[str, tuple[int, int]], window_s: int) -> Frame:
    """The whole windows, with their `age` (0: the last one) and how many there are."""
    bounds = [whole[topology] for topology in windows["topology"]]
    first, last = np.array(bounds, dtype=np.int64).reshape(-1, 2).T
    start_s = windows["start_s"].to_numpy()
    counted = windows.assign(
        age=(last - start_s) // window_s, windows=(last - first) // window_s + 1
    )
    return counted[(start_s >= first) & (start_s <= last)]


def steady_figure(traffic: str) -> Steady:
    """One figure for a series of windows; an absent window counts as 0."""
    match read_traffic(traffic):
        case "last":
            return lambda values, ages, _: sum(
                v for v, age in zip(values, ages, strict=True) if age == 0
            )
        case "average":
            return lambda values, ages, windows: (
                sum(v * KEPT**age for v, age in zip(values, ages, strict=True))
                / ((1 - KEPT**windows) / (1 - KEPT))
            )
        case percent:
            return lambda values, _, windows: percentile(values, windows, percent)


def percentile(values: Sequence[float], windows: int, percent: int) -> float:
    """The smallest value that so many percent of all windows do not exceed."""
    rank = math.ceil(windows * percent / 100) - (windows - len(values))
    return 0.0 if rank < 1 else sorted(values)[rank - 1]


def steady_by(windows: Frame, keys: list[str], series: str, steady: Steady) -> dict[Any, float]:
    """The steady figure of a series for every group; groups without any value are left out."""
    found: dict[Any, float] = {}
    present = windows[windows[series].notna()]
    for key, group in present.groupby(keys, dropna=False):
        added = group.groupby("age")[series].sum()
        values = added.to_numpy(dtype=float).tolist()
        found[key] = float(steady(values, added.index.tolist(), int(group["windows"].max())))
    return found


def streams(
    tasks: Frame, edges: Frame, steady: Steady, window_s: int, name_of: Naming
) -> list[dict[str, Any]]:
    """The contract's `streams`."""
    ends = ["topology", "source", "target"]
    rates = {k: v / window_s for k, v in steady_by(edges, ends, "tuples", steady).items()}
    received: dict[tuple[str, ...], dict[int, Any]] = {}
    for (*key, task), group in edges.groupby([*ends, "to_task"]):
        data = group["bytes"].sum(min_count=1)
        received.setdefault(tuple(key), {})[task_number(task)] = {
            "tuples": int(group["tuples"].sum()),
            "bytes": None if data is pd.NA else int(data),
        }
    flows = {
        key: {
            "taken": int(group["tuples_in"].sum()),
            "given": int(group["tuples_out"].sum()),
            "tasks": max(map(task_number, group["task"])),
        }
        for key, group in tasks.groupby(["topology", "component"])
    }
    return stream_entries(rates, received, flows, name_of)


def heaviest_pairs(edges: Frame, steady: Steady, window_s: int, name_of: Naming) -> list[Pair]:
    """Pairs of tasks, those that talk most first; one more than a file should hold at most."""
    keys = ["topology", "from_task", "to_task"]
    tuples = steady_by(edges, keys, "tuples", steady)
    data = steady_by(edges, keys, "bytes", steady)
    rows = sorted((-rate, *key) for key, rate in tuples.items() if rate > 0)
    return [
        Pair(
            name_of(topology, a),
            name_of(topology, b),
            -rate / window_s,
            data[topology, a, b] / window_s if (topology, a, b) in data else None,
        )
        for rate, topology, a, b in rows[: MOST_PAIRS + 1]
    ]


def history(tasks: Frame, window_s: int, name_of: Naming) -> dict[str, list[list[float]]]:
    """The contract's `history`: what every spout emitted in each window."""
    rates: list[dict[str, Any]] = []
    for (topology, component), group in tasks.groupby(["topology", "component"]):
        if group["tuples_in"].sum() == 0:
            for start_s, given in group.groupby("start_s")["tuples_out"].sum().items():
                rates.append(
                    {"topology": topology, "component": component, "start_s": start_s,
                     "rate": float(given) / window_s}
                )  # fmt: skip
    return history_entries(rates, name_of)


PANDAS = Frames(
    steady_figure=steady_figure,
    spans_of=spans_of,
    shift_clocks=shift_clocks,
    keep_whole=keep_whole,
    keep_topologies=lambda windows, shown: windows[windows["topology"].isin(shown)],
    fits=fits,
    heaviest_pairs=heaviest_pairs,
    streams=streams,
    history=history,
)
