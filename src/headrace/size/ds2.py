"""DS2: tasks = rate to be processed over the true processing rate of one task, with headroom as the Flink autoscaler has it.

Source    V. Kalavri et al., Three steps is all you need, OSDI 2018; target utilisation, lag and
          restart time as in Flink's autoscaler.
Maturity  inspired
Guards    `max_tasks` is kept; nothing else is looked at, since tasks are counted and not placed.
Differs   true processing rates come from the profile, as the mean over the nodes a component may
          use, where DS2 measures them. A component that is needed with more than `max_tasks` gets
          those, and a note says so. Flink's rounding to divisors of the key groups, its limits per
          step and its waiting times belong to the loop, not to a plan.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload


def ds2(
    workload: Workload,
    *,
    utilisation: float = 0.7,
    lag: float = 0.0,
    catch_up_s: float = 1800.0,
    restart_s: float = 300.0,
) -> Sized:
    """Counts for the rates of the file; `lag` tuples wait at the spouts, to be caught up with what arrives during a restart."""
    for name, value, ok in (
        ("utilisation", utilisation, 0 < utilisation <= 1),
        ("lag", lag, 0 <= lag < math.inf),
        ("catch_up_s", catch_up_s, catch_up_s > 0),
        ("restart_s", restart_s, 0 <= restart_s < math.inf),
    ):
        if not ok:
            raise InvalidInput(f"ds2: option {name} is {value:g}, which makes no sense")
    workload = sizable(workload, catalog=False)
    load = load_of(workload, catalog=False)
    load.refuse_what_fits_nowhere()
    one_task = true_rates(load)
    tasks: dict[str, int] = {}
    notes: list[str] = []
    for c, name in enumerate(load.problem.components):
        wanted = target(
            float(load.problem.rate[c]), load.spout_rate, utilisation, lag, catch_up_s, restart_s
        )
        needed = max(1, math.ceil(wanted / one_task[c] * (1 - 1e-12)))
        tasks[name] = min(needed, int(load.most[c]))
        if needed > load.most[c]:
            notes.append(
                f"ds2: {name} needs {needed} tasks for {wanted:g} tuples/s and may have {load.most[c]}"
            )
    problem = workload.problem(tasks)
    return Sized(
        tasks, problem, None, load.spout_rate, notes=(*problem.notes, *notes), workload=workload
    )


def true_rates(load: Load) -> Floats:
    """Tuples/s one task of each component processes when it never waits, as the mean over the nodes it may use; inf if it costs nothing, [C]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(load.by_rate > 0, (load.thread - load.fixed) / load.by_rate, np.inf)
    mean = np.where(load.fits, factor, 0.0).sum(axis=1) / load.fits.sum(axis=1)
    rate = np.where(load.problem.rate > 0, load.problem.rate, 1.0)
    return np.where(np.isfinite(mean), mean * rate, np.inf)


def target(
    rate: float,
    spout_rate: float,
    utilisation: float,
    lag: float,
    catch_up_s: float,
    restart_s: float,
) -> float:
    """Tuples/s a component is planned for: its rate at the target utilisation, its part of the lag, and of what a restart leaves behind."""
    return rate / utilisation + rate / spout_rate * lag / catch_up_s + rate * restart_s / catch_up_s
