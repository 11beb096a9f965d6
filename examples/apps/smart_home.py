"""Smart home: the load of houses and plugs, predicted (DEBS Grand Challenge 2014, query 1).

    headrace run smart-home --batches 5 --option out=predictions

Time is cut into slices of 15 minutes. When slice i is over, slice i + 2 is predicted: the mean of
the average load in slice i and the median of the average loads at the time of day of slice i + 2 on
all days before. On the first day there is no such median, and the prediction is the average of
slice i. The load of a house is the sum over its plugs. The challenge wants a prediction every 30
seconds; here one is made when a slice is over.

Readings come ordered by time, as in the challenge's file (`csv` names a folder that holds it);
inside a batch any order will do. Loads are kept as whole milliwatts, which is what the file gives,
so no sum depends on the order in which it was made.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

SLICE_S = 15 * 60
SLICES_PER_DAY = 24 * 3600 // SLICE_S
WORK, LOAD = 0, 1  # values of `property`
SCHEMA = (
    "id bigint, timestamp bigint, value double, property int, "
    "plug_id int, household_id int, house_id int"
)
HOUSE = ("house_id",)
PLUG = ("house_id", "household_id", "plug_id")


def keyed(key: tuple[str, ...], *columns: str) -> Keyed:
    return Keyed(
        pa.schema(
            [*((name, pa.int32()) for name in key), *((name, pa.int64()) for name in columns)]
        ),
        key,
    )


OPEN = keyed(PLUG, "slice", "load_mw", "readings")  # slices that are not over
PREDICTION = {
    key: pa.schema([*keyed(key, "slice").schema, pa.field("load_mw", pa.float64())])
    for key in (HOUSE, PLUG)
}  # `slice` is the one that is predicted

START_S = 1_377_986_400  # 2013-09-01 00:00 in the houses, where the challenge's file begins
HOUSEHOLDS, PLUGS = 2, 3  # per house, per household


def reading_numbers(
    reading: np.ndarray, houses: int, every_s: int, seed: int
) -> dict[str, np.ndarray]:
    """What the generated readings say, as whole numbers; one reading in ten is missing."""
    meters = houses * HOUSEHOLDS * PLUGS * 2  # every plug tells its work and its load
    meter, at_s = reading % meters, START_S + reading // meters * every_s
    plug = meter // 2
    evening = 1.0 - np.abs((at_s - START_S) % 86_400 / 43_200 - 1.5).clip(
        0, 1
    )  # from noon on, highest at six
    load_mw = 1000 + 40_000 * draw(plug, 0, seed) + 200_000 * evening * draw(reading, 1, seed)
    found = {"id": reading, "timestamp": at_s, "milli": load_mw, "property": meter % 2}
    found |= {
        "plug_id": plug % PLUGS,
        "household_id": plug // PLUGS % HOUSEHOLDS,
        "house_id": plug // (PLUGS * HOUSEHOLDS),
    }
    there = draw(reading, 2, seed) >= 0.1
    return {name: values[there].astype(np.int64) for name, values in found.items()}


class Readings:
    """Turns numbers into readings."""

    def __init__(self, houses: int, every_s: int, seed: int) -> None:
        self.houses, self.every_s, self.seed = houses, every_s, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        said = reading_numbers(table["value"].to_numpy(), self.houses, self.every_s, self.seed)
        whole = {
            name: pa.array(said[name].astype(np.int32))
            for name in ("property", "plug_id", "household_id", "house_id")
        }
        return pa.table(
            {
                "id": said["id"],
                "timestamp": said["timestamp"],
                "value": said["milli"] / 1000,
                **whole,
            }
        )


def load(table: pa.Table) -> dict[str, pa.Table]:
    """Readings of the load, with the slice they belong to; and the time, that of any reading."""
    loads = table.filter(pc.equal(table["property"], LOAD))
    # Days begin at midnight in the houses: slices are counted from there, so that the time of day
    # is the rest of a division.
    found: dict[str, Any] = {name: loads[name] for name in PLUG}
    found["slice"] = pc.divide(pc.subtract(loads["timestamp"], START_S), SLICE_S)
    found["load_mw"] = pc.round(pc.multiply(loads["value"], 1000)).cast(pa.int64())
    return {"default": pa.table(found), "time": pa.table({"now_s": [pc.max(table["timestamp"])]})}


def average(table: pa.Table, state: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """Takes readings; when the time comes, gives each plug's mean load in slices that are over."""
    if "now_s" not in table.column_names:
        fresh = table.append_column("readings", pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
        both = pa.concat_tables([state, fresh.select(state.column_names)]).group_by(
            [*PLUG, "slice"]
        )
        return None, both.aggregate([("load_mw", "sum"), ("readings", "sum")]).rename_columns(
            state.column_names
        )
    now = (pc.max(table["now_s"]).as_py() - START_S) // SLICE_S
    over = state.filter(pc.less(state["slice"], now))
    twice = pc.multiply(
        over["readings"], 2
    )  # rounds to the nearest milliwatt in whole numbers, halves up
    mean = pc.divide(pc.add(pc.multiply(over["load_mw"], 2), over["readings"]), twice)
    return over.select([*PLUG, "slice"]).append_column("load_mw", mean), state.filter(
        pc.greater_equal(state["slice"], now)
    )


class Predict:
    """Predicts the loads of what `key` names from those of all slices so far."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.key = list(key)

    def __call__(self, frame: Any, state: Any) -> tuple[Any, Any]:
        fresh = frame.groupby([*self.key, "slice"], as_index=False)["load_mw"].sum()
        history = pd.concat([state, fresh], ignore_index=True)
        fresh["ahead"] = fresh["slice"] + 2
        same_time = fresh.assign(time=fresh["ahead"] % SLICES_PER_DAY).merge(
            history.assign(time=history["slice"] % SLICES_PER_DAY),
            how="left",
            on=[*self.key, "time"],
            suffixes=("", "_then"),
        )
        before = same_time[same_time["slice_then"] < same_time["ahead"]]
        usual = before.groupby([*self.key, "ahead"])["load_mw_then"].median().rename("usual")
        found = fresh.join(usual, on=[*self.key, "ahead"])
        found["load_mw"] = (found["load_mw"] + found["usual"].fillna(found["load_mw"])) / 2
        return found[[*self.key, "ahead", "load_mw"]].rename(columns={"ahead": "slice"}), history


def topology(
    *,
    readings: int = 20_000,
    houses: int = 10,
    every_s: int = 60,
    seed: int = 0,
    tasks: int = 4,
    csv: str | None = None,
    out: str | None = None,
) -> Topology:
    """Predictions from generated readings, or from the challenge's file in a folder (`csv`).

    `out` gets the folders plug and house.
    """
    found = Topology("smart-home")
    if csv is None:
        found = found.spout("reading", numbers(readings), Readings(houses, every_s, seed), tasks=2)
    else:
        found = found.spout(
            "reading", files(csv, format="csv", schema=SCHEMA, per_batch=1), tasks=2
        )
    by_plug = {"grouping": "fields", "fields": list(PLUG)}
    found = found.bolt("load", load, inputs={"reading": "shuffle"}, tasks=tasks)
    loads = {"load": [by_plug, {"grouping": "all", "stream": "time"}]}
    found = found.bolt("average", average, inputs=loads, tasks=tasks, state=OPEN)
    for name, key in (("plug", PLUG), ("house", HOUSE)):
        found = found.bolt(
            name,
            Predict(key),
            form="pandas",
            inputs={"average": {"grouping": "fields", "fields": list(key)}},
            tasks=tasks,
            state=keyed(key, "slice", "load_mw"),
            schema=PREDICTION[key],
        )
        found = found.sink(name, Console() if out is None else Parquet(f"{out}/{name}"))
    return found


def expected(
    batches: int, *, readings: int = 20_000, houses: int = 10, every_s: int = 60, seed: int = 0
) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
    """All predictions for plugs and for houses, (key.., slice) -> mW, from the whole input."""
    said = reading_numbers(np.arange(batches * readings), houses, every_s, seed)
    now = (int(said["timestamp"].max()) - START_S) // SLICE_S
    loads: dict[tuple[int, ...], list[int]] = {}
    for at_s, milli, kind, *plug in zip(
        *(said[n].tolist() for n in ("timestamp", "milli", "property", *PLUG)), strict=True
    ):
        if kind == LOAD and (slice_ := (at_s - START_S) // SLICE_S) < now:
            loads.setdefault((*plug, slice_), []).append(milli)
    plugs = {key: int(sum(values) / len(values) + 0.5) for key, values in loads.items()}
    house: dict[tuple[int, ...], int] = {}
    for key, mean in plugs.items():
        house[key[0], key[-1]] = house.get((key[0], key[-1]), 0) + mean
    return _predicted(plugs), _predicted(house)


def _predicted(means: dict[tuple[int, ...], int]) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], float] = {}
    for (*key, slice_), mean in means.items():
        days = range(slice_ + 2 - SLICES_PER_DAY, -1, -SLICES_PER_DAY)
        usual = [means[*key, then] for then in days if (*key, then) in means]
        found[*key, slice_ + 2] = (mean + median(usual)) / 2 if usual else mean
    return found


def result(
    out: str, batches: int
) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
    """What a run has written, in the form of `expected`."""
    found: dict[tuple[str, ...], dict[tuple[int, ...], float]] = {PLUG: {}, HOUSE: {}}
    for name, key in (("plug", PLUG), ("house", HOUSE)):
        for row in (row for rows in read_batches(f"{out}/{name}", batches) for row in rows):
            what = (*(row[column] for column in key), row["slice"])
            found[key][what] = (
                found[key].get(what, 0.0) + row["load_mw"]
            )  # a row that came twice would count twice
    return found[PLUG], found[HOUSE]
