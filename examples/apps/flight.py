"""Flight statistics: mean taxi times, how often flights are late, why they are cancelled.

    headrace run flight --batches 5 --option out=rankings

Source: H. Cao et al., 2020, section 6.1, over the on-time data of 1987 to 2008 (`text` names a
folder with its yearly files, 29 columns with a headline). The components are called as in the paper
and in `examples/cao/flight.yaml`:

    w0 lines -> w1 no headlines -> w2 taxi times    -> w5 mean per airport  -> w8 ten of each kind
                                -> w3 late or not   -> w6 share per flight  ->
                                -> w4 cancellations -> w7 number per reason ->

The paper does not say when a flight is late, nor how a ranking is ordered. Here a flight is late if
it arrives 15 minutes or more after its time, it is named by carrier and number, and the highest
value comes first, equal ones by name. Files from before 2003 give no reasons.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.run import Console, Keyed, Parquet, Topology
from headrace.run.sinks import read_batches
from headrace.run.sources import draw, files, numbers

HEADLINE = (
    "Year,Month,DayofMonth,DayOfWeek,DepTime,CRSDepTime,ArrTime,CRSArrTime,UniqueCarrier,FlightNum,TailNum,ActualElapsedTime,"
    "CRSElapsedTime,AirTime,ArrDelay,DepDelay,Origin,Dest,Distance,TaxiIn,TaxiOut,Cancelled,CancellationCode,Diverted,CarrierDelay,"
    "WeatherDelay,NASDelay,SecurityDelay,LateAircraftDelay"
)
COLUMNS: tuple[str, ...] = tuple(HEADLINE.split(","))
LATE_MIN = 15
MOST = 10
SUMS = Keyed(
    pa.schema([("name", pa.string()), ("total", pa.int64()), ("times", pa.int64())]), ("name",)
)
VALUES = Keyed(
    pa.schema([("ranking", pa.string()), ("name", pa.string()), ("value", pa.float64())]),
    ("ranking",),
)

CARRIERS = ("AA", "DL", "UA", "US", "WN")
AIRPORTS = tuple(a + b + c for a in "ABDJ" for b in "FLT" for c in "AKWX")
REASONS = "ABCD"  # carrier, weather, air system, security
LINES_PER_FILE = 500  # of the generator, each file with its headline


def flight_numbers(line: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """What the generated lines say, as whole numbers."""
    most = {
        "origin": len(AIRPORTS),
        "dest": len(AIRPORTS),
        "carrier": len(CARRIERS),
        "flight": 40,
        "out_min": 40,
        "in_min": 15,
    }
    found = {
        name: (limit * draw(line, column, seed) ** 2).astype(np.int64)
        for column, (name, limit) in enumerate(most.items())
    }
    found["late_min"] = (-20 + 90 * draw(line, 10, seed) ** 2).astype(np.int64)
    found["reason"] = (len(REASONS) * draw(line, 11, seed)).astype(np.int64)
    found["cancelled"] = (draw(line, 12, seed) < 0.05).astype(np.int64)
    found["headline"] = (line % LINES_PER_FILE == 0).astype(np.int64)
    return found


class Lines:
    """Turns numbers into lines of the file."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, table: pa.Table) -> pa.Table:
        said = {
            name: values.tolist()
            for name, values in flight_numbers(table["value"].to_numpy(), self.seed).items()
        }
        return pa.table(
            {
                "value": [
                    written(dict(zip(said, row, strict=True)))
                    for row in zip(*said.values(), strict=True)
                ]
            }
        )


def written(said: dict[str, int]) -> str:
    """One line of the file."""
    if said["headline"]:
        return HEADLINE
    row = dict.fromkeys(COLUMNS, "NA")
    row |= {
        "Year": "2008",
        "Month": "1",
        "DayofMonth": "3",
        "DayOfWeek": "4",
        "CRSDepTime": "1955",
        "CRSArrTime": "2225",
    }
    row |= {
        "UniqueCarrier": CARRIERS[said["carrier"]],
        "FlightNum": str(1 + said["flight"]),
        "Diverted": "0",
    }
    row |= {
        "Origin": AIRPORTS[said["origin"]],
        "Dest": AIRPORTS[said["dest"]],
        "Cancelled": str(said["cancelled"]),
    }
    if said["cancelled"]:
        row["CancellationCode"] = REASONS[said["reason"]]
    else:
        row |= {
            "ArrDelay": str(said["late_min"]),
            "TaxiOut": str(said["out_min"]),
            "TaxiIn": str(said["in_min"]),
        }
        row["CancellationCode"] = ""
    return ",".join(row.values())


def records(table: pa.Table) -> pa.Table:
    """w1: lines that are records."""
    record = pc.and_(
        pc.equal(pc.count_substring(table["value"], ","), len(COLUMNS) - 1),
        pc.invert(pc.starts_with(table["value"], "Year,")),
    )
    return table.select(["value"]).filter(record)


def columns(table: pa.Table, *names: str) -> Iterable[Any]:
    """Some columns of the records; NA is null."""
    fields = pc.split_pattern(table["value"], ",")
    for name in names:
        column = pc.list_element(fields, COLUMNS.index(name))
        yield pc.if_else(
            pc.is_in(column, pa.array(["NA", ""])), pa.scalar(None, pa.string()), column
        )


def facts(name: Any, value: Any) -> pa.Table:
    """(name, value) of the records that give both."""
    return pa.table({"name": name, "value": pc.cast(value, pa.int64())}).drop_null()


def taxi_times(table: pa.Table) -> pa.Table:
    """w2: minutes that a flight taxied, out at its first airport and in at its second."""
    origin, dest, out_min, in_min = columns(table, "Origin", "Dest", "TaxiOut", "TaxiIn")
    return pa.concat_tables([facts(origin, out_min), facts(dest, in_min)])


def late(table: pa.Table) -> pa.Table:
    """w3: 1 for a flight that was late, 0 for one that was not."""
    carrier, number, late_min = columns(table, "UniqueCarrier", "FlightNum", "ArrDelay")
    flight = pc.binary_join_element_wise(carrier, number, "")
    return facts(flight, pc.greater_equal(pc.cast(late_min, pa.int64()), LATE_MIN))


def cancellations(table: pa.Table) -> pa.Table:
    """w4: 1 for the reason of every flight that was cancelled."""
    (code,) = columns(table, "CancellationCode")
    return facts(code, pa.repeat(1, table.num_rows))


class Sum:
    """w5, w6, w7: adds values up by name; gives the new sum or mean of every name that came."""

    def __init__(self, ranking: str, *, mean: bool) -> None:
        self.ranking, self.mean = ranking, mean

    def __call__(self, table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
        fresh = (
            table.group_by("name")
            .aggregate([("value", "sum"), ("value", "count")])
            .rename_columns(SUMS.schema.names)
        )
        both = (
            pa.concat_tables([state, fresh])
            .group_by("name")
            .aggregate([("total", "sum"), ("times", "sum")])
        )
        both = both.rename_columns(SUMS.schema.names)
        new = both.join(fresh.select(["name"]), "name", join_type="left semi")
        total, times = (pc.cast(new[name], pa.float64()) for name in ("total", "times"))
        value = pc.divide(total, times) if self.mean else total
        return pa.table(
            {"ranking": pa.repeat(self.ranking, new.num_rows), "name": new["name"], "value": value}
        ), both


def rank(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """w8: the first ten of the ranking that changed; called once per kind of ranking."""
    kept = state.join(table.select(["ranking", "name"]), ["ranking", "name"], join_type="left anti")
    every = pa.concat_tables([kept, table.select(kept.column_names)])
    mine = every.filter(pc.equal(every["ranking"], table["ranking"][0]))
    first = mine.sort_by([("value", "descending"), ("name", "ascending")]).slice(0, MOST)
    return first.append_column("rank", pa.array(range(1, first.num_rows + 1), pa.int64())), every


def topology(
    *,
    lines: int = 10_000,
    seed: int = 0,
    tasks: int = 2,
    text: str | None = None,
    out: str | None = None,
) -> Topology:
    """Flight statistics over generated lines, or over the yearly files in a folder (`text`)."""
    found = Topology("flight")
    if text is None:
        found = found.spout("w0", numbers(lines), Lines(seed), tasks=1)
    else:
        found = found.spout(
            "w0", files(text, format="text", schema="value string", per_batch=1), tasks=1
        )
    found = found.bolt("w1", records, inputs={"w0": "shuffle"}, tasks=tasks)
    for name, function in (("w2", taxi_times), ("w3", late), ("w4", cancellations)):
        found = found.bolt(name, function, inputs={"w1": "shuffle"}, tasks=tasks)
    sums = {
        "w5": ("w2", Sum("airport", mean=True)),
        "w6": ("w3", Sum("flight", mean=True)),
        "w7": ("w4", Sum("reason", mean=False)),
    }
    for name, (source, function) in sums.items():
        found = found.bolt(
            name,
            function,
            inputs={source: {"grouping": "fields", "fields": ["name"]}},
            tasks=tasks,
            state=SUMS,
        )
    by_ranking = {"grouping": "fields", "fields": ["ranking"]}
    found = found.bolt("w8", rank, inputs=dict.fromkeys(sums, by_ranking), tasks=1, state=VALUES)
    return found.sink("w8", Console() if out is None else Parquet(out))


def expected(
    batches: int, *, lines: int = 10_000, seed: int = 0
) -> list[dict[str, list[tuple[str, float]]]]:
    """After each batch the rankings, from the numbers alone, all lines again."""
    said = {
        name: values.tolist()
        for name, values in flight_numbers(np.arange(batches * lines), seed).items()
    }
    rows = [dict(zip(said, row, strict=True)) for row in zip(*said.values(), strict=True)]
    found: list[dict[str, list[tuple[str, float]]]] = []
    for batch in range(batches):
        flights = [row for row in rows[: (batch + 1) * lines] if not row["headline"]]
        values: dict[str, dict[str, list[int]]] = {"airport": {}, "flight": {}, "reason": {}}
        for row in flights:
            if row["cancelled"]:
                values["reason"].setdefault(REASONS[row["reason"]], []).append(1)
                continue
            values["airport"].setdefault(AIRPORTS[row["origin"]], []).append(row["out_min"])
            values["airport"].setdefault(AIRPORTS[row["dest"]], []).append(row["in_min"])
            flight = f"{CARRIERS[row['carrier']]}{1 + row['flight']}"
            values["flight"].setdefault(flight, []).append(int(row["late_min"] >= LATE_MIN))
        found.append({})
        for ranking, names in values.items():
            result = {n: sum(v) / (1 if ranking == "reason" else len(v)) for n, v in names.items()}
            found[-1][ranking] = sorted(result.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    return found


def result(out: str, batches: int) -> list[dict[str, list[tuple[str, float]]]]:
    """What a run has written, in the form of `expected`."""
    found: list[dict[str, list[tuple[str, float]]]] = []
    for rows in read_batches(out, batches):
        found.append({})
        for row in sorted(rows, key=lambda row: row["rank"]):
            found[-1].setdefault(row["ranking"], []).append((row["name"], row["value"]))
    return found
