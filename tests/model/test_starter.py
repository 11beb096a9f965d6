"""The starter file can be used as it stands."""

from __future__ import annotations

import numpy as np

from headrace.model.document import Component, Topology
from headrace.model.starter import STARTER

from .conftest import Build


def test_the_starter_is_a_problem_with_two_machine_types_and_a_profile(built: Build):
    problem = built(STARTER)
    assert problem.types == ("big", "small")
    assert problem.profiled.tolist() == [True, True, True, False]
    assert problem.rate.tolist() == [6000, 6000, 42000, 420]
    assert problem.notes == ()


def test_the_starter_fits_its_cluster_but_no_single_machine(built: Build):
    problem = built(STARTER)
    demand = problem.task_demand(0)
    assert (demand.sum(axis=0) < problem.free.sum(axis=0)).all()
    assert demand[:, 0].sum() > problem.free[:, 0].max()
    for node in range(len(problem.nodes)):
        assert (
            problem.task_demand(int(problem.node_type[node])).max(axis=0) < problem.free[node]
        ).all()
    assert np.isfinite(problem.bandwidth_mbps).all()


def test_what_the_starter_has_commented_out_works_when_it_is_put_in(built: Build):
    lines = STARTER.split("\n")
    keys = {f"# {key}:" for key in (*Component.model_fields, *Topology.model_fields, "taken")}
    taken_in = [
        line.replace("# ", "", 1) if line.strip().startswith(tuple(keys)) else line
        for line in lines
    ]
    measured = taken_in.index("# streams:")
    taken_in[measured:] = [line.removeprefix("# ") for line in taken_in[measured:]]
    problem = built("\n".join(taken_in))
    assert problem.priority.tolist() == [10]
    assert problem.worker_heap_mb.tolist() == [4096]
    assert problem.apart.tolist() == [False, False, False, True]
    assert problem.allowed is not None
    assert problem.slot_taken[0].tolist() == [True, False, False, False]
    assert len(problem.pairs) == 1
    assert problem.notes[0].startswith("streams: split -> count: rate derived -> 42800")
