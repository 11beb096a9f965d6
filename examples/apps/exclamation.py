"""Exclamation: every word gets three exclamation marks, twice.

    headrace run exclamation --batches 5 --option out=words

Source: A. Muhammad, PhD thesis 2023, listing 4.2, from Storm's examples: 10, 3 and 2 executors, and
the same five words.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

WORDS = ("nathan", "mike", "jackson", "golda", "bertels")


class Words:
    """Turns numbers into words."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, table: pa.Table) -> pa.Table:
        chosen = (len(WORDS) * draw(table["value"].to_numpy(), 0, self.seed)).astype(np.int64)
        return pa.table({"value": pa.array(WORDS).take(pa.array(chosen))})


def words(table: pa.Table) -> pa.Table:
    """The words of lines of text."""
    every = pc.list_flatten(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(table["value"])))
    return pa.table({"value": every}).filter(pc.not_equal(every, ""))


def exclaim(table: pa.Table) -> pa.Table:
    """Every word with three exclamation marks."""
    return pa.table({"value": pc.binary_join_element_wise(table["value"], "!!!", "")})


def topology(
    *, per_batch: int = 10_000, seed: int = 0, text: str | None = None, out: str | None = None
) -> Topology:
    """Exclamation over generated words, or over those of new text files in a folder (`text`)."""
    found = Topology("exclamation")
    if text is None:
        found = found.spout("word", numbers(per_batch), Words(seed), tasks=10)
    else:
        found = found.spout(
            "word", files(text, format="text", schema="value string"), words, tasks=10
        )
    found = found.bolt("exclaim1", exclaim, inputs={"word": "shuffle"}, tasks=3)
    found = found.bolt("exclaim2", exclaim, inputs={"exclaim1": "shuffle"}, tasks=2)
    return found.sink("exclaim2", Console() if out is None else Parquet(out))


def expected(batches: int, *, per_batch: int = 10_000, seed: int = 0) -> list[dict[str, int]]:
    """How often each word comes out of each batch."""
    chosen = (
        (len(WORDS) * draw(np.arange(batches * per_batch), 0, seed))
        .astype(int)
        .reshape(batches, per_batch)
    )
    return [dict(Counter(f"{WORDS[n]}!!!!!!" for n in batch)) for batch in chosen.tolist()]


def result(out: str, batches: int) -> list[dict[str, int]]:
    """What a run has written, in the form of `expected`."""
    return [dict(Counter(row["value"] for row in rows)) for rows in read_batches(out, batches)]
