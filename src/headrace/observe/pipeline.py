"""The whole way: a telemetry folder or a store in, measured sections and counts of rows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidInput
from headrace.model.document import FORMAT
from headrace.model.telemetry import KINDS
from headrace.observe.classify import EVENTS, LATE, LATENESS_S, QUARANTINE, events, others
from headrace.observe.fit import Fit
from headrace.observe.inventory import inventory
from headrace.observe.sections import SPARK, MeasuredSections, Pair, Question, measure
from headrace.observe.source import check_folder, read_files
from headrace.observe.store import check_store, rows_of, segments
from headrace.observe.windows import edge_windows, task_windows


@dataclass(frozen=True, slots=True)
class Observed:
    """What was measured, from how many rows, and what to know about it."""

    sections: dict[str, Any]
    heaviest: tuple[Pair, ...]
    fits: tuple[Fit, ...]
    rows: dict[str, dict[str, int]]  # kind -> events, late, quarantine, duplicates of the events
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The measured sections as a file of the contract."""
        return {"format": FORMAT, **self.sections}

    def to_json(self) -> dict[str, Any]:
        pairs = [[p.source, p.target, p.tuples_per_s, p.bytes_per_s] for p in self.heaviest]
        return {
            **self.document(),
            "report": {"rows": self.rows, "heaviest_pairs": pairs, "notes": list(self.notes)},
        }


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a kind that can be used, and all others with their `table` and `reason`."""

    events: DataFrame
    others: DataFrame


def observe_folder(
    spark: SparkSession,
    folder: Path,
    question: Question,
    *,
    lateness_s: float = LATENESS_S,
    newest: int | None = None,
) -> Observed:
    """What a telemetry folder says, or only the `newest` files of each kind by their names."""
    files = check_folder(folder, newest)
    found = {kind: read_files(spark, kind, files[kind]) for kind in KINDS}
    rows = {
        kind: Rows(
            events(found[kind], kind, lateness_s=lateness_s),
            others(found[kind], kind, lateness_s=lateness_s),
        )
        for kind in KINDS
    }
    return observe_rows(rows, str(folder), question, unique=False)


def observe_store(spark: SparkSession, store: Path, question: Question) -> Observed:
    """What a store says."""
    check_store(store)
    found = {kind: rows_of(spark, store, kind, segments(store, kind)) for kind in KINDS}
    used = F.col("table") == EVENTS
    rows = {kind: Rows(found[kind].where(used), found[kind].where(~used)) for kind in KINDS}
    return observe_rows(rows, str(store), question, unique=True)


def observe_rows(
    rows: Mapping[str, Rows], place: str, question: Question, *, unique: bool
) -> Observed:
    """What the rows say; `unique`: no sample is twice among the events."""
    accounts = {kind: account(rows[kind].others, kind) for kind in KINDS}
    usable = {kind: rows[kind].events.count() for kind in KINDS}
    counts, notes = count_rows(place, usable, accounts)
    tasks = task_windows(rows["tasks"].events, question.window_s, unique=unique).cache()
    edges = edge_windows(rows["edges"].events, question.window_s, unique=unique).cache()
    try:
        samples = {
            kind: windows.agg(F.sum("samples")).collect()[0][0] or 0
            for kind, windows in (("tasks", tasks), ("edges", edges))
        }
        found = measure(SPARK, tasks, edges, question)
    finally:
        tasks.unpersist()
        edges.unpersist()
    facts = inventory(rows["nodes"].events) if usable["nodes"] else {}
    return assemble(counts, notes, samples, found, facts)


Counts = dict[str, dict[str, int]]  # kind -> events, late, quarantine
Account = dict[tuple[str, str | None, str | None], int]


def count_rows(
    place: str, usable: Mapping[str, int], accounts: Mapping[str, Account]
) -> tuple[Counts, list[str]]:
    """How many rows there are of each kind, and what to say of those that were not used."""
    counts = {
        kind: {EVENTS: usable[kind]}
        | {
            table: sum(n for key, n in found.items() if key[0] == table)
            for table in (LATE, QUARANTINE)
        }
        for kind, found in accounts.items()
    }
    notes = [note for kind in KINDS for note in remarks(kind, counts[kind], accounts[kind])]
    if not any(usable.values()):
        raise InvalidInput(
            f"{place}: holds no row that can be used" + "".join(f"\n  {note}" for note in notes)
        )
    return counts, notes


def assemble(
    counts: Counts,
    notes: Sequence[str],
    samples: Mapping[str, int],
    found: MeasuredSections,
    facts: Mapping[str, Any],
) -> Observed:
    """What was measured, with the inventory; events beyond the samples came more than once."""
    duplicates = {kind: counts[kind][EVENTS] - used for kind, used in samples.items()}
    rows = {
        kind: {**count, **({"duplicates": duplicates[kind]} if kind in duplicates else {})}
        for kind, count in counts.items()
    }
    sections = {**found.sections, **({"inventory": facts} if facts else {})}
    return Observed(sections, found.heaviest, found.fits, rows, (*notes, *found.notes))


def account(rows: DataFrame, kind: str) -> Account:
    """How many rows there are by table, reason and, if in quarantine, the node they came from."""
    node = F.col("node") if "node" in KINDS[kind].names else F.lit(None).cast("string")
    counts = rows.groupBy(
        "table", "reason", F.when(F.col("reason").isNotNull(), node).alias("node")
    ).count()
    return {(table, reason, node): n for table, reason, node, n in counts.collect()}


def remarks(kind: str, counts: Mapping[str, int], found: Account) -> Iterator[str]:
    """What to say about rows that were not used."""
    if counts[LATE]:
        yield f"late: {counts[LATE]:,} rows of {kind}"
    for (table, reason, node), n in sorted(
        found.items(), key=lambda item: (-item[1], str(item[0]))
    ):
        if table == QUARANTINE:
            source = f" from node {node}" if node else ""
            yield f"quarantine: {n:,} rows of {kind}{source}: {reason}"
