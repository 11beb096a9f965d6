"""Machine types: what a node gives a thread, and a process of its own that measures it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from headrace.control.profiling import Cost, Interval, Ramp
from headrace.control.profiling_by_type import (
    ThreadLimit,
    profile_in_room,
    profile_types,
    thread_limits,
)
from headrace.errors import InvalidInput, Unsupported
from headrace.model.document import Node
from headrace.run.leftovers import PREFIX
from headrace.run.limits import Room

APP = """
import os
from headrace.run import Topology
from headrace.run.sources import numbers

def topology(end=False):
    if end:
        raise MemoryError("no more room")
    found = Topology("pass").spout("number", numbers(100))
    return found.bolt("work", lambda table: table, inputs={"number": "shuffle"})
"""


def test_a_thread_has_a_core_at_most_or_all_of_a_smaller_node() -> None:
    nodes = {"a": Node(type="big", cpu=800), "b": Node(type="small", cpu=40), "c": Node(type="any")}
    limits = {limit.machine_type: limit.points for limit in thread_limits(nodes)}
    assert limits == {"big": 100, "small": 40, "any": 100}
    assert [limit.machine_type for limit in thread_limits(nodes, ["small", "small"])] == ["small"]


def test_of_nodes_that_differ_the_weakest_counts_and_those_without_a_type_are_any() -> None:
    nodes = {"a": Node(cpu=60), "b": Node(cpu=30), "c": Node(cpu=90)}
    assert thread_limits(nodes) == [ThreadLimit("*", 30)]


def test_a_slower_clock_is_a_share_of_the_fastest_and_more_cpu_per_tuple() -> None:
    nodes = {"a": Node(type="new", cpu=400, ghz=3.0), "b": Node(type="old", cpu=80, ghz=1.5)}
    (old,) = thread_limits(nodes, ["old"])
    assert (old.cpu, old.speed, old.points) == (80, 0.5, 40)
    ms = Interval(2.0, 1.0, 3.0)
    cost = Cost("work", ms, ms, ms, {"end": 2.0}, {"end": 8.0}, 0.9, 32)
    slower = old.convert(cost)
    assert slower.cpu_ms == slower.batch_ms == Interval(4.0, 2.0, 6.0)
    assert slower.wall_ms == ms, "the clock was measured under the limit"
    assert slower.flag == "CPU of 3 GHz counted as of 1.5 GHz"
    (new,) = thread_limits(nodes, ["new"])
    assert new.convert(cost) == cost


def test_what_the_cluster_does_not_have_is_refused_with_the_nearest_name() -> None:
    nodes = {"a": Node(type="big", cpu=800), "b": Node(type="small", cpu=40)}
    said = r"no machine type `smal` \(did you mean `small`\?\); there are: big, small"
    with pytest.raises(InvalidInput, match=said):
        thread_limits(nodes, ["big", "smal"])
    with pytest.raises(InvalidInput, match=r"`none` has 0.5 points of CPU; .* held to 1 or more"):
        thread_limits({"a": Node(type="none", cpu=0.5)})


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system is refused first")
def test_without_rights_it_says_what_is_missing_and_the_other_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unsupported, match="need root, and this is user 1000") as refused:
        next(profile_types(Ramp("word-count", {}), [ThreadLimit("small", 40)], print))
    assert "leave --fleet out" in str(refused.value.fix)


def test_a_process_of_its_own_measures_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, temporary = tmp_path / "app.py", tmp_path / "temporary"
    app.write_text(APP)
    temporary.mkdir()  # of its own: in the shared one, other processes' folders come and go
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    number, work = profile_in_room(Ramp(str(app), {}, rows=80, repeats=1), Room())
    assert (number.component, number.selectivity) == ("number", {"work": 1.0})
    assert (work.component, work.batches) == ("work", 8)
    with pytest.raises(InvalidInput, match=r"^the topology has no component `wrk`"):
        profile_in_room(Ramp(str(app), {}, rows=80, repeats=1, components=("wrk",)), Room())
    with pytest.raises(InvalidInput, match="ended early: MemoryError: no more room"):
        profile_in_room(Ramp(str(app), {"end": True}), Room())
    assert not list(temporary.glob(f"{PREFIX}*"))
