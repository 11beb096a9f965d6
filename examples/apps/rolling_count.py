"""Rolling count: how often each word came in the last few batches.

    headrace run rolling-count --batches 8 --option window=3 --option out=counts

After every batch each task gives the counts of all its words in the window, also of those that did
not come in this batch: `split` tells all tasks that a batch has gone by. A word that has left the
window is forgotten.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

WORDS_PER_SENTENCE = 8
SLOTS = Keyed(
    pa.schema([("word", pa.string()), ("batch", pa.int64()), ("count", pa.int64())]), ("word",)
)


def word_numbers(sentence: np.ndarray, seed: int) -> np.ndarray:
    """The words of generated sentences, [sentences, words]; the topic changes every thousand."""
    topic = sentence[:, None] // 1000 * 50
    return topic + np.stack(
        [(400 * draw(sentence, c, seed) ** 3).astype(np.int64) for c in range(WORDS_PER_SENTENCE)],
        axis=1,
    )


class Sentences:
    """Turns numbers into sentences."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, table: pa.Table) -> pa.Table:
        chosen = word_numbers(table["value"].to_numpy(), self.seed)
        return pa.table(
            {"value": [" ".join(f"word{n}" for n in words) for words in chosen.tolist()]}
        )


def split(table: pa.Table) -> dict[str, pa.Table]:
    """One row per word, and a sign that a batch has gone by."""
    words = pc.list_flatten(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(table["value"])))
    return {
        "default": pa.table({"word": words}).filter(pc.not_equal(words, "")),
        "tick": pa.table({"tick": [True]}),
    }


class Roll:
    """Counts words per batch; at a tick, gives their sums over the window."""

    def __init__(self, window: int) -> None:
        self.window = window

    def __call__(
        self, table: pa.Table, state: pa.Table, batch: int
    ) -> tuple[pa.Table | None, pa.Table]:
        if "tick" not in table.column_names:
            fresh = (
                table.group_by("word")
                .aggregate([("word", "count")])
                .rename_columns(["word", "count"])
            )
            slot = pa.repeat(pa.scalar(batch, pa.int64()), fresh.num_rows)
            return None, pa.concat_tables(
                [state, fresh.append_column("batch", slot).select(state.column_names)]
            )
        inside = state.filter(pc.greater(state["batch"], batch - self.window))
        return inside.group_by("word").aggregate([("count", "sum")]).rename_columns(
            ["word", "count"]
        ), inside


def topology(
    *,
    sentences: int = 1000,
    window: int = 3,
    seed: int = 0,
    tasks: int = 4,
    text: str | None = None,
    out: str | None = None,
) -> Topology:
    """Rolling count over generated sentences, or over new text files in a folder (`text`).

    One file is one batch.
    """
    found = Topology("rolling-count")
    if text is None:
        found = found.spout("sentence", numbers(sentences), Sentences(seed), tasks=2)
    else:
        found = found.spout(
            "sentence", files(text, format="text", schema="value string", per_batch=1), tasks=2
        )
    found = found.bolt("split", split, inputs={"sentence": "shuffle"}, tasks=tasks)
    inputs = {
        "split": [{"grouping": "fields", "fields": ["word"]}, {"grouping": "all", "stream": "tick"}]
    }
    found = found.bolt("count", Roll(window), inputs=inputs, tasks=tasks, state=SLOTS)
    return found.sink("count", Console() if out is None else Parquet(out))


def expected(
    batches: int, *, sentences: int = 1000, window: int = 3, seed: int = 0
) -> list[dict[str, int]]:
    """After each batch the counts in the window, counted again from its sentences."""
    chosen = word_numbers(np.arange(batches * sentences), seed)
    spans = (
        (max(0, batch + 1 - window) * sentences, (batch + 1) * sentences)
        for batch in range(batches)
    )
    return [
        dict(Counter(f"word{n}" for n in chosen[first:end].ravel().tolist()))
        for first, end in spans
    ]


def result(out: str, batches: int) -> list[dict[str, int]]:
    """What a run has written, in the form of `expected`."""
    found: list[Counter[str]] = []
    for rows in read_batches(out, batches):
        found.append(Counter())
        for row in rows:
            found[-1][row["word"]] += row["count"]  # a row that came twice would count twice
    return [dict(counts) for counts in found]
