"""DS2: the rate to process over the true rate of one task, with the Flink autoscaler's headroom.

Source    V. Kalavri et al., Three steps is all you need, OSDI 2018; target utilisation, lag and
          restart time as in Flink's autoscaler.
Maturity  inspired
Guards    `max_tasks` is kept; nothing else is looked at, since tasks are counted and not placed.
Differs   true processing rates come from the profile, as the mean over the nodes a component may
          use, where DS2 measures them. A component that needs more than `max_tasks` gets
          `max_tasks`, and a note says so. Flink's rounding to divisors of the key groups, its
          limits per step and its waiting times belong to the loop, not to a plan.
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
    """Counts for the rates of the file.

    `lag` tuples wait at the spouts; they and what arrives during a restart of `restart_s` seconds
    are to be caught up with in `catch_up_s` seconds.
    """
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
        wanted = target_rate(
            float(load.problem.rate[c]), load.spout_rate, utilisation, lag, catch_up_s, restart_s
        )
        needed = max(1, math.ceil(wanted / one_task[c] * (1 - 1e-12)))
        tasks[name] = min(needed, int(load.most[c]))
        if needed > load.most[c]:
            notes.append(
                f"ds2: {name} needs {needed} tasks for {wanted:g} tuples/s "
                f"and may have {load.most[c]}"
            )
    problem = workload.problem(tasks)
    return Sized(
        tasks, problem, None, load.spout_rate, notes=(*problem.notes, *notes), workload=workload
    )


def true_rates(load: Load) -> Floats:
    """Tuples/s that one task of each component processes if it never waits, [C].

    The mean over the nodes it may use; inf if it costs nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(load.by_rate > 0, (load.thread - load.fixed) / load.by_rate, np.inf)
    mean = np.where(load.fits, factor, 0.0).sum(axis=1) / load.fits.sum(axis=1)
    rate = np.where(load.problem.rate > 0, load.problem.rate, 1.0)
    return np.where(np.isfinite(mean), mean * rate, np.inf)


def target_rate(
    rate: float,
    spout_rate: float,
    utilisation: float,
    lag: float,
    catch_up_s: float,
    restart_s: float,
) -> float:
    """Tuples/s to plan a component for: its rate, and its share of the lag and of a restart."""
    return rate / utilisation + rate / spout_rate * lag / catch_up_s + rate * restart_s / catch_up_s
