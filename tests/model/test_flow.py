"""Rates: how many tuples every component processes, cycles included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.flow import Amplifies, Flow, components_on_cycles, rates

from .conftest import Build, Refusal

MACHINES = "cluster: {nodes: {n: {}}}\n"


def test_rates_follow_a_chain_by_selectivity(built: Build):
    text = (
        "topology: {components: {a: {spout: true, rate: 10}, b: {inputs: {a: shuffle}, "
        "selectivity: 3}, c: {inputs: {b: shuffle}}}}\n"
    )
    problem = built(text + MACHINES)
    assert problem.rate.tolist() == [10, 10, 30]
    assert [s.tuples_per_s for s in problem.streams] == [10, 30]


def test_inputs_add_up_and_a_stream_is_copied_to_every_subscriber(built: Build):
    text = """
topology:
  components:
    a: {spout: true, rate: 10}
    b: {inputs: {a: shuffle}, selectivity: 2}
    c: {inputs: {a: shuffle}, selectivity: 5}
    d: {inputs: {b: shuffle, c: shuffle}}
"""
    assert built(text + MACHINES).rate.tolist() == [10, 10, 10, 70]


def test_divided_output_is_shared_by_the_subscribing_components(built: Build):
    text = """
topology:
  fanout: divide
  components:
    a: {spout: true, rate: 12}
    b: {inputs: {a: shuffle}, selectivity: 2}
    c: {inputs: {a: shuffle}}
    d: {inputs: {a: shuffle, b: shuffle}}
"""
    assert built(text + MACHINES).rate.tolist() == [12, 4, 4, 12]


def test_all_grouping_gives_every_task_a_copy(built: Build):
    text = (
        "topology: {components: {a: {spout: true, rate: 10}, b: {tasks: 3, inputs: {a: all}, "
        "selectivity: 0.5}, c: {inputs: {b: global}}}}\n"
    )
    problem = built(text + MACHINES)
    assert problem.rate.tolist() == [10, 30, 15]
    assert problem.streams[0].tuples_per_s == 10


def test_a_zipped_component_runs_at_its_slowest_input(built: Build):
    text = """
topology:
  components:
    a: {spout: true, rate: 10}
    b: {spout: true, rate: 4}
    c: {inputs: {a: shuffle, b: shuffle}, join: zip, selectivity: 2}
    d: {inputs: {c: shuffle}}
"""
    assert built(text + MACHINES).rate.tolist() == [10, 4, 4, 8]


def test_a_component_on_a_cycle_cannot_be_zipped(refusal: Refusal):
    text = """
topology:
  components:
    a: {spout: true}
    b: {inputs: {a: shuffle, c: shuffle}, join: zip}
    c: {inputs: {b: shuffle}, selectivity: 0.5}
"""
    assert (
        refusal(text + MACHINES)
        == "app.yaml:6: topology.components.b.join: a component on a cycle cannot be zipped"
    )


def test_a_cycle_that_was_measured_can_be_zipped(built: Build):
    text = """
topology:
  components:
    a: {spout: true, rate: 10}
    b: {inputs: {a: shuffle, c: shuffle}, join: zip}
    c: {inputs: {b: shuffle}, selectivity: 5}
streams: [{from: c, to: b, tuples_per_s: 3}]
"""
    assert built(text + MACHINES).rate.tolist() == [10, 3, 3]


def test_a_feedback_loop_settles_at_its_geometric_sum(built: Build):
    text = """
topology:
  components:
    a: {spout: true, rate: 10}
    b: {inputs: {a: shuffle, c: shuffle}, selectivity: 0.5}
    c: {inputs: {b: shuffle}, selectivity: 0.4}
"""
    # b = 10 + 0.4 * c and c = 0.5 * b, so b = 10 / (1 - 0.2)
    assert built(text + MACHINES).rate == pytest.approx([10, 12.5, 6.25])


def test_a_loop_that_amplifies_is_refused_by_name(refusal: Refusal):
    text = """
topology:
  components:
    a: {spout: true}
    b: {inputs: {a: shuffle, c: shuffle}, selectivity: 2}
    c: {inputs: {b: shuffle}, selectivity: 3}
    d: {inputs: {c: shuffle, d: shuffle}, selectivity: 0.9}
"""
    assert refusal(text + MACHINES) == (
        "app.yaml:6: topology.components.b: the loop b -> c -> b returns 6 tuples for each one it "
        "is given, "
        "so its rate grows without end; it must return less than 1"
    )


def test_a_loop_that_returns_exactly_what_it_is_given_is_refused(refusal: Refusal):
    text = "topology: {components: {a: {spout: true}, b: {inputs: {a: shuffle, b: shuffle}}}}\n"
    assert "the loop b -> b returns 1 tuples for each one it is given" in refusal(text + MACHINES)


def test_the_loop_that_is_named_is_the_one_that_amplifies():
    weak = [
        Flow(1, 2, 0.9, 1),
        Flow(2, 5, 0.9, 1),
        Flow(5, 6, 0.9, 1),
        Flow(6, 1, 0.9, 1),
        Flow(1, 1, 0.2, 1),
    ]
    strong = [Flow(1, 3, 0.1, 1), Flow(3, 4, 5.0, 1), Flow(4, 1, 3.0, 1)]
    with pytest.raises(Amplifies) as caught:
        rates(np.array([1.0, 0, 0, 0, 0, 0, 0]), [Flow(0, 1, 1.0, 1), *weak, *strong], [])
    assert caught.value.loop == (1, 3, 4)
    assert caught.value.factor == pytest.approx(1.5)
    assert caught.value.alone


def test_loops_that_amplify_only_together_are_refused_as_such(refusal: Refusal):
    text = """
topology:
  components:
    a: {spout: true}
    b: {inputs: {a: shuffle, c: shuffle, d: shuffle}, selectivity: 0.6}
    c: {inputs: {b: shuffle}}
    d: {inputs: {b: shuffle}}
"""
    assert (
        "b returns 0.6 tuples for each one it is given, and with the loops it shares components "
        "with, at least 1" in refusal(text + MACHINES)
    )


def test_a_rate_beyond_all_numbers_is_refused(refusal: Refusal):
    text = (
        "topology: {components: {a: {spout: true, rate: 1.0e+15}, b: {tasks: 9, inputs: {a: "
        "all}}}}\n"
    )
    assert refusal(text + MACHINES).startswith(
        "app.yaml:2: topology.components.b: the rate of `b` is above 1e+15; lower a rate"
    )


@st.composite
def flowing(draw: st.DrawFn) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[Flow]]:
    """Any graph, cycles included, whose components each send on less than they receive."""
    count = draw(st.integers(1, 7))
    spouts = np.array(draw(st.lists(st.floats(0, 100), min_size=count, max_size=count)))
    ends = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=14)
    )
    fan = [sum(source == s for s, _ in ends) for source in range(count)]
    gains = [draw(st.floats(0, 0.95)) / fan[source] for source, _ in ends]
    measured = [draw(st.none() | st.floats(0, 50)) for _ in ends]
    return spouts, [
        Flow(s, t, g, 1.0, m) for (s, t), g, m in zip(ends, gains, measured, strict=True)
    ]


@given(flowing())
def test_cycles_agree_with_iterating_until_nothing_changes(
    case: tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[Flow]],
):
    spouts, flows = case
    processed, emitted = rates(spouts, flows, [])
    twin = spouts.copy()
    for _ in range(600):
        sent = [
            flow.gain * twin[flow.source] if flow.measured is None else flow.measured
            for flow in flows
        ]
        twin = spouts.copy()
        for flow, tuples in zip(flows, sent, strict=True):
            twin[flow.target] += tuples * flow.copies
    assert processed == pytest.approx(twin, rel=1e-6, abs=1e-6)
    assert emitted == pytest.approx(
        [f.gain * twin[f.source] if f.measured is None else f.measured for f in flows],
        rel=1e-6,
        abs=1e-6,
    )


def test_cycles_are_those_of_streams_that_were_not_measured():
    flows = [
        Flow(0, 1, 1, 1),
        Flow(1, 2, 1, 1),
        Flow(2, 1, 1, 1),
        Flow(3, 3, 1, 1),
        Flow(2, 0, 1, 1, measured=4.0),
        Flow(4, 4, 1, 1, measured=4.0),
    ]
    assert components_on_cycles(5, flows) == {1, 2, 3}


def test_output_divided_by_tasks_gives_more_to_the_component_with_more_tasks(built: Build):
    text = """
topology:
  fanout: tasks
  components:
    a: {spout: true, rate: 12}
    b: {tasks: 1, inputs: {a: shuffle}, selectivity: 2}
    c: {tasks: 3, inputs: {a: shuffle}}
    d: {tasks: 2, inputs: {a: all, b: shuffle}}
"""
    # a is divided by the four tasks of b and c; both tasks of d hear all of it, and all of b.
    assert built(text + MACHINES).rate.tolist() == [12, 3, 9, 24 + 6]


def test_a_measured_selectivity_is_not_divided_again(built: Build):
    text = """
topology:
  fanout: tasks
  components:
    a: {spout: true, rate: 12}
    b: {tasks: 1, inputs: {a: shuffle}}
    c: {tasks: 3, inputs: {a: shuffle}}
streams: [{from: a, to: b, selectivity: 0.5}]
"""
    assert built(text + MACHINES).rate.tolist() == [12, 6, 9]
