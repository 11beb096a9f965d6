"""Small topologies whose results are known, for the tests of running."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.model.topology import Form
from headrace.run import Keyed, Parquet, Topology
from headrace.run.sources import Source, numbers

WORDS = ("amber", "birch", "cedar", "dune", "elm", "fern", "gorse")
COUNTS = Keyed(pa.schema([("word", pa.string()), ("count", pa.int64())]), ("word",))
BY_WORD = {"grouping": "fields", "fields": ["word"]}


def sentence(number: int) -> str:
    """Four words that follow from a number."""
    return " ".join(WORDS[number * k % len(WORDS)] for k in range(1, 5))


def sentences(table: pa.Table) -> pa.Table:
    return pa.table({"sentence": [sentence(n) for n in table["value"].to_pylist()]})


def split(table: pa.Table) -> pa.Table:
    return pa.table(
        {"word": [word for text in table["sentence"].to_pylist() for word in text.split()]}
    )


def count(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Adds to the counts; emits the new count of each word of this batch."""
    seen = table.group_by("word").aggregate([("word", "count")]).rename_columns(["word", "count"])
    both = (
        pa.concat_tables([state, seen])
        .group_by("word")
        .aggregate([("count", "sum")])
        .rename_columns(["word", "count"])
    )
    return both.join(seen.select(["word"]), "word", join_type="left semi"), both


def count_frame(frame: Any, state: Any) -> tuple[Any, Any]:
    import pandas as pd

    seen = frame.groupby("word", as_index=False).size().rename(columns={"size": "count"})
    both = pd.concat([state, seen]).groupby("word", as_index=False)["count"].sum()
    return both.merge(seen[["word"]], on="word"), both


def count_tuple(
    row: Mapping[str, Any], state: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    held = state.setdefault(row["word"], {"word": row["word"], "count": 0})
    held["count"] += 1
    yield dict(held)


COUNTERS: Mapping[Form, Any] = {"arrow": count, "pandas": count_frame, "tuple": count_tuple}


def word_count(
    out: Path | None = None,
    *,
    source: Source | None = None,
    per_batch: int = 100,
    form: Form = "arrow",
) -> Topology:
    """Sentences from numbers, split, counted."""
    topology = (
        Topology("word-count")
        .spout("sentence", source or numbers(per_batch), sentences, tasks=2)
        .bolt("split", split, inputs={"sentence": "shuffle"}, tasks=3)
        .bolt("count", COUNTERS[form], inputs={"split": BY_WORD}, tasks=2, state=COUNTS, form=form)
    )
    return topology if out is None else topology.sink("count", Parquet(str(out)))


def values(first: int, end: int) -> dict[str, pa.Table]:
    """A batch of numbers for the spout of word count."""
    return {"sentence": pa.table({"value": list(range(first, end))})}


def expected_counts(end: int) -> dict[str, int]:
    """How often each word stands in the first sentences."""
    return dict(Counter(word for n in range(end) for word in sentence(n).split()))


def final_counts(out: Path) -> dict[str, int]:
    """The last count of each word in a Parquet output, in the order of batches."""
    counts: dict[str, int] = {}
    for batch in sorted(
        out.glob("batch=*"), key=lambda folder: int(folder.name.removeprefix("batch="))
    ):
        owners: dict[str, str] = {}
        for file in sorted(batch.glob("*.parquet")):
            for row in pq.ParquetFile(file).read().to_pylist():
                assert owners.setdefault(row["word"], file.name) == file.name, (
                    f"{row['word']} was counted by two tasks"
                )
                assert row["count"] > counts.get(row["word"], 0), (
                    f"the count of {row['word']} went back"
                )
                counts[row["word"]] = row["count"]
    return counts


def places(
    tasks: Mapping[str, int], nodes: Sequence[str]
) -> dict[tuple[str, int], tuple[str, int]]:
    """Tasks dealt over nodes in turn."""
    every = [(name, number) for name, count in tasks.items() for number in range(count)]
    return {task: (nodes[i % len(nodes)], 0) for i, task in enumerate(every)}
