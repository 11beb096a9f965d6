"""The example applications give what a batch computation of the same input gives.

Both with a steady plan and with new task counts in every batch.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import InvalidInput
from headrace.run.apps import load, topology_of
from headrace.run.sources import draw
from tests.run.applications import (
    LINES,
    PLANS,
    READINGS,
    SENTENCES,
    TRIPS,
    VIEWS,
    app,
    generated,
    lines,
    numbered,
    run,
)


def test_a_drawn_number_depends_on_seed_row_and_column_alone() -> None:
    rows = np.arange(10_000)
    drawn = draw(rows, 3, seed=5)
    assert np.array_equal(draw(rows[::-1], 3, seed=5), drawn[::-1])
    assert np.allclose(
        np.histogram(drawn, bins=10, range=(0, 1))[0], 1000, atol=120
    )  # four standard deviations
    for other in (draw(rows, 4, seed=5), draw(rows, 3, seed=6), draw(rows + 1, 3, seed=5)):
        assert abs(np.corrcoef(drawn, other)[0, 1]) < 0.04


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
    line = (
        "2008,1,3,4,2003,1955,2211,2225,WN,335,N712SW,128,150,116,-14,8,"
        "IAD,TPA,810,4,8,0,,0,NA,NA,NA,NA,NA"
    )
    table = module.records(pa.table({"value": [module.HEADLINE, line, "", None]}))
    assert table.num_rows == 1
    assert module.taxi_times(table).to_pylist() == [
        {"name": "IAD", "value": 8},
        {"name": "TPA", "value": 4},
    ]
    assert module.late(table).to_pylist() == [{"name": "WN335", "value": 0}]
    assert module.cancellations(table).num_rows == 0


# Application, the option that says how much a batch holds, all options.
SMALL: Sequence[tuple[str, str, Mapping[str, Any]]] = (
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
