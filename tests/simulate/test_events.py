"""What happens while a plan runs, and how wrong events are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.library.simulation import read_events
from headrace.simulate.arrivals import mean_factor, rate_curve, with_factors

KEYED = {"grouping": "fields", "fields": ["k"]}


def case(**sections: Any) -> hr.Case:
    components = {
        "in": {"spout": True, "rate": 200, "tasks": 2},
        "work": {"tasks": 4, "inputs": {"in": KEYED}, "state_mb": 25},
    }
    given = {
        "topology": {"components": components},
        "cluster": {"nodes": {"n{1..3}": {"cpu": 200, "slots": 2, "bandwidth_mbps": 100}}},
        "profile": {"in": {"*": {"cpu_ms": 1}}, "work": {"*": {"cpu_ms": 8}}},
        "latency_ms": {"node": 0, "rack": 0},
    }
    return hr.case({**given, **sections})


def at(found: hr.Simulation, name: str, begin: float, end: float) -> float:
    """The mean of a series between two moments."""
    moments = np.array(found.series["at_s"])
    values = np.array(found.series[name], dtype=float)
    return float(values[(moments > begin) & (moments <= end)].mean())


def test_a_rate_event_changes_what_arrives() -> None:
    plan = hr.place(case(), by="storm-even")
    found = hr.simulate(plan, seconds=40, events=[{"at": 10, "rate": 2}, {"at": 20, "rate": 0.5}])
    assert at(found, "arrived_per_s", 0, 10) == pytest.approx(200, rel=0.06)
    assert at(found, "arrived_per_s", 10, 20) == pytest.approx(400, rel=0.06)
    assert at(found, "arrived_per_s", 20, 40) == pytest.approx(100, rel=0.06)


def test_moved_tasks_pause_for_their_state() -> None:
    # 25 MB at 100 Mbit/s take 2 s; while its task is away, tuples for it wait and none is lost.
    plan = hr.judge(
        case(), {"in.1": "n1", "in.2": "n1", **{f"work.{i}": "n2" for i in range(1, 5)}}
    )
    after = hr.judge(case(), plan.node_of | {"work.1": "n3"})
    found = hr.simulate(plan, seconds=30, events=[{"at": 10, "plan": after}])
    assert at(found, "pending", 11.5, 12) > 50
    assert at(found, "pending", 25, 30) < 30
    assert found.total("lost") == 0
    assert at(found, "throughput_per_s", 10.2, 11.8) == pytest.approx(150, rel=0.2)
    assert "n3" in found.nodes


def test_a_hot_key_overloads_its_task() -> None:
    plan = hr.place(case(), by="storm-even")
    found = hr.simulate(plan, seconds=30, events=[{"at": 10, "hot": "work.2", "share": 0.9}])
    assert at(found, "pending", 5, 10) < 30
    assert not found.stable
    limit = found.bottleneck
    assert limit is not None
    assert limit[0].task == "work.2"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"at": 1, "lose": "n33"}, "there is no node `n33` (did you mean `n3`?)"),
        ({"at": 1, "join": "xy"}, "there is no node `xy`; there are: n1, n2, n3"),
        ({"at": 1, "hot": "work.9"}, "`work` has 1 to 4"),
        ({"at": 1, "hot": "wrok.1"}, "there is no task `wrok.1` (did you mean `work.1`?)"),
        ({"at": 1, "hot": "in.1"}, "no input of `in` is grouped by fields"),
        ({"at": 1}, "happens nothing; give one of rate, plan, lose, join, hot"),
        ({"at": 1, "rate": 2, "lose": "n1"}, "`rate` and `lose`"),
        ({"at": 1, "plan": "nowhere.json"}, "nowhere.json: no such file"),
        ({"at": -1, "rate": 2}, "events[0].at"),
        ({"at": 1, "loose": "n1"}, "did you mean `lose`"),
    ],
)
def test_a_wrong_event_is_refused_with_what_there_is(event: dict[str, Any], words: str) -> None:
    plan = hr.place(case(), by="storm-even")
    with pytest.raises(hr.InvalidInput) as refused:
        hr.simulate(plan, seconds=5, events=[event])
    assert words in refused.value.message


def test_events_of_a_file_name_plans_beside_it(tmp_path: Path) -> None:
    plan = hr.place(case(), by="storm-even")
    plan.save(tmp_path / "other.json")
    (tmp_path / "e.yaml").write_text("events: [{at: 2, plan: other.json}, {at: 3, rate: 2.0}]")
    found = hr.simulate(plan, seconds=5, events=tmp_path / "e.yaml")
    assert any("0 tasks move" in note for note in found.notes)
    (tmp_path / "wrong.yaml").write_text("happenings: []")
    with pytest.raises(hr.InvalidInput, match="has no `events`"):
        read_events(tmp_path / "wrong.yaml")


def test_a_fluid_knows_only_rates() -> None:
    plan = hr.place(case(), by="storm-even")
    with pytest.raises(hr.Unsupported, match="not simulated with --detail fluid"):
        hr.simulate(plan, seconds=5, detail="fluid", events=[{"at": 1, "lose": "n1"}])
    found = hr.simulate(plan, seconds=20, detail="fluid", events=[{"at": 10, "rate": 3}])
    assert at(found, "arrived_per_s", 10, 20) == pytest.approx(600, rel=1e-6)


def test_arrivals_follow_their_curve(tmp_path: Path) -> None:
    trace = {"kind": "trace", "points": [[0, 100], [10, 400], [20, 0]]}
    found = hr.simulate(hr.place(case(arrivals=trace), by="storm-even"), seconds=30)
    assert at(found, "arrived_per_s", 0, 10) == pytest.approx(100, rel=0.1)
    assert at(found, "arrived_per_s", 10, 20) == pytest.approx(400, rel=0.1)
    assert at(found, "arrived_per_s", 20.2, 30) == 0
    bursts = case(arrivals={"kind": "on-off", "on_s": 1, "off_s": 3}).problem
    assert mean_factor(rate_curve(bursts, 4000, 1), 0, 4000) == pytest.approx(1, rel=0.15)
    day = case(arrivals={"kind": "daily", "amplitude": 0.5, "peak_s": 0}).problem
    curve = rate_curve(day, 86400, 0)
    assert curve[0][1] == pytest.approx(1.5)
    assert mean_factor(curve, 0, 86400) == pytest.approx(1, rel=1e-3)
    (tmp_path / "t.csv").write_text("0,10\n5,20\n")
    assert with_factors([(0.0, 1.0)], [(0.0, 1.0), (3.0, 2.0)]) == [(0.0, 1.0), (3.0, 2.0)]
    file = {"kind": "trace", "file": str(tmp_path / "t.csv")}
    assert case(arrivals=file).problem.dynamics.points == ((0.0, 10.0), (5.0, 20.0))


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"arrivals": {"kind": "trace"}}, "a trace needs either `points` or a `file`"),
        ({"arrivals": {"kind": "trace", "points": [[5, 1], [2, 1]]}}, "must grow"),
        ({"latency_ms": {"node": 2, "rack": 1}}, "a higher level may not be nearer"),
        ({"max_spout_pending": 0}, "max_spout_pending"),
        ({"service": {"kind": "normal"}}, "service.kind"),
    ],
)
def test_wrong_settings_are_refused(sections: dict[str, Any], words: str) -> None:
    with pytest.raises(hr.InvalidInput) as refused:
        assert case(**sections).problem
    assert words in refused.value.message
