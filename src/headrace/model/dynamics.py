"""What only a clock shows: how tuples arrive, how service times vary, how far tuples travel."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from headrace.model.read import Inputs
    from headrace.model.simulation_sections import Arrivals

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Dynamics:
    """What a simulation and a predicted latency need beside the problem."""

    arrivals: Literal["constant", "poisson", "on-off", "trace", "daily"] = "poisson"
    on_s: float = 10.0
    off_s: float = 10.0
    points: Points = ()  # of a trace: seconds, tuples/s over all spouts
    amplitude: float = 0.5
    peak_s: float = 43200.0
    cv: float = 1.0  # of service times
    max_spout_pending: int | None = None  # trees open per task of a spout
    queue_size: int | None = None  # tuples that wait before a task of a bolt
    latency_ms: tuple[float, float, float] = (0.0, 0.1, 0.5)  # between workers, nodes, racks


def dynamics_of(inputs: Inputs) -> Dynamics:
    """What the files say, and what is assumed where they do not."""
    from headrace.model.simulation_sections import Arrivals, Latency, Service

    document = inputs.document
    arrivals = document.arrivals or Arrivals()
    service = document.service or Service()
    latency = document.latency_ms or Latency()
    levels = (latency.worker, latency.node, latency.rack)
    if list(levels) != sorted(levels):
        given = "worker {:g}, node {:g}, rack {:g}".format(*levels)
        raise inputs.invalid(("latency_ms",), f"a higher level may not be nearer: {given}")
    variation = 0.0 if service.kind == "constant" else 1.0
    return Dynamics(
        arrivals=arrivals.kind,
        on_s=arrivals.on_s,
        off_s=arrivals.off_s,
        points=_points(inputs, arrivals),
        amplitude=arrivals.amplitude,
        peak_s=arrivals.peak_s,
        cv=variation if service.cv is None else service.cv,
        max_spout_pending=document.max_spout_pending,
        queue_size=document.queue_size,
        latency_ms=levels,
    )


def _points(inputs: Inputs, arrivals: Arrivals) -> Points:
    """The curve of a trace, from the section or from the file that it names."""
    if arrivals.kind != "trace":
        return ()
    path = ("arrivals",)
    if (arrivals.file is None) == (not arrivals.points):
        raise inputs.invalid(path, "a trace needs either `points` or a `file`")
    points = arrivals.points
    if arrivals.file is not None:
        origin = inputs.files.get("arrivals")
        file = Path(origin.name).parent / arrivals.file if origin else Path(arrivals.file)
        try:
            with file.open(newline="", encoding="utf-8") as lines:
                points = tuple((float(row[0]), float(row[1])) for row in csv.reader(lines) if row)
        except OSError as error:
            raise inputs.invalid((*path, "file"), f"{file}: {error.strerror}") from None
        except (ValueError, IndexError):
            need = "a trace has lines of seconds,tuples/s and nothing else"
            raise inputs.invalid((*path, "file"), f"{file}: {need}") from None
    if not points:
        raise inputs.invalid((*path, "file"), f"{arrivals.file}: the trace is empty")
    times = [at for at, _ in points]
    if any(b <= a for a, b in pairwise(times)):
        raise inputs.invalid(path, "the seconds of a trace must grow")
    if any(not (at >= 0 and rate >= 0) for at, rate in points):
        raise inputs.invalid(path, "seconds and rates of a trace are 0 or more")
    return points
