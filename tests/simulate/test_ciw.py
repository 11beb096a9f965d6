"""Beside ciw, a queueing simulator of other people's; more networks in benchmarks/simulating.py."""

# pyright: reportAttributeAccessIssue=false
# ciw says nothing about its parts.

from __future__ import annotations

from typing import Any

import ciw
import numpy as np
import pytest

import headrace as hr

RATE, AGAIN, CV = 0.5, 0.25, 0.5  # tuples/ms, chance to be served again, of service times
SHARES, TIMES_MS = (0.6, 0.4), (0.9, 1.2)


def their_times(customers: int) -> np.ndarray[Any, Any]:
    """Milliseconds in the network, customer by customer."""
    shape = 1 / CV**2
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(RATE * p) for p in SHARES],
        service_distributions=[ciw.dists.Gamma(shape, t / shape) for t in TIMES_MS],
        routing=[[AGAIN * p for p in SHARES] for _ in SHARES],
        number_of_servers=[1, 1],
    )
    ciw.seed(1)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(customers, method="Finish")
    total: dict[int, float] = {}
    for record in simulation.get_all_records():
        stay = record.waiting_time + record.service_time
        total[record.id_number] = total.get(record.id_number, 0.0) + stay
    return np.array(list(total.values()))


def test_a_network_with_feedback_is_that_of_ciw() -> None:
    keyed = {"grouping": "fields", "fields": ["k"]}
    nodes = {f"n{i}": {"type": f"n{i}", "cpu": 100} for i in range(3)}
    components = {
        "s": {"spout": True, "rate": 1000 * RATE},
        "w": {"tasks": 2, "selectivity": AGAIN, "inputs": {"s": keyed, "w": keyed}},
    }
    times = {f"n{i + 1}": {"cpu_ms": t} for i, t in enumerate(TIMES_MS)}
    case = hr.case(
        {
            "topology": {"components": components},
            "cluster": {"nodes": nodes},
            "profile": {"s": {"*": {"cpu_ms": 0}}, "w": {**times, "*": {"cpu_ms": 1}}},
            "streams": [{"from": a, "to": "w", "shares": list(SHARES)} for a in ("s", "w")],
            "latency_ms": {"node": 0, "rack": 0},
            "service": {"cv": CV},
        }
    )
    plan = hr.judge(case, {"s.1": "n0", "w.1": "n1", "w.2": "n2"})
    ours = hr.simulate(plan, seconds=600, warm_up=60).latency_ms
    theirs = their_times(30_000)
    assert ours["mean"] == pytest.approx(theirs.mean(), rel=0.04)
    assert ours["p99"] == pytest.approx(np.quantile(theirs, 0.99), rel=0.08)
