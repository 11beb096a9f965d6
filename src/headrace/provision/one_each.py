"""Every task on a machine of its own, as Cao et al. have it: the market, and the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import Unsupported
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Ints
from headrace.model.problem import Assignment
from headrace.model.sizable import UNLIMITED, Load, load_of, sizable, unused_type_notes
from headrace.model.sized import ComponentMachines, Provisioned
from headrace.model.workload import Workload
from headrace.provision.refusals import too_few_machines, too_little_money
from headrace.solve.counts.dop import Market, cheapest


@dataclass(frozen=True, slots=True, eq=False)
class Shop:
    """A workload and the machines it can rent."""

    workload: Workload
    load: Load
    market: Market
    kinds: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def fluid_bound(self, budget: float) -> float:
        """The rate that no machines within the budget exceed, were tasks divisible at will."""
        return self.market.highest(budget) * self.load.spout_rate

    def least_budget(self) -> float:
        """The least that one task of each component costs; raises if machines are too few."""
        machines = cheapest(self.market, 0.0)
        if machines is None:
            self.load.refuse_what_fits_nowhere()
            raise too_few_machines(
                len(self.market.carries),
                int(self.market.available[self.market.carries.any(axis=0)].sum()),
            )
        return self.market.cost(machines)


def shop_of(workload: Workload, by: str) -> Shop:
    """Read the market: one task of a component on one machine of a type carries so much."""
    notes = unused_type_notes(workload)
    workload = sizable(workload, catalog=True)
    load = load_of(workload, catalog=True)
    if load.copied:
        raise Unsupported(
            f"{by} takes rates that do not depend on counts; a stream here is copied to every task",
            fix="use headrace",
        )
    return Shop(workload, load, market_of(load), tuple(workload.catalog), notes)


def market_of(load: Load) -> Market:
    """What one machine of each type carries of each component, for how much."""
    catalog = load.workload.catalog
    with np.errstate(divide="ignore"):
        carries = np.where(load.by_rate > 0, (load.thread - load.fixed) / load.by_rate, np.inf)
    available = [UNLIMITED if m.available is None else m.available for m in catalog.values()]
    return Market(
        carries=np.where(load.fits, np.maximum(carries, 0.0), 0.0),
        price=np.array([m.price for m in catalog.values()], dtype=np.float64),
        available=np.array(available, dtype=np.int64),
        most=load.most,
    )


def rank_types(shop: Shop) -> Ints:
    """Types from worst to best: cores x clock where stated, else CPU; then memory, then price."""
    machines = list(shop.workload.catalog.values())
    clocked = all(m.ghz is not None for m in machines)
    power = [
        (m.ghz or 0.0) * (m.cores or 1) * (m.sockets or 1) if clocked else _or_inf(m.cpu)
        for m in machines
    ]
    memory = [_or_inf(m.memory_mb) for m in machines]
    return np.lexsort(np.array([shop.market.price, memory, power])).astype(np.int64)


def _or_inf(value: float | None) -> float:
    return np.inf if value is None else value


def rent_worst_everywhere(shop: Shop, budget: float) -> Ints:
    """One machine for every component, of the worst type that fits and is left, [C, Y].

    Where that is too dear, the cheapest machines.
    """
    market = shop.market
    machines = np.zeros_like(shop.load.by_rate, dtype=np.int64)
    for c in range(len(machines)):
        for y in rank_types(shop).tolist():
            if market.carries[c, y] > 0 and machines[:, y].sum() < market.available[y]:
                machines[c, y] = 1
                break
    least = shop.least_budget()
    if not machines.any(axis=1).all() or market.cost(machines) > budget * (1 + 1e-9):
        cheap = cheapest(market, 0.0, budget=budget)
        if cheap is None:
            raise too_little_money(budget, least)
        return cheap  # the worst machines need not be the cheapest
    return machines


def sort_downstream(load: Load) -> list[int]:
    """Components after those that feed them; on a cycle, in the order of the file."""
    problem = load.problem
    before = [
        {s.source for s in problem.streams if s.target == c and s.source != c}
        for c in range(len(problem.components))
    ]
    order: list[int] = []
    while len(order) < len(before):
        left = [c for c in range(len(before)) if c not in order]
        order.append(next((c for c in left if before[c] <= set(order)), left[0]))
    return order


def plan_one_each(
    shop: Shop,
    machines: Ints,
    *,
    bound: float | None = None,
    bound_of: str = "",
    kind: str = "",
    steps: int = 0,
) -> Provisioned:
    """The plan of machines[C, Y] with every task on one of its own."""
    names = shop.load.problem.components
    tasks = {name: int(n) for name, n in zip(names, machines.sum(axis=1), strict=True)}
    of_type = {k: int(n) for k, n in zip(shop.kinds, machines.sum(axis=0), strict=True) if n}
    problem = shop.workload.problem(tasks, of_type)
    start = np.cumsum([0, *of_type.values()])[:-1]
    next_node = dict(zip(of_type, start.tolist(), strict=True))
    node: list[int] = []
    for row in machines:
        for y in np.flatnonzero(row).tolist():
            first = next_node[shop.kinds[y]]
            node += range(first, first + int(row[y]))
            next_node[shop.kinds[y]] += int(row[y])
    assignment = Assignment(np.array(node, dtype=np.int64), np.zeros(len(node), dtype=np.int64))
    single = (machines > 0).sum(axis=1) == 1
    components = (
        {
            name: ComponentMachines(shop.kinds[int(row.argmax())], int(row.sum()))
            for name, row in zip(names, machines, strict=True)
        }
        if single.all()
        else {}
    )
    return Provisioned(
        machines=of_type,
        tasks=tasks,
        problem=problem,
        assignment=assignment,
        cost=shop.market.cost(machines),
        rate=thread_rate(problem, assignment),
        bound=bound,
        bound_of=bound_of,
        bound_kind=kind,
        components=components,
        steps=steps,
        notes=(*problem.notes, *shop.notes),
        workload=shop.workload,
    )
