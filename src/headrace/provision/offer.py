"""What can be rented for a workload, and which machines to try next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Floats, Ints
from headrace.model.request import Request
from headrace.model.sizable import Load, load_of, sizable, unused_type_notes
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.place.building_blocks.sized_tasks import place_sized_tasks
from headrace.provision.refusals import too_few_machines
from headrace.solve.counts.fill import Filled, fill_machines, pools_of
from headrace.solve.counts.rate_lp import Pools, most_rate

SLACK = 1.002  # machines whose bound is no further above what is wanted are not worth filling
MOST_MISSES = 8  # other machines filled in vain, one after the other, before the search ends
ENOUGH = 1e-9  # by how much a rate may miss, as a share


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A workload and the machines it can rent, with what ends the search. Y machine types."""

    workload: Workload
    load: Load  # on one machine of each type
    pools: Pools
    price: Floats  # [Y]
    available: Floats  # [Y] inf where there is no limit
    request: Request
    notes: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Machine types."""
        return self.load.problem.types

    def cost(self, machines: Ints) -> float:
        """Price of machines[Y]."""
        return float((machines * self.price).sum())

    def by_name(self, machines: Ints) -> dict[str, int]:
        """Machines[Y] by the names of their types, without those that are 0."""
        return {kind: int(n) for kind, n in zip(self.kinds, machines, strict=True) if n}

    def is_time_up(self) -> bool:
        """Whether time is up."""
        return self.request.deadline is not None and self.request.deadline()

    def load_on(self, machines: Ints) -> Load:
        """What the workload costs on machines[Y]."""
        one_each = {c.name: 1 for c in self.workload.components}
        problem = self.workload.problem(one_each, self.by_name(machines))
        return Load(problem, self.workload, self.load.most, self.load.spout_rate)

    def fill(self, machines: Ints, enough: float = np.inf) -> Filled | None:
        """The best counts found on machines[Y]; None if no plan was found."""
        if not machines.any():
            return None
        load = self.load_on(machines)
        found: Filled | None = None
        for _ in range(3 if load.copied else 1):
            found = fill_machines(
                load,
                seed=self.request.seed,
                steps=self.request.steps,
                deadline=self.request.deadline,
                enough=enough,
            )
            if found is None or not load.copied:
                break
            load = load.at(found.tasks(load))
        return found

    def plan(self, machines: Ints, found: Filled) -> Provisioned:
        """The machines with their tasks placed; machines that stay empty are not rented."""
        used = found.x.any(axis=0)
        kept = np.zeros_like(machines)
        kind_of = np.repeat(np.arange(len(machines)), machines)
        np.add.at(kept, kind_of[used], 1)
        tasks = found.tasks(self.load)
        problem = self.workload.problem(tasks, self.by_name(kept))
        node = Filled(found.x[:, used], found.factor, found.bound).node
        assignment = place_sized_tasks(problem, node, self.request)
        return Provisioned(
            machines=self.by_name(kept),
            tasks=tasks,
            problem=problem,
            assignment=assignment,
            cost=self.cost(kept),
            rate=thread_rate(problem, assignment),
            notes=(*problem.notes, *self.notes),
            workload=self.workload,
        )


def read_offer(workload: Workload, request: Request) -> Offer:
    """Read what can be rented; refuse what fits no machine."""
    notes = unused_type_notes(workload)
    workload = sizable(workload, catalog=True)
    load = load_of(workload, catalog=True)
    load.refuse_what_fits_nowhere()
    pools, _, _ = pools_of(load)  # one pool per type, in the order of the catalog
    catalog = workload.catalog.values()
    available = np.array([np.inf if m.available is None else float(m.available) for m in catalog])
    if not (load.fits & (available > 0)).any(axis=1).all():
        raise too_few_machines(len(load.most), int(np.minimum(available, 1e9).sum()))
    return Offer(
        workload,
        load,
        pools,
        np.array([m.price for m in catalog]),
        available,
        request,
        notes,
    )


def list_exchanges(offer: Offer, machines: Ints) -> list[Ints]:
    """One or two machines fewer, or exchanged for one or two of another type."""
    kinds = len(machines)
    rows: list[Ints] = []
    for a in range(kinds):
        for taken in (1, 2):
            if machines[a] < taken:
                continue
            less = machines.copy()
            less[a] -= taken
            rows.append(less)
            for b in range(kinds):
                for given in (1, 2):
                    if b != a and less[b] + given <= offer.available[b]:
                        more = less.copy()
                        more[b] += given
                        rows.append(more)
    return list(np.unique(np.array(rows), axis=0)) if rows else []


def estimate_factors(offer: Offer, machines: Ints, rows: list[Ints]) -> Floats:
    """The factor that other machines could carry, roughly, [rows].

    It adds up what one machine more or less of each type would change.
    """
    here = bound_factor(offer, machines)
    one = np.eye(len(machines), dtype=np.int64)
    more = np.array(
        [
            bound_factor(offer, machines + row) - here
            if (machines + row <= offer.available).all()
            else 0.0
            for row in one
        ]
    )
    less = np.array(
        [
            here - bound_factor(offer, machines - row) if (machines >= row).all() else 0.0
            for row in one
        ]
    )
    change = np.array(rows).reshape(-1, len(machines)) - machines
    return here + np.maximum(change, 0) @ more - np.maximum(-change, 0) @ less


def bound_factor(offer: Offer, machines: Ints) -> float:
    """The factor that no counts on these machines exceed."""
    fluid = most_rate(offer.pools, machines.astype(np.float64)) if machines.any() else None
    return 0.0 if fluid is None else fluid.bound
