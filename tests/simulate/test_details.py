"""The fluid and the batches beside the tuples, back-pressure, and what a result says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.lab.families import random_sections

QUICK = hr.example("quickstart.yaml")


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_fluid_has_the_throughput_of_the_tuples(factor: float) -> None:
    plan = hr.place(QUICK, by="storm-even")
    options: dict[str, Any] = {"seconds": 20, "warm_up": 5, "rate_factor": factor}
    tuples = hr.simulate(plan, **options)
    fluid = hr.simulate(plan, detail="fluid", **options)
    assert fluid.throughput_per_s.mean == pytest.approx(tuples.throughput_per_s.mean, rel=0.05)
    assert fluid.stable == tuples.stable
    assert fluid.latency_ms["p99"] is None


@pytest.mark.parametrize("seed", [0, 2, 7])
def test_in_overload_a_fluid_completes_the_trees_of_the_tuples(seed: int) -> None:
    # Several tasks on the way of a tree are behind, each with a queue of its own length.
    plan = hr.place(hr.case(random_sections(seed)), by="storm-even")
    factor = 1.5 * (plan.report.max_rate or 1.0)
    seconds = 1e6 / (factor * float(plan.problem.rate.sum()))
    options: dict[str, Any] = {"seconds": seconds, "warm_up": seconds / 5, "rate_factor": factor}
    tuples, fluid = (hr.simulate(plan, detail=d, **options) for d in ("tuple", "fluid"))
    assert not fluid.stable
    assert fluid.total("hops") == pytest.approx(tuples.total("hops"), rel=0.03)
    assert fluid.throughput_per_s.mean == pytest.approx(tuples.throughput_per_s.mean, rel=0.03)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_fluid_goes_round_a_cycle(factor: float) -> None:
    components = {
        "a": {"spout": True, "rate": 300},
        "b": {"tasks": 2, "selectivity": 0.4, "inputs": {"a": "shuffle", "b": "shuffle"}},
    }
    case = chain(topology={"components": components}, profile={"b": {"*": {"cpu_ms": 3}}})
    plan = hr.place(case, by="storm-even")
    options: dict[str, Any] = {"seconds": 60, "warm_up": 15, "rate_factor": factor}
    tuples, fluid = (hr.simulate(plan, detail=d, **options) for d in ("tuple", "fluid"))
    assert fluid.throughput_per_s.mean == pytest.approx(tuples.throughput_per_s.mean, rel=0.04)


def test_batches_take_what_the_judge_says() -> None:
    case = hr.load(QUICK).what_if(rate_factor=0.5)
    plan = hr.place(case, by="storm-even")
    took = plan.report.batch_seconds
    assert took is not None
    assert took < 1
    found = hr.simulate(plan, seconds=60, detail="batch")
    assert found.stable
    # Half an interval passes before a batch is made, then it runs.
    assert found.latency_ms["mean"] == pytest.approx(1e3 * (0.5 + took), rel=0.02)
    late = hr.simulate(plan, seconds=60, detail="batch", rate_factor=1.2 / took)
    assert not late.stable
    assert late.latency_ms["mean"] > 2 * found.latency_ms["mean"]


def test_an_engine_that_rests_between_batches_completes_less() -> None:
    case = hr.load(QUICK).what_if(rate_factor=0.5)
    took = hr.place(case, by="storm-even").report.batch_seconds
    assert took is not None
    options = {"simulate": {"batch_gap_s": 1.0}}
    rest = hr.place(hr.case(case.to_dict() | {"options": options}), by="storm-even")
    # A batch holds the tuples of a second, and the next one starts a second after its end.
    found = hr.simulate(rest, seconds=100, detail="batch", warm_up=10)
    per_batch = float(rest.problem.rate[rest.problem.spout].sum())
    assert found.throughput_per_s.mean == pytest.approx(per_batch / (took + 1.0), rel=0.03)
    assert not found.stable


def chain(**sections: Any) -> hr.Case:
    components = {
        "a": {"spout": True, "rate": 500},
        "b": {"inputs": {"a": "shuffle"}},
        "c": {"inputs": {"b": "shuffle"}},
    }
    times = {"a": 0.5, "b": 0.5, "c": 4}
    given = {
        "topology": {"components": components},
        "cluster": {"nodes": {"n": {"cpu": 300}}},
        "profile": {name: {"*": {"cpu_ms": ms}} for name, ms in times.items()},
    }
    return hr.case({**given, **sections})


def test_full_queues_hold_their_senders_back() -> None:
    free = hr.simulate(hr.place(chain(), by="storm-even"), seconds=20)
    bound = hr.simulate(hr.place(chain(queue_size=10), by="storm-even"), seconds=20)
    # The sink serves 250/s either way; what waits is before it, or before the spout.
    for found in (free, bound):
        assert found.throughput_per_s.mean == pytest.approx(250, rel=0.05)
        assert not found.stable
    assert free.series["queues"]["c"][-1] > 4000
    assert bound.series["queues"]["c"][-1] <= 11
    assert bound.series["queues"]["b"][-1] <= 11
    assert bound.series["queues"]["a"][-1] > 4000


def test_a_joining_task_waits_for_a_tuple_of_each_input() -> None:
    components = {
        "a": {"spout": True, "rate": 300},
        "b": {"spout": True, "rate": 100},
        "both": {"inputs": {"a": "shuffle", "b": "shuffle"}, "join": "zip"},
    }
    case = chain(topology={"components": components}, profile={"both": {"*": {"cpu_ms": 1}}})
    found = hr.simulate(hr.place(case, by="storm-even"), seconds=50)
    assert found.sinks["both"]["throughput_per_s"] == pytest.approx(100, rel=0.03)
    assert found.total("entered") == found.total("completed") + found.pending
    fluid = hr.simulate(hr.place(case, by="storm-even"), seconds=50, detail="fluid")
    assert fluid.sinks["both"]["throughput_per_s"] == pytest.approx(100, rel=0.03)


def test_chance_shrinks_with_runs_and_the_page_shows_all(tmp_path: Path) -> None:
    plan = hr.place(QUICK, by="storm-even")
    found = hr.simulate(plan, seconds=3, runs=4)
    rate = found.throughput_per_s
    assert rate.low is not None
    assert rate.high is not None
    tail = found.p99_latency_ms
    assert tail.low is not None
    assert tail.low < found.latency_ms["p99"] < tail.low + 4 * tail.half
    assert hr.simulate(plan, seconds=3).p99_latency_ms.low is None
    assert rate.low < 6000 * 1.02
    assert rate.high > 6000 * 0.98
    file = found.save(tmp_path / "s.html")
    text = file.read_text()
    assert all(f">{name}<" in text for name in plan.problem.nodes)
    assert "latency, ms over time" in text
    assert "storm-even" in repr(found)


def test_skewed_keys_fill_the_task_of_the_most_frequent_key() -> None:
    components = {
        "a": {"spout": True, "rate": 600},
        "b": {"tasks": 4, "inputs": {"a": {"grouping": "fields", "fields": ["k"]}}},
    }
    given = {"topology": {"components": components}, "profile": {"b": {"*": {"cpu_ms": 4}}}}
    skewed = chain(**given, options={"simulate": {"key_skew": 2.0, "keys": 50}})
    plan = hr.place(skewed, by="storm-even")
    tuples, fluid = (hr.simulate(plan, seconds=40, detail=d) for d in ("tuple", "fluid"))
    for found in (tuples, fluid):
        assert not found.stable  # more than 250/s, what one thread serves, have the first key
    assert fluid.throughput_per_s.mean == pytest.approx(tuples.throughput_per_s.mean, rel=0.04)
    assert hr.simulate(hr.place(chain(**given), by="storm-even"), seconds=40).stable


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"key_skw": 1}, "options.simulate has no `key_skw` (did you mean `key_skew`?)"),
        ({"speed": 1}, "there are: key_skew, keys, batches, batch_size, batch_gap_s"),
        ({"key_skew": "much"}, "options.simulate.key_skew is `much`; a number of at least 0"),
        ({"batch_gap_s": -1}, "options.simulate.batch_gap_s is `-1`; a number of at least 0"),
        ({"batches": "split"}, "options.simulate.batches is `split`; it is queue or merge"),
    ],
)
def test_wrong_options_are_refused(option: dict[str, Any], words: str) -> None:
    with pytest.raises(hr.InvalidInput) as refused:
        hr.simulate(hr.place(chain(options={"simulate": option}), by="storm-even"), seconds=1)
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 0}, "more than 0"),
        ({"seconds": 10, "warm_up": 10}, "leaves nothing"),
        ({"runs": 0}, "at least 1"),
        ({"detail": "quantum"}, "there are: tuple, fluid, batch"),
    ],
)
def test_what_cannot_be_simulated_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hr.InvalidInput) as refused:
        hr.simulate(hr.place(QUICK, by="storm-even"), **options)
    assert words in refused.value.message


def test_without_a_spout_nothing_arrives() -> None:
    case = hr.case(tasks={"a": {"cpu": 1}}, cluster={"nodes": {"n": {}}})
    with pytest.raises(hr.Unsupported, match="no component is a spout"):
        hr.simulate(hr.place(case, by="storm-even"))
