"""Prefix word count: every bolt of a chain looks for words with one letter more in common.

    headrace run prefix-word-count --batches 5 --option prefix=per --option out=counts

Source: S. Souravlas et al., section 4: a task seeks the words that start with a letter, and passes
them on to one that seeks those that start with that letter and more letters. `prefix=per` makes a
chain of three bolts, seek-1 (p), seek-2 (pe) and seek-3 (per). Each sends what it finds to the next
and to `count`. The paper says neither how many letters there are nor what is counted at the end;
here it is each word under each prefix.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

SYLLABLES = ("ba", "den", "fi", "gol", "ka", "pa", "pe", "per", "pi", "ra", "tem", "vo")
VOCABULARY = tuple(a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES)
WORDS_PER_SENTENCE = 10
COUNTS = Keyed(
    pa.schema([("prefix", pa.string()), ("word", pa.string()), ("count", pa.int64())]),
    ("prefix", "word"),
)


def word_numbers(sentence: np.ndarray, seed: int) -> np.ndarray:
    """The words of generated sentences as numbers in the vocabulary, [sentences, words]."""
    even = np.stack([draw(sentence, column, seed) for column in range(WORDS_PER_SENTENCE)], axis=1)
    return (len(VOCABULARY) * even).astype(np.int64)


class Sentences:
    """Turns numbers into sentences."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, table: pa.Table) -> pa.Table:
        chosen = word_numbers(table["value"].to_numpy(), self.seed)
        return pa.table(
            {"value": [" ".join(VOCABULARY[n] for n in words) for words in chosen.tolist()]}
        )


class Seek:
    """The words that begin with a prefix; the first of the chain also splits the text."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __call__(self, table: pa.Table) -> pa.Table:
        first = "value" in table.column_names
        words = (
            pc.list_flatten(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(table["value"])))
            if first
            else table["word"]
        )
        found = words.filter(pc.starts_with(words, self.prefix))
        return pa.table({"prefix": pa.repeat(self.prefix, len(found)), "word": found})


def count(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The new count of every word that came, and all counts.

    Called once per bolt of the chain, and each has its own prefix.
    """
    key = list(COUNTS.key)
    fresh = table.group_by(key).aggregate([("word", "count")]).rename_columns(COUNTS.schema.names)
    both = (
        pa.concat_tables([state, fresh])
        .group_by(key)
        .aggregate([("count", "sum")])
        .rename_columns(COUNTS.schema.names)
    )
    return both.join(fresh.select(key), key, join_type="left semi"), both


def topology(
    *,
    sentences: int = 10_000,
    prefix: str = "per",
    seed: int = 0,
    tasks: int = 4,
    text: str | None = None,
    out: str | None = None,
) -> Topology:
    """Prefix word count over generated sentences, or lines of new files in a folder (`text`)."""
    found = Topology("prefix-word-count")
    if text is None:
        found = found.spout("sentence", numbers(sentences), Sentences(seed), tasks=2)
    else:
        found = found.spout("sentence", files(text, format="text", schema="value string"), tasks=2)
    before, chain = "sentence", dict[str, Any]()
    for letters in range(1, len(prefix) + 1):
        name = f"seek-{letters}"
        found = found.bolt(name, Seek(prefix[:letters]), inputs={before: "shuffle"}, tasks=tasks)
        before, chain[name] = name, {"grouping": "fields", "fields": list(COUNTS.key)}
    found = found.bolt("count", count, inputs=chain, tasks=tasks, state=COUNTS)
    return found.sink("count", Console() if out is None else Parquet(out))


def expected(
    batches: int, *, sentences: int = 10_000, prefix: str = "per", seed: int = 0
) -> dict[tuple[str, str], int]:
    """The counts after some batches, (prefix, word) -> count, from the numbers alone."""
    often = np.bincount(
        word_numbers(np.arange(batches * sentences), seed).ravel(), minlength=len(VOCABULARY)
    ).tolist()
    found: dict[tuple[str, str], int] = {}
    for word, times in zip(VOCABULARY, often, strict=True):
        for letters in range(1, len(prefix) + 1):
            if times and word[:letters] == prefix[:letters]:
                found[prefix[:letters], word] = (
                    found.get((prefix[:letters], word), 0) + times
                )  # pe + ra.. and per + a.. may be one word
    return found


def result(out: str, batches: int) -> dict[tuple[str, str], int]:
    """The last counts that a run has written, in the form of `expected`."""
    found: dict[tuple[str, str], int] = {}
    for rows in read_batches(out, batches):
        latest: Counter[tuple[str, str]] = Counter()
        for row in rows:
            latest[row["prefix"], row["word"]] += row[
                "count"
            ]  # a row that came twice would count twice
        found |= latest
    return found
