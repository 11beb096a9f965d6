"""LSA: the rate over one thread's peak rate, each thread at the cost of one thread.

Source    A. Shukla and Y. Simmhan, Model-driven scheduling for distributed stream processing
          systems, JPDC 2018; the allocation as in the authors' implementation.
Maturity  reproduced
Guards    `max_tasks` is kept; nothing else is looked at, since tasks are counted and not placed.
Differs   components without thread points keep the number of tasks of the file.
"""

from __future__ import annotations

from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.size.threads import Allocation, Points, allocate_threads


def lsa(workload: Workload) -> Sized:
    """Linear scaling: threads for the rates of the file."""
    return allocate_threads(workload, allocate_linearly, "lsa")


def allocate_linearly(rate: float, points: Points) -> Allocation:
    """Threads at their peak rate; the last one takes what remains, at its share of the cost."""
    one = points[1]
    full = int(rate / one.rate * (1 + 1e-12))
    rest = max(0.0, rate - full * one.rate)
    part = rest / one.rate if rest > 1e-12 * rate else 0.0
    return Allocation(full + (part > 0), (full + part) * one.cpu, (full + part) * one.memory)
