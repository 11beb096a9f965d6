"""The example applications equal a batch computation of the same input, with a steady plan and with new task counts in every batch."""

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

from headrace.errors import InvalidInput
from headrace.model.topology import Topology
from headrace.run.apps import load, topology_of
from headrace.run.batches import Batches, Settings
from headrace.run.placement import Placement, PlanInForce
from headrace.run.rehearsal import Input, rehearse_batch
from headrace.run.sources import draw
from tests.run.topologies import places

STEADY = ((),)
REPLANNED = (
    (2, 3),
    (5, 1, 2),
    (1,),
    (3, 4),
)  # task counts of the components in turn, batch by batch
PLANS = pytest.mark.parametrize("counts", [STEADY, REPLANNED], ids=["steady", "replanned"])


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
    """A table written as a file without a headline and read back under the names and types of a Spark schema."""
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


def test_a_drawn_number_depends_on_seed_row_and_column_alone() -> None:
    rows = np.arange(10_000)
    drawn = draw(rows, 3, seed=5)
    assert np.array_equal(draw(rows[::-1], 3, seed=5), drawn[::-1])
    assert np.allclose(
        np.histogram(drawn, bins=10, range=(0, 1))[0], 1000, atol=120
    )  # four standard deviations
    for other in (draw(rows, 4, seed=5), draw(rows, 3, seed=6), draw(rows + 1, 3, seed=5)):
        assert abs(np.corrcoef(drawn, other)[0, 1]) < 0.04


TRIPS: Mapping[str, Any] = {
    "trips": 400,
    "trips_per_s": 0.5,
    "seed": 3,
}  # 13 minutes per batch, so that trips leave the half hour


@PLANS
def test_taxi_routes(counts: Sequence[Sequence[int]], tmp_path: Path) -> None:
    module, topology = app("taxi-routes", tmp_path, **TRIPS)
    out = run(topology, numbered(topology, 5, 400), tmp_path, counts)
    expected = module.expected(5, **TRIPS)
    assert module.result(out, 5) == expected
    assert all(len(top) == 10 for top in expected)
    assert any(a[3] > b[3] for a, b in zip(expected[2], expected[4], strict=True)), (
        "no route has become less frequent"
    )


def test_taxi_routes_from_a_file(tmp_path: Path) -> None:
    module, generator = app("taxi-routes", tmp_path, **TRIPS)
    topology = topology_of(module, {"csv": str(tmp_path), "out": str(tmp_path / "out")})
    inputs = [
        {
            "trip": through_csv(
                generated(generator, "trip", first, first + 400), module.SCHEMA, tmp_path
            )
        }
        for first in (0, 400, 800)
    ]
    assert module.result(run(topology, inputs, tmp_path), 3) == module.expected(3, **TRIPS)


def trips(*at: str) -> pa.Table:
    """Trips along one route that end at these times."""
    module = load("taxi-routes")
    east, south = module.WEST_EDGE_DEG + 0.001, module.NORTH_EDGE_DEG - 0.001
    place = {
        f"{end}_{axis}": [value] * len(at)
        for end in ("pickup", "dropoff")
        for axis, value in (("longitude", east), ("latitude", south))
    }
    return pa.table({**place, "dropoff_datetime": [f"2013-01-01 {time}" for time in at]})


def test_a_trip_counts_for_less_than_30_minutes(tmp_path: Path) -> None:
    module, topology = app("taxi-routes", tmp_path, csv=str(tmp_path))
    # Half an hour after the trip of 10:00:00 that trip has just gone, and the one of 10:00:01 is
    # still there; a second later it has gone too.
    inputs = [trips("10:00:00", "10:00:01"), trips("10:30:00"), trips("10:30:01")]
    out = run(topology, [{"trip": table} for table in inputs], tmp_path)
    assert module.result(out, 3) == [
        [(1, "1.1", "1.1", 2)],
        [(1, "1.1", "1.1", 2)],
        [(1, "1.1", "1.1", 2)],
    ]


def test_a_taxi_that_leaves_the_grid_is_not_counted() -> None:
    module = load("taxi-routes")
    edge = module.WEST_EDGE_DEG, module.NORTH_EDGE_DEG
    far = edge[0] + 300 * module.EAST_DEG, edge[1] - 300 * module.SOUTH_DEG
    table = pa.table(
        {
            "pickup_longitude": [edge[0] + 1e-6, edge[0] - 1e-6, edge[0] + 1e-6, None],
            "pickup_latitude": [edge[1] - 1e-6] * 4,
            "dropoff_longitude": [far[0] - 1e-6, far[0] - 1e-6, far[0] + 1e-6, far[0] - 1e-6],
            "dropoff_latitude": [far[1] + 1e-6] * 4,
            "dropoff_datetime": ["2013-01-01 00:00:07"] * 4,
        }
    )
    found = module.cell(table)
    assert found["default"].to_pylist() == [
        {"start_cell": "1.1", "end_cell": "300.300", "dropoff_s": 1_356_998_407}
    ]
    assert found["time"].to_pylist() == [{"now_s": 1_356_998_407}]
    assert module.cell(table.slice(1))["time"].num_rows == 0


READINGS: Mapping[str, Any] = {
    "readings": 3000,
    "houses": 2,
    "every_s": 400,
    "seed": 5,
}  # 14 hours per batch, and no batch ends a day


@PLANS
def test_smart_home(counts: Sequence[Sequence[int]], tmp_path: Path) -> None:
    module, topology = app("smart-home", tmp_path, **READINGS)
    out = run(topology, numbered(topology, 6, 3000), tmp_path, counts)
    plugs, houses = module.expected(6, **READINGS)
    assert module.result(out, 6) == (plugs, houses)
    assert max(slice_ for _, slice_ in houses) > 3 * module.SLICES_PER_DAY, (
        "no median of several days"
    )


def test_smart_home_from_a_file(tmp_path: Path) -> None:
    module, generator = app("smart-home", tmp_path, **READINGS)
    topology = topology_of(module, {"csv": str(tmp_path), "out": str(tmp_path / "out")})
    rows = (generated(generator, "reading", first, first + 3000) for first in (0, 3000, 6000))
    out = run(
        topology,
        [{"reading": through_csv(table, module.SCHEMA, tmp_path)} for table in rows],
        tmp_path,
    )
    assert module.result(out, 3) == module.expected(3, **READINGS)


def test_a_load_is_half_of_now_and_half_of_the_days_before() -> None:
    import pandas as pd

    module = load("smart-home")
    day = module.SLICES_PER_DAY
    state = pd.DataFrame(
        {
            "house_id": 1,
            "slice": [5, day + 5, 2 * day + 5, 3 * day + 4],
            "load_mw": [100, 900, 300, 7],
        }
    )
    came = pd.DataFrame(
        {"house_id": 1, "household_id": [1, 2], "slice": 3 * day + 3, "load_mw": [60, 40]}
    )
    found, history = module.Predict(module.HOUSE)(came, state)
    assert found.to_dict("records") == [
        {"house_id": 1, "slice": 3 * day + 5, "load_mw": (60 + 40 + 300) / 2}
    ]
    assert len(history) == 5


@pytest.mark.parametrize(
    ("days", "usual"), [((), 50), ((100,), 100), ((100, 900), 500), ((900, 100, 400, 200), 300)]
)
def test_the_median_of_an_even_number_of_days_lies_between_the_middle_two(
    days: Sequence[int], usual: int
) -> None:
    import pandas as pd

    module = load("smart-home")
    day = module.SLICES_PER_DAY
    slices = [number * day + 5 for number in range(len(days))]
    state = pd.DataFrame({"house_id": 1, "slice": slices, "load_mw": list(days)})
    came = pd.DataFrame({"house_id": [1], "slice": [len(days) * day + 3], "load_mw": [50]})
    found, _ = module.Predict(module.HOUSE)(came, state)
    assert found.to_dict("records") == [
        {"house_id": 1, "slice": len(days) * day + 5, "load_mw": (50 + usual) / 2}
    ]


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


VIEWS: Mapping[str, Any] = {"views": 500, "pages": 40, "users": 60, "seed": 2}


@PLANS
def test_unique_visitors(counts: Sequence[Sequence[int]], tmp_path: Path) -> None:
    module, topology = app("unique-visitors", tmp_path, **VIEWS)
    out = run(topology, numbered(topology, 5, 500), tmp_path, counts)
    assert module.result(out, 5) == module.expected(5, **VIEWS)


def test_unique_visitors_from_a_file(tmp_path: Path) -> None:
    module, generator = app("unique-visitors", tmp_path, **VIEWS)
    topology = topology_of(module, {"text": str(tmp_path), "out": str(tmp_path / "out")})
    inputs = lines(tmp_path, generator, "view", 500, 2)
    broken = pa.table({"value": ["", "http://example.com/0\t200\t10000", None]})
    inputs[0] = {"view": pa.concat_tables([broken, inputs[0]["view"]])}
    assert module.result(run(topology, inputs, tmp_path), 2) == module.expected(2, **VIEWS)


SENTENCES: Mapping[str, Any] = {"sentences": 500, "seed": 4}


@PLANS
@pytest.mark.parametrize("window", [1, 3])
def test_rolling_count(counts: Sequence[Sequence[int]], window: int, tmp_path: Path) -> None:
    module, topology = app("rolling-count", tmp_path, **SENTENCES, window=window)
    out = run(topology, numbered(topology, 6, 500), tmp_path, counts)
    expected = module.expected(6, **SENTENCES, window=window)
    assert module.result(out, 6) == expected
    assert set(expected[0]) - set(expected[5]), "no word has left the window"


def test_rolling_count_from_a_file(tmp_path: Path) -> None:
    module, generator = app("rolling-count", tmp_path, **SENTENCES)
    topology = topology_of(module, {"text": str(tmp_path), "out": str(tmp_path / "out")})
    out = run(topology, lines(tmp_path, generator, "sentence", 500, 4), tmp_path)
    assert module.result(out, 4) == module.expected(4, **SENTENCES)


def test_the_count_of_a_word_falls_when_it_no_longer_comes(tmp_path: Path) -> None:
    module, topology = app("rolling-count", tmp_path, text=str(tmp_path), window=2)
    texts = (["a b a", " b  c "], ["c"], [""], ["d"])
    out = run(topology, [{"sentence": pa.table({"value": text})} for text in texts], tmp_path)
    assert module.result(out, 4) == [
        {"a": 2, "b": 2, "c": 1},
        {"a": 2, "b": 2, "c": 2},
        {"c": 1},
        {"d": 1},
    ]


@PLANS
def test_exclamation(counts: Sequence[Sequence[int]], tmp_path: Path) -> None:
    module, topology = app("exclamation", tmp_path, per_batch=300, seed=1)
    out = run(topology, numbered(topology, 4, 300), tmp_path, counts)
    assert module.result(out, 4) == module.expected(4, per_batch=300, seed=1)


def test_exclamation_of_the_words_in_a_file(tmp_path: Path) -> None:
    module, topology = app("exclamation", tmp_path, text=str(tmp_path))
    out = run(topology, [{"word": pa.table({"value": ["so it", "", " is  so "]})}], tmp_path)
    assert module.result(out, 1) == [{"is!!!!!!": 1, "it!!!!!!": 1, "so!!!!!!": 2}]


@PLANS
@pytest.mark.parametrize("prefix", ["per", "k"])
def test_prefix_word_count(counts: Sequence[Sequence[int]], prefix: str, tmp_path: Path) -> None:
    module, topology = app("prefix-word-count", tmp_path, **SENTENCES, prefix=prefix)
    out = run(topology, numbered(topology, 4, 500), tmp_path, counts)
    expected = module.expected(4, **SENTENCES, prefix=prefix)
    assert module.result(out, 4) == expected
    assert {p for p, _ in expected} == {prefix[:n] for n in range(1, len(prefix) + 1)}


def test_prefix_word_count_from_a_file(tmp_path: Path) -> None:
    module, generator = app("prefix-word-count", tmp_path, **SENTENCES)
    topology = topology_of(module, {"text": str(tmp_path), "out": str(tmp_path / "out")})
    out = run(topology, lines(tmp_path, generator, "sentence", 500, 3), tmp_path)
    assert module.result(out, 3) == module.expected(3, **SENTENCES)


@PLANS
@pytest.mark.parametrize("shape", ["linear", "diamond", "star"])
@pytest.mark.parametrize("payload_bytes", [0, 13])
def test_micro(
    shape: str, payload_bytes: int, counts: Sequence[Sequence[int]], tmp_path: Path
) -> None:
    options: Mapping[str, Any] = {"shape": shape, "per_batch": 50, "work": 0.1, "seed": 6}
    module, topology = app("micro", tmp_path, **options, payload_bytes=payload_bytes)
    out = run(topology, numbered(topology, 3, 50), tmp_path, counts)
    assert module.result(out, 3, shape=shape) == module.expected(3, **options)


def test_the_payload_goes_from_bolt_to_bolt_and_ends_at_the_last(tmp_path: Path) -> None:
    _, topology = app("micro", tmp_path, shape="linear", per_batch=9, work=0.01, payload_bytes=500)
    made = generated(topology, "source", 0, 9)
    low, high = (topology.code[bolt].function for bolt in ("low", "high"))
    assert low is not None
    assert high is not None
    payloads = low(made)["payload"].to_pylist()
    assert payloads == made["payload"].to_pylist()
    assert {len(payload) for payload in payloads} == {500}
    assert len(set(payloads)) == 9
    assert high(made).column_names == ["id", "value", "bolt"]


def test_a_shape_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no shape `ring`; there are linear, diamond, star"):
        app("micro", tmp_path, shape="ring")


LINES: Mapping[str, Any] = {"lines": 700, "seed": 8}


@PLANS
def test_flight(counts: Sequence[Sequence[int]], tmp_path: Path) -> None:
    module, topology = app("flight", tmp_path, **LINES)
    out = run(topology, numbered(topology, 4, 700), tmp_path, counts)
    assert module.result(out, 4) == module.expected(4, **LINES)


def test_flight_from_a_file(tmp_path: Path) -> None:
    module, generator = app("flight", tmp_path, **LINES)
    topology = topology_of(module, {"text": str(tmp_path), "out": str(tmp_path / "out")})
    out = run(topology, lines(tmp_path, generator, "w0", 700, 2), tmp_path)
    assert module.result(out, 2) == module.expected(2, **LINES)


def test_what_a_line_of_the_real_file_says() -> None:
    module = load("flight")
    line = "2008,1,3,4,2003,1955,2211,2225,WN,335,N712SW,128,150,116,-14,8,IAD,TPA,810,4,8,0,,0,NA,NA,NA,NA,NA"
    table = module.records(pa.table({"value": [module.HEADLINE, line, "", None]}))
    assert table.num_rows == 1
    assert module.taxi_times(table).to_pylist() == [
        {"name": "IAD", "value": 8},
        {"name": "TPA", "value": 4},
    ]
    assert module.late(table).to_pylist() == [{"name": "WN335", "value": 0}]
    assert module.cancellations(table).num_rows == 0


SMALL: Sequence[
    tuple[str, str, Mapping[str, Any]]
] = (  # application, the option that says how much a batch holds, all options
    ("word-count", "sentences", {"sentences": 200}),
    ("taxi-routes", "trips", TRIPS),
    ("smart-home", "readings", READINGS),
    ("unique-visitors", "views", VIEWS),
    ("rolling-count", "sentences", SENTENCES),
    ("exclamation", "per_batch", {"per_batch": 300}),
    ("prefix-word-count", "sentences", SENTENCES),
    ("micro", "per_batch", {"shape": "star", "per_batch": 50, "work": 0.1}),
    ("flight", "lines", LINES),
)


@pytest.mark.parametrize(("name", "size", "options"), SMALL, ids=[name for name, _, _ in SMALL])
def test_a_file_that_is_lost_or_doubled_shows(
    name: str, size: str, options: Mapping[str, Any], tmp_path: Path
) -> None:
    module, topology = app(name, tmp_path, **options)
    out = run(topology, numbered(topology, 2, options[size]), tmp_path)
    shape = {key: options[key] for key in ("shape",) if key in options}
    expected = module.expected(2, **options)
    assert module.result(out, 2, **shape) == expected
    file = min(Path(out).rglob("batch=1/*.parquet"))
    (file.parent / "again.parquet").write_bytes(file.read_bytes())
    assert module.result(out, 2, **shape) != expected
    (file.parent / "again.parquet").unlink()
    file.unlink()
    assert module.result(out, 2, **shape) != expected
