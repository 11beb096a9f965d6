"""Word count: sentences are split into words, words are counted.

    headrace run word-count --batches 5 --option out=counts

Every word is a row of its own on its way from `split` to `count`; nothing is added up before. The
generator is seeded: sentence i is the same in every run, so `expected` can count all words again by
itself.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import files, numbers

SYLLABLES = (
    "ba",
    "den",
    "fi",
    "gol",
    "hu",
    "ka",
    "lim",
    "no",
    "per",
    "quo",
    "ra",
    "si",
    "tem",
    "ul",
    "vo",
    "zan",
)
VOCABULARY = np.array(
    [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
)  # 4,096 words
COUNTS = Keyed(pa.schema([("word", pa.string()), ("count", pa.int64())]), ("word",))


def word_numbers(sentence: np.ndarray, words: int, seed: int) -> np.ndarray:
    """The words of some sentences as numbers, [sentences, words]; low numbers are frequent.

    A hash of seed, sentence and position, so that any sentence can be made anywhere, any number of
    times.
    """
    position = np.arange(words, dtype=np.uint64)[None, :]
    mixed = (
        sentence.astype(np.uint64)[:, None] * np.uint64(words)
        + position
        + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    )
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    even = (mixed ^ (mixed >> np.uint64(31))).astype(np.float64) / 2.0**64
    return (len(VOCABULARY) * even**3).astype(
        np.int64
    )  # a third power: the first word of a hundred takes a fifth


class Sentences:
    """Turns numbers into sentences."""

    def __init__(self, words: int, seed: int) -> None:
        self.words, self.seed = words, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        chosen = word_numbers(table["value"].to_numpy(), self.words, self.seed)
        flat = pa.array(VOCABULARY).take(pa.array(chosen.ravel()))
        offsets = pa.array(np.arange(0, chosen.size + 1, self.words, dtype=np.int32))
        return pa.table({"sentence": pc.binary_join(pa.ListArray.from_arrays(offsets, flat), " ")})


def split(table: pa.Table) -> pa.Table:
    """One row per word."""
    return pa.table({"word": pc.list_flatten(pc.split_pattern(table["sentence"], " "))})


def count(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The new count of every word that came, and all counts."""
    fresh = table.group_by("word").aggregate([("word", "count")]).rename_columns(["word", "count"])
    both = (
        pa.concat_tables([state, fresh])
        .group_by("word")
        .aggregate([("count", "sum")])
        .rename_columns(["word", "count"])
    )
    return both.join(fresh.select(["word"]), "word", join_type="left semi"), both


def topology(
    *,
    sentences: int = 10_000,
    words: int = 10,
    seed: int = 0,
    tasks: int = 4,
    text: str | None = None,
    out: str | None = None,
) -> Topology:
    """Word count over generated sentences, or over lines of new files in a folder (`text`)."""
    found = Topology("word-count")
    if text is None:
        found = found.spout("sentence", numbers(sentences), Sentences(words, seed), tasks=2)
    else:
        found = found.spout(
            "sentence", files(text, format="text", schema="value string"), lines, tasks=2
        )
    found = found.bolt("split", split, inputs={"sentence": "shuffle"}, tasks=tasks)
    found = found.bolt(
        "count",
        count,
        inputs={"split": {"grouping": "fields", "fields": ["word"]}},
        tasks=tasks,
        state=COUNTS,
    )
    return found.sink("count", Console() if out is None else Parquet(out))


def lines(table: pa.Table) -> pa.Table:
    """Lines of a text file as sentences."""
    return table.select(["value"]).rename_columns(["sentence"])


def expected(
    batches: int, *, sentences: int = 10_000, words: int = 10, seed: int = 0
) -> dict[str, int]:
    """The counts after some batches, from the numbers alone: no splitting, grouping or state."""
    chosen = word_numbers(np.arange(batches * sentences), words, seed)
    found = np.bincount(chosen.ravel(), minlength=len(VOCABULARY))
    return {str(word): int(n) for word, n in zip(VOCABULARY, found, strict=True) if n}


def result(out: str, batches: int) -> dict[str, int]:
    """The last counts that a run has written, in the form of `expected`."""
    found: dict[str, int] = {}
    for rows in read_batches(out, batches):
        latest: Counter[str] = Counter()
        for row in rows:
            latest[row["word"]] += row["count"]  # a row that came twice would count twice
        found |= latest
    return found


def counted(out: str) -> dict[str, int]:
    """The last counts in an output folder, however many batches it holds."""
    return result(out, len(list(Path(out).glob("batch=*"))))
