"""The example applications run batch by batch without Spark, for tests of their results."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from headrace.model.topology import Topology
from headrace.run.apps import load, topology_of
from headrace.run.batches import Batches, Settings
from headrace.run.placement import Placement, PlanInForce
from headrace.run.rehearsal import Input, rehearse_batch
from tests.run.topologies import places

STEADY = ((),)
# Task counts of the components in turn, batch by batch.
REPLANNED = ((2, 3), (7, 1, 2), (1,), (3, 7))
PLANS = pytest.mark.parametrize("counts", [STEADY, REPLANNED], ids=["steady", "replanned"])
# 13 minutes per batch, so that trips leave the half hour.
TRIPS: Mapping[str, Any] = {"trips": 400, "trips_per_s": 0.5, "seed": 3}
# 14 hours per batch, and no batch ends a day.
READINGS: Mapping[str, Any] = {"readings": 3000, "houses": 2, "every_s": 400, "seed": 5}
VIEWS: Mapping[str, Any] = {"views": 500, "pages": 40, "users": 60, "seed": 2}
SENTENCES: Mapping[str, Any] = {"sentences": 500, "seed": 4}
LINES: Mapping[str, Any] = {"lines": 700, "seed": 8}


def run(
    topology: Topology,
    inputs: Sequence[Input],
    folder: Path,
    counts: Sequence[Sequence[int]] = STEADY,
) -> str:
    """Run one batch per input; gives the folder of the output, `folder`/out."""
    in_force = PlanInForce(topology)
    batches = Batches(topology, in_force, Settings(folder / "run"))
    for number, rows in enumerate(inputs):
        if turn := counts[number % len(counts)]:
            in_force.set(plan(topology, turn))
        rehearse_batch(batches, number, rows)
    return str(folder / "out")


def plan(topology: Topology, turn: Sequence[int]) -> Placement:
    tasks = {name: turn[i % len(turn)] for i, name in enumerate(topology.components)}
    return Placement(f"with {turn}", tasks, places(tasks, ("a", "b")))


def numbered(topology: Topology, batches: int, per_batch: int) -> list[Input]:
    """What `numbers` gives to every spout."""
    spouts = [name for name, component in topology.components.items() if component.spout]
    ranges = (range(b * per_batch, (b + 1) * per_batch) for b in range(batches))
    return [
        {spout: pa.table({"value": pa.array(rows, pa.int64())}) for spout in spouts}
        for rows in ranges
    ]


def app(name: str, folder: Path, **options: Any) -> tuple[Any, Topology]:
    module = load(name)
    return module, topology_of(module, {**options, "out": str(folder / "out")})


def through_csv(table: pa.Table, schema: str, folder: Path) -> pa.Table:
    """A table written as a file without a headline and read back under a Spark schema."""
    types = {"string": pa.string(), "double": pa.float64(), "int": pa.int32(), "bigint": pa.int64()}
    columns = {name: types[kind] for name, kind in (column.split() for column in schema.split(","))}
    assert table.column_names == list(columns)
    pyarrow.csv.write_csv(
        table, folder / "rows.csv", pyarrow.csv.WriteOptions(include_header=False)
    )
    return pyarrow.csv.read_csv(
        folder / "rows.csv",
        read_options=pyarrow.csv.ReadOptions(column_names=list(columns)),
        convert_options=pyarrow.csv.ConvertOptions(column_types=columns),
    )


def generated(topology: Topology, spout: str, first: int, end: int) -> pa.Table:
    """The tuples that a spout's generator makes."""
    function = topology.code[spout].function
    assert function is not None
    return function(pa.table({"value": np.arange(first, end)}))


def lines(
    folder: Path, topology: Topology, spout: str, per_batch: int, batches: int
) -> list[Input]:
    """What a spout's generator makes, written to text files and read as Spark reads them."""
    inputs: list[Input] = []
    for batch in range(batches):
        made = generated(topology, spout, batch * per_batch, (batch + 1) * per_batch)
        (folder / f"{batch}.txt").write_text("\n".join(made["value"].to_pylist()) + "\n")
        inputs.append(
            {spout: pa.table({"value": (folder / f"{batch}.txt").read_text().splitlines()})}
        )
    return inputs
