"""Taxi routes and smart home give what a batch computation of the same input gives."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.run.apps import load, topology_of
from tests.run.applications import (
    PLANS,
    READINGS,
    TRIPS,
    app,
    generated,
    numbered,
    run,
    through_csv,
)


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
