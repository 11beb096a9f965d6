"""Micro-benchmarks: a linear, a diamond and a star topology of bolts that compute.

    headrace run micro --option shape=diamond --option payload_bytes=500 --batches 5

Source: H. Nasiri et al., fig. 9 and table 3: low, mid and high compute bolts cost as 581 to 1030 to
1915. Fig. 9 is not in the text; the shapes are those of `examples/nasiri`, and as in Storm every
component that subscribes to a stream gets all of it.

    linear    source -> low -> mid -> high
    diamond   source -> low, mid, high -> sink (which computes little)
    star      source-1, source-2 -> mid -> low, high

The computation is a chain of linear congruences, so that the result of many steps can be
computed in one. `work=1` takes as many steps as the table's numbers; tuples may carry random bytes
(`payload_bytes`) from bolt to bolt.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pandas.util import hash_array

from headrace.errors import InvalidInput
from headrace.run import Console, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import numbers

STEPS = {"low": 581, "mid": 1030, "high": 1915, "sink": 581}  # table 3, machine 1
FACTOR, TERM = 6364136223846793005, 1442695040888963407  # modulo 2^64
SHAPES: Mapping[str, Mapping[str, tuple[str, ...]]] = {  # bolt -> what it gets its tuples from
    "linear": {"low": ("source",), "mid": ("low",), "high": ("mid",)},
    "diamond": {
        "low": ("source",),
        "mid": ("source",),
        "high": ("source",),
        "sink": ("low", "mid", "high"),
    },
    "star": {"mid": ("source-1", "source-2"), "low": ("mid",), "high": ("mid",)},
}


def ends(shape: str) -> list[str]:
    """The bolts that no other bolt listens to."""
    heard = {source for sources in SHAPES[shape].values() for source in sources}
    return [bolt for bolt in SHAPES[shape] if bolt not in heard]


def spouts(shape: str) -> list[str]:
    """The components that get tuples from nobody, in the order of their names."""
    return sorted(
        {source for sources in SHAPES[shape].values() for source in sources} - set(SHAPES[shape])
    )


class Tuples:
    """Turns numbers into tuples: an id that no other spout gives, a value, and random bytes."""

    def __init__(self, spout: int, spouts: int, payload_bytes: int, seed: int) -> None:
        self.spout, self.spouts, self.payload_bytes, self.seed = spout, spouts, payload_bytes, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        name = table["value"].to_numpy() * self.spouts + self.spout
        found = {"id": pa.array(name), "value": pa.array(first_values(name, self.seed))}
        if self.payload_bytes:
            words = -(-self.payload_bytes // 8)
            number = name.astype(np.uint64)[:, None] * np.uint64(words) + np.arange(
                words, dtype=np.uint64
            )
            noise = (
                first_values(number.ravel(), self.seed + 1)
                .view(np.uint8)
                .reshape(len(name), -1)[:, : self.payload_bytes]
            )
            found["payload"] = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(self.payload_bytes), len(name), [None, pa.py_buffer(noise.tobytes())]
            )
        return pa.table(found)


def first_values(name: np.ndarray, seed: int) -> np.ndarray:
    """The value with which a tuple sets out: a hash of its id and the seed."""
    return cast("Any", hash_array)(
        name.astype(np.uint64) + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    )


class Compute:
    """Takes every value through so many steps."""

    def __init__(self, bolt: str, steps: int, *, last: bool) -> None:
        self.bolt, self.steps, self.last = bolt, steps, last

    def __call__(self, table: pa.Table) -> pa.Table:
        value = table["value"].to_numpy().copy()
        for _ in range(self.steps):
            value *= np.uint64(FACTOR)
            value += np.uint64(TERM)
        done = table.set_column(table.column_names.index("value"), "value", pa.array(value))
        if not self.last:
            return done
        return done.select(["id", "value"]).append_column("bolt", pa.repeat(self.bolt, len(value)))


def topology(
    *,
    shape: str = "linear",
    per_batch: int = 10_000,
    work: float = 1.0,
    payload_bytes: int = 0,
    seed: int = 0,
    tasks: int = 2,
    out: str | None = None,
) -> Topology:
    """One of the three shapes over generated tuples, `per_batch` from every spout.

    `out` gets a folder per bolt at the end.
    """
    if shape not in SHAPES:
        raise InvalidInput(f"there is no shape `{shape}`; there are {', '.join(SHAPES)}")
    found, sources = Topology(shape), spouts(shape)
    for number, name in enumerate(sources):
        found = found.spout(
            name, numbers(per_batch), Tuples(number, len(sources), payload_bytes, seed), tasks=1
        )
    for bolt, inputs in SHAPES[shape].items():
        function = Compute(bolt, round(STEPS[bolt] * work), last=bolt in ends(shape))
        found = found.bolt(bolt, function, inputs=dict.fromkeys(inputs, "shuffle"), tasks=tasks)
    for bolt in ends(shape):
        found = found.sink(bolt, Console() if out is None else Parquet(f"{out}/{bolt}"))
    return found


def expected(
    batches: int,
    *,
    shape: str = "linear",
    per_batch: int = 10_000,
    work: float = 1.0,
    seed: int = 0,
) -> list[list[tuple[str, int, int]]]:
    """What comes out of each batch, (bolt, id, value) in order: all steps of a path at once."""
    sources = len(spouts(shape))
    found: list[list[tuple[str, int, int]]] = []
    for batch in range(batches):
        names = np.arange(batch * per_batch * sources, (batch + 1) * per_batch * sources)
        first = first_values(names, seed).tolist()
        rows: list[tuple[str, int, int]] = []
        for bolt, steps in paths(shape, work):
            factor = pow(FACTOR, steps, 2**64)
            term = TERM * (
                (pow(FACTOR, steps, (FACTOR - 1) * 2**64) - 1) // (FACTOR - 1)
            )  # 1 + f + f^2 + ..
            rows += [
                (bolt, name, (factor * value + term) % 2**64)
                for name, value in zip(names.tolist(), first, strict=True)
            ]
        found.append(sorted(rows))
    return found


def paths(shape: str, work: float) -> list[tuple[str, int]]:
    """(bolt, steps) for each path that a tuple takes from its spout to a bolt at the end."""
    low, mid, high = (round(STEPS[bolt] * work) for bolt in ("low", "mid", "high"))
    match shape:
        case "linear":
            return [("high", low + mid + high)]
        case "diamond":
            return [("sink", low + low), ("sink", mid + low), ("sink", high + low)]
        case _:
            return [("low", mid + low), ("high", mid + high)]


def result(out: str, batches: int, *, shape: str = "linear") -> list[list[tuple[str, int, int]]]:
    """What a run has written, in the form of `expected`."""
    outputs = [read_batches(f"{out}/{bolt}", batches) for bolt in ends(shape)]
    return [
        sorted((r["bolt"], r["id"], r["value"]) for rows in batch for r in rows)
        for batch in zip(*outputs, strict=True)
    ]
