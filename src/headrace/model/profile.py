"""What a tuple costs: CPU points of every component on every machine type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.model.arrays import Bools, Floats
from headrace.model.components import NamedComponent
from headrace.model.nearest import nearest
from headrace.model.read import Inputs


def profile_of(
    inputs: Inputs,
    components: Sequence[NamedComponent],
    types: Sequence[str],
    rate: Floats,
    notes: list[str],
) -> tuple[Bools, Floats, Floats]:
    """Which components are profiled, and their CPU points on each machine type.

    The points are those of the whole component at its rate, and the fixed ones of one task.
    """
    profile = inputs.document.profile or {}
    names = {c.name: c for c in components}
    for name in profile:
        if name not in names:
            raise inputs.invalid(
                ("profile", name), f"there is no component `{name}`{nearest(name, list(names))}"
            )
    profiled = np.zeros(len(components), dtype=bool)
    by_rate = np.zeros((len(components), len(types)))
    fixed = np.zeros((len(components), len(types)))
    for i, c in enumerate(components):
        costs = profile.get(c.name, {})
        if not any(cost.cpu_ms is not None or cost.cpu_fixed for cost in costs.values()):
            continue  # not profiled, or only thread points (LSA, MBA)
        profiled[i] = True
        if c.spec.cpu is not None:
            notes.append(f"profile: {c.name}.cpu {c.spec.cpu:g} -> measured cost per tuple")
        for y, machine in enumerate(types):
            cost = costs.get(machine) or costs.get("*")
            if cost is None:
                had = ", ".join(f"`{t}`" for t in costs)
                lacks = (
                    f"not machine type `{machine}`, which the cluster has"
                    if machine
                    else "the cluster has nodes without `type`"
                )
                raise inputs.invalid(
                    ("profile", c.name),
                    f'has {had} but {lacks}; add it, or "*" for any type',
                )
            # Eq. 5 of Nasiri et al.: points = rate * ms / 10 + fixed.
            by_rate[i, y] = rate[i] * (cost.cpu_ms or 0.0) / 10
            fixed[i, y] = cost.cpu_fixed
    return profiled, by_rate, fixed
