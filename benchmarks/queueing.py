"""Queues whose answers are known: by formula, or from ciw, a simulator of other people's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

import headrace as hr
from headrace.model.arrays import Floats
from headrace.simulate.confidence import Interval, interval
from headrace.simulate.result import Simulation

LOADS = (0.3, 0.6, 0.9)
INSTANT = {"worker": 0, "node": 0, "rack": 0}


@dataclass(frozen=True, slots=True)
class Known:
    """A network and what theory says of it; None where theory has no formula."""

    name: str
    case: hr.Case
    tuples_per_s: float
    mean_ms: float | None = None
    p99_ms: float | None = None
    throughput_per_s: float | None = None

    def simulate(self, tuples: float, runs: int, seed: int = 1) -> Simulation:
        """So many tuples in each run, a tenth of the time left out."""
        seconds = tuples / self.tuples_per_s
        plan = hr.place(self.case, by="storm-even")
        return hr.simulate(plan, seconds=seconds, warm_up=seconds / 10, runs=runs, seed=seed)


def chain(rate: float, times_ms: Sequence[float], tasks: int = 1, **sections: Any) -> hr.Case:
    """A spout and bolts in a row, each task with a core of its own unless nodes say otherwise."""
    components: dict[str, Any] = {"s0": {"spout": True, "rate": rate, "tasks": tasks}}
    for i in range(1, len(times_ms)):
        components[f"s{i}"] = {"inputs": {f"s{i - 1}": "shuffle"}}
    given = {
        "topology": {"components": components},
        "profile": {f"s{i}": {"*": {"cpu_ms": t}} for i, t in enumerate(times_ms)},
        "cluster": {"nodes": {"n": {"cpu": 100 * len(times_ms)}}},
        "latency_ms": INSTANT,
    }
    return hr.case({**given, **sections})


def single(load: float, kind: str) -> Known:
    """M/M/1 and M/D/1 with a service of 1 ms."""
    case = chain(1000 * load, [1.0], service={"kind": kind})
    if kind == "exponential":
        mean = 1 / (1 - load)
        return Known(f"M/M/1 at {load:.0%}", case, 1000 * load, mean, mean * math.log(100))
    mean = 1 + load / (2 * (1 - load))
    return Known(f"M/D/1 at {load:.0%}", case, 1000 * load, mean, 1 + constant_wait(load, 0.99))


def constant_wait(load: float, share: float) -> float:
    """The wait in M/D/1 that a share stays below, in services (Erlang 1909)."""

    def below(t: float) -> float:
        with localcontext() as context:
            context.prec = 80
            x, rho = Decimal(t), Decimal(load)
            total = sum(
                ((-rho * (x - k)) ** k / math.factorial(k) * (rho * (x - k)).exp())
                for k in range(int(t) + 1)
            )
            return float((1 - rho) * total)

    low, high = 0.0, 10 / (1 - load)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return high


def many_servers(load: float, servers: int = 4, tasks: int = 4000) -> Known:
    """M/M/c: so many tasks on c cores that no two tuples meet at one.

    Cores are shared, not handed out one by one. That changes who waits, not how many are there, so
    the mean is that of M/M/c; of the 99 % there is no formula.
    """
    rate = 1000 * load * servers
    case = chain(rate, [1.0], tasks, cluster={"nodes": {"n": {"cpu": 100 * servers}}})
    offered = load * servers
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    waits = last / (sum(terms) + last)
    return Known(f"M/M/{servers} at {load:.0%}", case, rate, 1 + waits / (servers * (1 - load)))


def tandem(load: float) -> Known:
    """Three M/M/1 in a row, the first the busiest: their times are independent (Reich 1957)."""
    times = [1.0, 0.8, 0.5]
    case = chain(1000 * load, times)
    rates = [1 / t - load for t in times]  # 1/ms
    mean = sum(1 / r for r in rates)

    def above(t: float) -> float:
        return sum(
            math.exp(-r * t) * math.prod(o / (o - r) for o in rates if o != r) for r in rates
        )

    low, high = 0.0, 100 * mean
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > 0.01 else (low, middle)
    return Known(f"tandem at {load:.0%}", case, 1000 * load, mean, high)


@dataclass(frozen=True, slots=True)
class Network:
    """Stations that tuples enter by share, and enter again by chance after each service."""

    rate: float  # tuples/s from outside
    shares: tuple[float, ...]
    again: float  # chance to be served again, at any station by its share
    times_ms: tuple[float, ...]
    cv: float = 1.0

    def case(self) -> hr.Case:
        """Stations are the tasks of one bolt; every one has a machine, which sets its speed."""
        count = len(self.shares)
        components = {
            "source": {"spout": True, "rate": self.rate, "nodes": ["n0"]},
            "work": {"tasks": count, "selectivity": self.again, "apart": True, "nodes": [
                f"n{i + 1}" for i in range(count)], "inputs": {
                    "source": {"grouping": "fields", "fields": ["k"]},
                    "work": {"grouping": "fields", "fields": ["k"]}}},
        }  # fmt: skip
        nodes = {"n0": {"type": "n0", "cpu": 100}} | {
            f"n{i + 1}": {"type": f"n{i + 1}", "cpu": 100} for i in range(count)
        }
        profile = {
            "source": {"*": {"cpu_ms": 0}},
            "work": {f"n{i + 1}": {"cpu_ms": t} for i, t in enumerate(self.times_ms)}
            | {"*": {"cpu_ms": 1}},
        }
        shares = list(self.shares)
        return hr.case(
            {
                "topology": {"components": components},
                "cluster": {"nodes": nodes},
                "profile": profile,
                "streams": [
                    {"from": "source", "to": "work", "shares": shares},
                    {"from": "work", "to": "work", "shares": shares},
                ],
                "latency_ms": INSTANT,
                "service": {"cv": self.cv},
            }
        )

    def plan(self) -> hr.Plan:
        """Station i on machine i."""
        places = {f"work.{i + 1}": f"n{i + 1}" for i in range(len(self.shares))}
        return hr.judge(self.case(), {"source.1": "n0", **places})

    @property
    def loads(self) -> list[float]:
        """How busy each station is."""
        total = self.rate / (1 - self.again)
        return [total * p * t / 1000 for p, t in zip(self.shares, self.times_ms, strict=True)]

    @property
    def jackson_ms(self) -> float:
        """The mean time in the network, for exponential services."""
        return sum(r / (1 - r) for r in self.loads) / self.rate * 1000


def random_network(load: float, seed: int) -> Network:
    """A few stations, the busiest of them as busy as asked."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    shares = rng.dirichlet(np.ones(count) * 3)
    times = rng.uniform(0.3, 2.0, count)
    again = float(rng.uniform(0, 0.5))
    cv = float(rng.choice([0.5, 1.0, 1.0, 1.5]))
    rate = 1000 * load * (1 - again) / float((shares * times).max())
    return Network(rate, tuple(shares.tolist()), again, tuple(times.tolist()), cv)


def closed(customers: int) -> Known:
    """A source that never runs dry and a limit on open trees: a closed network, by MVA."""
    times = [1.0, 1.4, 0.7]
    queue = [0.0] * len(times)
    throughput = 0.0
    for n in range(1, customers + 1):
        stay = [t * (1 + q) for t, q in zip(times, queue, strict=True)]
        throughput = n / sum(stay)
        queue = [throughput * s for s in stay]
    rate = 2 * 1000 * throughput
    case = chain(rate, times, max_spout_pending=customers)
    return Known(f"closed network of {customers}", case, rate, throughput_per_s=1000 * throughput)


def formulas(load: float) -> list[Known]:
    """All open networks with a formula, at a load."""
    return [
        single(load, "exponential"),
        single(load, "constant"),
        many_servers(load),
        tandem(load),
    ]


def ciw_times(network: Network, customers: int, seed: int) -> Floats:
    """The times in ms that ciw finds for the same network, after a tenth as warm-up."""
    import ciw
    import ciw.dists

    shape = 1 / network.cv**2
    count = len(network.shares)
    spec = ciw.create_network(
        arrival_distributions=[
            ciw.dists.Exponential(network.rate / 1000 * p) for p in network.shares
        ],
        service_distributions=[ciw.dists.Gamma(shape, t / shape) for t in network.times_ms],
        routing=[[network.again * p for p in network.shares] for _ in range(count)],
        number_of_servers=[1] * count,
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(spec)
    simulation.simulate_until_max_customers(customers, method="Finish")
    total: dict[int, float] = {}
    born: dict[int, float] = {}
    for record in simulation.get_all_records():
        who = record.id_number
        total[who] = total.get(who, 0.0) + record.waiting_time + record.service_time
        born[who] = min(born.get(who, math.inf), record.arrival_date)
    after = max(born.values()) / 10
    return np.array([total[who] for who, at in born.items() if at > after])


def ciw_figures(network: Network, customers: int, runs: int) -> tuple[Interval, Interval]:
    """Mean and 99 % in ms over independent runs of ciw, each with its interval."""
    found = [ciw_times(network, customers, seed) for seed in range(1, runs + 1)]
    means = interval(np.array([times.mean() for times in found]))
    return means, interval(np.array([np.quantile(times, 0.99) for times in found]))
