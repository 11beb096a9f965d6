"""Rates under any counts, in machine code, against those of the model."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import InvalidInput
from headrace.model.generate_workload import random_workload
from headrace.solve.counts.count_flow import ENDLESS, count_flow, grow_rates
from tests.size.workloads import workload_of


@pytest.mark.parametrize("seed", range(60))
def test_rates_and_first_tasks_are_those_of_the_problem(seed: int) -> None:
    work = workload_of(random_workload(seed))
    random = np.random.default_rng(seed)
    names = [c.name for c in work.components]
    reference, _ = work.flow.rates(np.ones(len(names), dtype=np.int64))
    flow = count_flow(work.flow, reference)
    more, first_gets = np.ones(len(names)), np.zeros(len(names))
    for _ in range(4):
        tasks = random.integers(1, 6, len(names))
        ended = grow_rates(flow, tasks, more, first_gets)
        counts = dict(zip(names, tasks.tolist(), strict=True))
        if not ended:
            assert (more == ENDLESS).all()
            with pytest.raises(InvalidInput, match="grows without end"):
                work.problem(counts)
            continue
        problem = work.problem(counts)
        assert (more * reference).tolist() == pytest.approx(problem.rate.tolist())
        for c in work.flow.uneven:
            share = problem.share[problem.tasks_of(c)]
            if len(share) > 1 and more[c] > 0:
                assert first_gets[c] / more[c] == pytest.approx(share[0] - share[1])
