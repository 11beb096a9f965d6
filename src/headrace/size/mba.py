"""MBA: slots filled to their highest rate, then the fewest threads for what remains.

Source    A. Shukla and Y. Simmhan, Model-driven scheduling for distributed stream processing
          systems, JPDC 2018; the allocation as in the authors' implementation.
Maturity  reproduced
Guards    `max_tasks` is kept; nothing else is looked at, since tasks are counted and not placed
          (`place/sam` puts them in slots).
Differs   components without thread points keep the number of tasks of the file.
"""

from __future__ import annotations

from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.size.threads import Allocation, Points, allocate_threads


def mba(workload: Workload) -> Sized:
    """Model-based: threads for the rates of the file."""
    return allocate_threads(workload, allocate_bundles, "mba")


def allocate_bundles(rate: float, points: Points) -> Allocation:
    """Whole slots at the peak of the model; for the rest the fewest measured threads that do."""
    peak = max(points, key=lambda threads: (points[threads].rate, -threads))
    slots = int(rate / points[peak].rate * (1 + 1e-12))
    rest = rate - slots * points[peak].rate
    threads, cpu, memory = slots * peak, 100.0 * slots, 100.0 * slots
    if rest <= 1e-12 * rate:
        return Allocation(threads, cpu, memory)
    enough = min(t for t, point in points.items() if point.rate >= rest)
    part = rest / points[1].rate if enough == 1 else 1.0
    return Allocation(
        threads + enough, cpu + part * points[enough].cpu, memory + part * points[enough].memory
    )
