"""What measured sections change, what is noted about it, and who receives what."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import InvalidInput

from .conftest import Build

APP = """
topology:
  components:
    a: {spout: true, tasks: 2, rate: 12, bytes: 10}
    b: {tasks: 3, inputs: {a: fields}, selectivity: 2}
    c: {tasks: 2, inputs: {b: [{stream: x, grouping: global}, {stream: y, grouping: all}]}}
"""
MACHINES = "cluster: {nodes: {n1: {cpu: 100}}}\n"


@pytest.mark.parametrize(
    ("grouping", "received"),
    [
        ("shuffle", [1 / 3, 1 / 3, 1 / 3]),
        ("none", [1 / 3, 1 / 3, 1 / 3]),
        ("custom", [1 / 3, 1 / 3, 1 / 3]),
        ("fields", [1 / 3, 1 / 3, 1 / 3]),
        ("direct", [1 / 3, 1 / 3, 1 / 3]),
        ("local-or-shuffle", [1 / 3, 1 / 3, 1 / 3]),
        ("load-aware", [1 / 3, 1 / 3, 1 / 3]),
        ("global", [1, 0, 0]),
        ("all", [1, 1, 1]),
    ],
)
def test_a_grouping_decides_who_receives(built: Build, grouping: str, received: list[float]):
    problem = built(APP.replace("{a: fields}", f"{{a: {grouping}}}") + MACHINES)
    assert problem.streams[0].received(3) == pytest.approx(received)


def test_two_components_may_be_joined_by_several_streams(built: Build):
    problem = built(APP + MACHINES)
    assert [(s.name, s.grouping, s.tuples_per_s) for s in problem.streams[1:]] == [
        ("x", "global", 24),
        ("y", "all", 24),
    ]
    # 24 to the first task alone, and 24 to each of both
    assert problem.rate[2] == 72
    assert problem.share[problem.tasks_of(2)] == pytest.approx([48 / 72, 24 / 72])


def test_measured_shares_replace_the_even_split_and_are_scaled(built: Build):
    problem = built(APP + MACHINES + "streams: [{from: a, to: b, shares: [3, 1, 0]}]")
    assert problem.streams[0].received(3).tolist() == [0.75, 0.25, 0]
    assert problem.share[problem.tasks_of(1)].tolist() == [0.75, 0.25, 0]
    assert problem.notes == ("streams: a -> b: shares fields -> measured",)


def test_measured_facts_of_a_stream_replace_derived_ones_and_are_noted(built: Build):
    measured = (
        "streams: [{from: a, to: b, tuples_per_s: 30, bytes: 25}, {from: b, to: c, stream: y, "
        "selectivity: 0.5}]"
    )
    problem = built(APP + MACHINES + measured)
    assert problem.rate.tolist() == [12, 30, 60 + 2 * 15]
    assert problem.streams[0].bytes == 25
    assert problem.notes == (
        "streams: a -> b: bytes 10 -> 25",
        "streams: a -> b: rate derived -> 30 tuples/s",
        "streams: b -> c: selectivity 2 -> 0.5",
    )


def test_what_nobody_stated_is_no_override(built: Build):
    assert built(APP + MACHINES + "streams: [{from: b, to: c, bytes: 9}]").notes == ()


def test_a_measured_stream_without_a_name_means_every_stream_between_the_two(built: Build):
    problem = built(APP + MACHINES + "streams: [{from: b, to: c, tuples_per_s: 5}]")
    assert [s.tuples_per_s for s in problem.streams] == [12, 5, 5]


def test_history_gives_a_spout_its_last_rate(built: Build):
    problem = built(APP + MACHINES + "history: {a: [[0, 7], [60, 9]]}")
    assert problem.rate[:2].tolist() == [9, 9]
    assert problem.notes == ("history: a.rate 12 -> 9",)


def test_a_spout_without_a_rate_is_assumed_to_emit_one_tuple(built: Build):
    problem = built(APP.replace("rate: 12, ", "") + MACHINES)
    assert problem.rate[0] == 1
    assert problem.notes == ("assumed: a emits 1 tuple/s, since it has no `rate`",)


def test_measured_pairs_replace_their_stream_and_set_rates_and_shares(built: Build):
    problem = built(APP + MACHINES + "traffic: [[a.1, b.1, 6, 60], [a.2, b.1, 3], [a.2, b.3, 1]]")
    assert [(s.source, s.target) for s in problem.streams] == [(1, 2), (1, 2)]
    assert problem.pairs.source.tolist() == [0, 1, 1]
    assert problem.pairs.target.tolist() == [2, 2, 4]
    assert problem.pairs.bytes_per_s == pytest.approx([60, np.nan, np.nan], nan_ok=True)
    assert problem.rate[1] == 10
    assert problem.share[problem.tasks_of(1)] == pytest.approx([0.9, 0, 0.1])


def test_pairs_under_all_count_every_copy(built: Build):
    app = "topology: {components: {a: {spout: true, rate: 5}, b: {tasks: 2, inputs: {a: all}}}}\n"
    problem = built(app + MACHINES + "traffic: [[a.1, b.1, 4], [a.1, b.2, 4]]")
    assert problem.rate.tolist() == [5, 8]


def test_pairs_of_several_streams_are_counted_once(built: Build):
    pairs = "traffic: [[b.1, c.1, 10], [b.2, c.2, 2]]"
    problem = built(APP + MACHINES + pairs)
    assert problem.rate[2] == 12
    assert len(problem.streams) == 1


def test_another_number_of_tasks_leaves_measured_shares_out(built: Build):
    shares = "streams: [{from: a, to: b, shares: [3, 1, 0]}]"
    problem = built(APP + MACHINES + shares, tasks={"b": 4})
    assert problem.streams[0].received(4).tolist() == [0.25] * 4
    assert problem.notes == (
        "streams: a -> b: shares left out, since they are of 3 tasks and 4 are planned",
    )


def test_another_number_of_tasks_keeps_the_totals_of_measured_pairs(built: Build):
    pairs = "traffic: [[a.1, b.1, 6, 60], [a.2, b.3, 4, 60], [b.1, c.1, 8, 8], [b.3, c.2, 1, 1]]"
    problem = built(APP + MACHINES + pairs, tasks={"a": 5})
    assert [(s.source, s.target, s.tuples_per_s, s.bytes) for s in problem.streams] == [
        (0, 1, 10, 12)
    ]
    assert problem.rate.tolist() == [12, 10, 9]
    # b and c are as they were measured, but behind three more tasks
    assert problem.pairs.source.tolist() == [5, 7]
    assert problem.pairs.target.tolist() == [8, 9]
    assert problem.notes[-1].startswith("traffic: measured with another number of tasks")


def test_what_was_measured_with_another_number_of_tasks_than_the_file_has_keeps_its_totals(
    built: Build,
):
    app = (
        "topology: {components: {a: {spout: true, tasks: 2}, b: {tasks: 3, inputs: {a: fields}}, "
        "c: {inputs: {b: shuffle}}}}\n"
    )
    streams = [
        "{from: a, to: b, tuples_per_s: 10, shares: [0.7, 0.1, 0.1, 0.1]}",
        "{from: b, to: c, tuples_per_s: 9, shares: [1]}",
    ]  # fmt: skip
    pairs = "[[a.1, b.1, 6, 60], [a.1, b.4, 4, 60], [b.1, c.1, 8, 8], [b.4, c.1, 1, 1]]"
    problem = built(
        app
        + MACHINES
        + f"streams: [{', '.join(streams)}]\ntraffic: {pairs}\nhistory: {{a: [[0, 10]]}}"
    )
    # b had four tasks and a one; now they are three and two, and every stream touches one of them.
    assert not len(problem.pairs)
    assert [(s.source, s.target, s.tuples_per_s, s.bytes) for s in problem.streams] == [
        (0, 1, 10, 12),
        (1, 2, 9, 1),
    ]
    assert problem.share[problem.tasks_of(1)] == pytest.approx([1 / 3] * 3)
    assert any(
        n == "streams: a -> b: shares left out, since they are of 4 tasks and 3 are planned"
        for n in problem.notes
    )
    assert any(
        n.startswith("traffic: measured with another number of tasks") for n in problem.notes
    )


def test_a_spout_that_was_measured_with_fewer_tasks_is_spread_over_all_it_has_now(built: Build):
    app = (
        "topology: {components: {a: {spout: true, tasks: 4}, b: {tasks: 2, inputs: {a: "
        "shuffle}}}}\n"
    )
    measured = (
        "streams: [{from: a, to: b, tuples_per_s: 10, shares: [0.6, 0.4]}]\n"
        "traffic: [[a.1, b.1, 3], [a.2, b.1, 3], [a.2, b.2, 4]]"
    )
    problem = built(app + MACHINES + measured)
    assert not len(problem.pairs)
    assert problem.streams[0].received(2).tolist() == [0.6, 0.4]


def test_counts_that_do_not_change_leave_pairs_as_they_are(built: Build):
    pairs = "traffic: [[a.1, b.1, 6, 60]]"
    assert len(built(APP + MACHINES + pairs, tasks={"b": 3}).pairs) == 1


def test_an_unknown_component_cannot_be_resized(built: Build):
    with pytest.raises(InvalidInput, match=r"no component `bb` \(did you mean `b`\?\)"):
        built(APP + MACHINES, tasks={"bb": 2})
