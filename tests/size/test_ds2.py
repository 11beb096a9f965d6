"""DS2 by hand: one task of 10 ms per tuple processes 100 tuples/s."""

from __future__ import annotations

import pytest

from headrace.errors import InvalidInput
from headrace.size.ds2 import ds2
from tests.size.workloads import chain, workload_of


def tasks(rate: float, **options: float) -> int:
    return ds2(workload_of(chain([10], rate=rate)), **options).tasks["b1"]


def test_without_headroom_it_is_rate_over_true_rate() -> None:
    assert tasks(200, utilisation=1, restart_s=0) == 2
    assert tasks(201, utilisation=1, restart_s=0) == 3


def test_utilisation_lag_and_restart_add_up() -> None:
    assert tasks(200, utilisation=0.5, restart_s=0) == 4
    assert tasks(200, utilisation=0.5, restart_s=180) == 5  # and a tenth of 200 to catch up with
    assert (
        tasks(200, utilisation=1, restart_s=0, lag=18_000 * 2 + 1) == 3
    )  # 20 tuples/s more for half an hour
    assert tasks(200, utilisation=1, restart_s=0, lag=18_000, catch_up_s=18_000) == 3


def test_downstream_rates_and_mean_machines_count() -> None:
    content = chain([10, 10], rate=100)
    content["topology"]["components"]["b1"]["selectivity"] = 3
    content["cluster"]["nodes"] = {"a": {"type": "x", "cpu": 100}, "b": {"type": "y", "cpu": 100}}
    content["profile"]["b2"] = {
        "x": {"cpu_ms": 10},
        "y": {"cpu_ms": 5},
    }  # 100 and 200 tuples/s: 150 on average
    sized = ds2(workload_of(content), utilisation=1, restart_s=0)
    assert sized.tasks == {"source": 1, "b1": 1, "b2": 2}


def test_max_tasks_binds_and_is_noted() -> None:
    content = chain([10], rate=500)
    content["topology"]["components"]["b1"]["max_tasks"] = 2
    sized = ds2(workload_of(content), utilisation=1, restart_s=0)
    assert sized.tasks["b1"] == 2
    assert "needs 5 tasks" in sized.notes[-1]


def test_options_that_make_no_sense_are_refused() -> None:
    for options in ({"utilisation": 0.0}, {"utilisation": 1.5}, {"lag": -1.0}, {"catch_up_s": 0.0}):
        with pytest.raises(InvalidInput, match="makes no sense"):
            ds2(workload_of(chain([10])), **options)
