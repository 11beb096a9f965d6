"""Taxi routes: the most frequent ones of the last half hour (DEBS Grand Challenge 2015, query 1).

    headrace run taxi-routes --batches 5 --option out=routes

A route leads from one cell to another, in a grid of 300 x 300 cells of 500 m; trips that start or
end outside are left out. A trip counts while its drop-off is less than 30 minutes ago; the
challenge does not say what holds at exactly 30, and here it no longer counts. Equally frequent
routes are ordered by their last drop-off, the latest first, then by their cells. The challenge
wants a line whenever the ten change; here they are given once per batch, as of the batch's last
drop-off. Trips come ordered by drop-off, as in the challenge's file (`csv` names a folder that
holds it); inside a batch any order will do.

`cell` sends every trip to the task that counts its route, and the time to all of them: a route also
becomes less frequent when no trip comes.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

CELLS = 300  # per side
EAST_DEG, SOUTH_DEG = 0.005986, 0.004491556  # 500 m
WEST_EDGE_DEG, NORTH_EDGE_DEG = (
    -74.913585 - EAST_DEG / 2,
    41.474937 + SOUTH_DEG / 2,
)  # the challenge gives the centre of cell 1.1
WINDOW_S = 30 * 60
MOST = 10
TIME = "%Y-%m-%d %H:%M:%S"
SCHEMA = (
    "medallion string, hack_license string, pickup_datetime string, dropoff_datetime string, "
    "trip_time_in_secs int, trip_distance double, pickup_longitude double, "
    "pickup_latitude double, dropoff_longitude double, dropoff_latitude double, "
    "payment_type string, fare_amount double, surcharge double, mta_tax double, "
    "tip_amount double, tolls_amount double, total_amount double"
)
RECENT = Keyed(
    pa.schema([("start_cell", pa.string()), ("end_cell", pa.string()), ("dropoff_s", pa.int64())]),
    ("start_cell", "end_cell"),
)

START_S = 1_357_000_200  # 2013-01-01 00:30, the first half hour of the challenge's year
# Column and row in lower Manhattan: a corner of the district in which the generator's taxis drive.
HOT_CELL = (155, 160)
DISTRICT = 20  # cells per side


def route_numbers(trip: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The cells of generated trips, and which trips the grid holds.

    Cells are [trips, 4]: start column, start row, end column, end row; from 1.
    """
    offset = np.stack(
        [(DISTRICT * draw(trip, c, seed) ** 4).astype(np.int64) for c in range(4)], axis=1
    )
    return np.array(HOT_CELL * 2) + offset, draw(trip, 4, seed) >= 0.02


class Trips:
    """Turns numbers into trips; one in fifty starts at 0, 0, as some do in the real file."""

    def __init__(self, trips_per_s: float, seed: int) -> None:
        self.trips_per_s, self.seed = trips_per_s, seed

    def __call__(self, table: pa.Table) -> pa.Table:
        trip = table["value"].to_numpy()
        cells, inside = route_numbers(trip, self.seed)
        within = np.stack([0.1 + 0.8 * draw(trip, 5 + c, self.seed) for c in range(4)], axis=1)
        degrees = np.array([EAST_DEG, -SOUTH_DEG] * 2) * (cells - 1 + within) + np.array(
            [WEST_EDGE_DEG, NORTH_EDGE_DEG] * 2
        )
        degrees[~inside, :2] = 0.0
        place = np.round(degrees, 6).T
        lasts_s = (60 + 1740 * draw(trip, 9, self.seed)).astype(np.int64)
        taxi = (13_000 * draw(trip, 10, self.seed)).astype(np.int64)
        dropoff_s = START_S + (trip / self.trips_per_s).astype(np.int64)
        fare, tip = np.round(2.5 + lasts_s / 60, 2), np.round(5 * draw(trip, 11, self.seed), 2)
        none = np.zeros(len(trip))
        return pa.table(
            {
                "medallion": [f"{n:032X}" for n in taxi.tolist()],
                "hack_license": [f"{n + 0x10000:032X}" for n in taxi.tolist()],
                "pickup_datetime": clock(dropoff_s - lasts_s),
                "dropoff_datetime": clock(dropoff_s),
                "trip_time_in_secs": pa.array(lasts_s.astype(np.int32)),
                "trip_distance": np.round(lasts_s / 300, 2),
                "pickup_longitude": place[0],
                "pickup_latitude": place[1],
                "dropoff_longitude": place[2],
                "dropoff_latitude": place[3],
                "payment_type": np.where(tip > 2, "CRD", "CSH").tolist(),
                "fare_amount": fare,
                "surcharge": none,
                "mta_tax": none + 0.5,
                "tip_amount": tip,
                "tolls_amount": none,
                "total_amount": np.round(fare + tip + 0.5, 2),
            }
        )


def clock(seconds: np.ndarray) -> pa.Array:
    """Times as the file writes them."""
    return pc.strftime(pa.array(seconds).cast(pa.timestamp("s")), format=TIME)


def cell(table: pa.Table) -> dict[str, pa.Table]:
    """The route and the end of every trip inside the grid, and the time it is."""
    inside, ends = True, dict[str, Any]()
    for end, where in (("start_cell", "pickup"), ("end_cell", "dropoff")):
        column = pc.floor(
            pc.divide(pc.subtract(table[f"{where}_longitude"], WEST_EDGE_DEG), EAST_DEG)
        )
        row = pc.floor(
            pc.divide(pc.subtract(NORTH_EDGE_DEG, table[f"{where}_latitude"]), SOUTH_DEG)
        )
        for number in (column, row):
            inside = pc.and_(inside, pc.and_(pc.greater_equal(number, 0), pc.less(number, CELLS)))
        names = (
            pc.cast(pc.cast(pc.add(number, 1), pa.int64(), safe=False), pa.string())
            for number in (column, row)
        )
        ends[end] = pc.binary_join_element_wise(*names, ".")
    dropoff_s = pc.strptime(table["dropoff_datetime"], format=TIME, unit="s").cast(pa.int64())
    trips = pa.table({**ends, "dropoff_s": dropoff_s}).filter(
        inside
    )  # a place that is missing is not inside either
    now = pa.table({"now_s": pa.array([pc.max(trips["dropoff_s"]).as_py()], pa.int64())})
    return {"default": trips, "time": now.slice(0, 1 if trips.num_rows else 0)}


def route(table: pa.Table, state: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """Takes trips; when the time comes, gives the most frequent routes and forgets old trips."""
    if "now_s" not in table.column_names:
        return None, pa.concat_tables([state, table.select(state.column_names)])
    now_s = pc.max(table["now_s"])
    recent = state.filter(pc.greater(state["dropoff_s"], pc.subtract(now_s, WINDOW_S)))
    counts = recent.group_by(["start_cell", "end_cell"]).aggregate(
        [("dropoff_s", "count"), ("dropoff_s", "max")]
    )
    counts = counts.rename_columns(["start_cell", "end_cell", "trips", "last_s"])
    return most_frequent(counts).append_column(
        "now_s", pa.repeat(now_s, min(MOST, counts.num_rows))
    ), recent


def most_frequent(counts: pa.Table) -> pa.Table:
    """The first ten routes."""
    order = [
        ("trips", "descending"),
        ("last_s", "descending"),
        ("start_cell", "ascending"),
        ("end_cell", "ascending"),
    ]
    return counts.sort_by(order).slice(0, MOST)


def rank(table: pa.Table) -> pa.Table:
    """The first ten of the routes that any task has among its first ten."""
    best = most_frequent(table)
    ranked = best.append_column("rank", pa.array(range(1, best.num_rows + 1), pa.int64()))
    return ranked.select(["now_s", "rank", "start_cell", "end_cell", "trips", "last_s"])


def topology(
    *,
    trips: int = 10_000,
    trips_per_s: float = 5.0,
    seed: int = 0,
    tasks: int = 4,
    csv: str | None = None,
    out: str | None = None,
) -> Topology:
    """Frequent routes over generated trips, or over the challenge's file in a folder (`csv`)."""
    found = Topology("taxi-routes")
    if csv is None:
        found = found.spout("trip", numbers(trips), Trips(trips_per_s, seed), tasks=2)
    else:
        found = found.spout("trip", files(csv, format="csv", schema=SCHEMA, per_batch=1), tasks=2)
    by_route = {"grouping": "fields", "fields": list(RECENT.key)}
    found = found.bolt("cell", cell, inputs={"trip": "shuffle"}, tasks=tasks)
    found = found.bolt(
        "route",
        route,
        inputs={"cell": [by_route, {"grouping": "all", "stream": "time"}]},
        tasks=tasks,
        state=RECENT,
    )
    found = found.bolt("rank", rank, inputs={"route": "global"}, tasks=1)
    return found.sink("rank", Console() if out is None else Parquet(out))


def expected(
    batches: int, *, trips: int = 10_000, trips_per_s: float = 5.0, seed: int = 0
) -> list[list[tuple[int, str, str, int]]]:
    """After each batch (rank, start, end, trips) of the ten routes, from the drawn cells."""
    number = np.arange(batches * trips)
    cells, inside = route_numbers(number, seed)
    dropoff_s = START_S + (number / trips_per_s).astype(np.int64)
    found: list[list[tuple[int, str, str, int]]] = []
    for end in range(trips, batches * trips + 1, trips):
        last: dict[tuple[str, str], list[int]] = {}
        now_s = max(int(s) for s in dropoff_s[:end][inside[:end]])
        for i in range(end):
            if inside[i] and dropoff_s[i] > now_s - WINDOW_S:
                a, b, c, d = cells[i].tolist()
                last.setdefault((f"{a}.{b}", f"{c}.{d}"), []).append(int(dropoff_s[i]))
        order = sorted(last, key=lambda r: (-len(last[r]), -max(last[r]), r))[:MOST]
        found.append([(n, *r, len(last[r])) for n, r in enumerate(order, 1)])
    return found


def result(out: str, batches: int) -> list[list[tuple[int, str, str, int]]]:
    """What a run has written, in the form of `expected`."""
    return [
        sorted((r["rank"], r["start_cell"], r["end_cell"], r["trips"]) for r in rows)
        for rows in read_batches(out, batches)
    ]
