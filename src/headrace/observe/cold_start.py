"""Costs of components that were never measured, estimated from those that were, and marked so."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from headrace.errors import InvalidInput
from headrace.observe.fit import Fit
from headrace.observe.rounding import six_digits

ALIKE = 0.6  # of two names, by difflib


@dataclass(frozen=True, slots=True)
class Wanted:
    """A component as the planners call it, and whether it is a spout."""

    name: str
    spout: bool


def estimates(
    wanted: Sequence[Wanted],
    types: Sequence[str],
    measured: Mapping[str, Mapping[str, Any]],
    known: Sequence[Fit],
    ghz: Mapping[str, float],
) -> dict[str, dict[str, dict[str, Any]]]:
    """The contract's `profile` for what the `measured` one lacks, from the most similar there is.

    `known` are the fits of all topologies, `ghz` the clocks of machine types.
    """
    if not known:
        raise InvalidInput("nothing was measured yet, so there is nothing to estimate from")
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for component in wanted:
        name = component.name.rpartition("/")[2]
        for machine in types:
            if not measured.get(component.name, {}).keys() & {machine, "*"}:
                similar = most_similar(name, component.spout, known)
                result.setdefault(component.name, {})[machine] = estimate(
                    similar, machine, known, ghz
                )
    return result


def most_similar(name: str, spout: bool, known: Sequence[Fit]) -> list[Fit]:
    """Fits of the component, else of the one with the nearest name, else of all of its role."""
    if own := [f for f in known if f.component == name]:
        return own
    same_role = [f for f in known if f.spout == spout] or list(known)
    names = sorted({f.component for f in same_role})
    alike = difflib.get_close_matches(name, names, n=1, cutoff=ALIKE)
    return [f for f in same_role if f.component == alike[0]] if alike else same_role


def estimate(
    similar: Sequence[Fit], machine: str, known: Sequence[Fit], ghz: Mapping[str, float]
) -> dict[str, Any]:
    """The median cost of similar components, carried over to a machine type."""
    same_type = [f for f in similar if f.machine_type == machine]
    chosen = same_type or list(similar)
    factors = [
        1.0 if same_type else slowdown(f.machine_type or "*", machine, known, ghz) for f in chosen
    ]
    sources = sorted({f"{f.component} on {f.machine_type or '*'}" for f in chosen})
    shown = sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"
    pairs = list(zip(chosen, factors, strict=True))
    return {
        "cpu_ms": six_digits(median(f.cpu_ms * factor for f, factor in pairs)),
        "cpu_fixed": six_digits(median(f.cpu_fixed * factor for f, factor in pairs)),
        "estimated": True,
        "flag": f"estimated from {shown}",
    }


def slowdown(
    measured_on: str, machine: str, known: Sequence[Fit], ghz: Mapping[str, float]
) -> float:
    """How many times longer work takes on another machine type.

    From components measured on both, or else from their clocks.
    """
    cost = {
        (f.topology, f.component, f.machine_type or "*"): f.cpu_ms for f in known if f.cpu_ms > 0
    }
    both = [
        ms / cost[t, c, measured_on]
        for (t, c, on), ms in cost.items()
        if on == machine and (t, c, measured_on) in cost
    ]
    if both:
        return median(both)
    if ghz.get(measured_on) and ghz.get(machine):
        return ghz[measured_on] / ghz[machine]
    return 1.0
