"""The papers' scenarios and random instances, as headrace/1 documents.

The same arguments give the same document.
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from headrace.model.document import FORMAT

Content = dict[str, Any]

# Table 3 of Nasiri et al., CPU milliseconds per tuple on machines 1, 2 and 3 (its points per
# tuple/s, times 10).
NASIRI_MS = {"low": (0.581, 1.07, 0.916), "mid": (1.03, 1.844, 1.68), "high": (1.915, 3.449, 3.207)}
NASIRI_MACHINES = {"small": (2, 2, 2), "medium": (10, 10, 10), "large": (20, 70, 90)}  # table 4
NASIRI_MEMORY_MB = (2048, 4096, 6144)  # table 2
CAO_LEVELS = 6


def nasiri_scenario(
    layout: Literal["linear", "diamond", "star"],
    size: Literal["small", "medium", "large"],
    fixed: float = 0.0,
) -> Content:
    """One of the nine cases of Nasiri et al., table 4; the paper does not publish `fixed` costs."""
    components: Content = {}
    if layout == "star":
        components |= {
            "source-1": {"spout": True, "rate": 4},
            "source-2": {"spout": True, "rate": 4},
        }
        components["mid"] = {"inputs": {"source-1": "shuffle", "source-2": "shuffle"}}
        components |= {name: {"inputs": {"mid": "shuffle"}} for name in ("low", "high")}
        kinds = {"mid": "mid", "low": "low", "high": "high"}
    else:
        components["source"] = {"spout": True, "rate": 8}
        before = (
            {"low": "source", "mid": "low", "high": "mid"}
            if layout == "linear"
            else dict.fromkeys(NASIRI_MS, "source")
        )
        components |= {name: {"inputs": {source: "shuffle"}} for name, source in before.items()}
        kinds = {name: name for name in NASIRI_MS}
        if layout == "diamond":
            components["sink"] = {"inputs": dict.fromkeys(NASIRI_MS, "shuffle")}
            kinds["sink"] = "low"
    profile = {
        name: {
            f"m{i}": {"cpu_ms": ms, "cpu_fixed": fixed} for i, ms in enumerate(NASIRI_MS[kind], 1)
        }
        for name, kind in kinds.items()
    }
    nodes = {
        f"m{i}-{{1..{count}}}": {
            "type": f"m{i}",
            "cpu": 100,
            "memory_mb": memory,
            "slots": 1,
            "bandwidth_mbps": 1000,
        }
        for i, (count, memory) in enumerate(
            zip(NASIRI_MACHINES[size], NASIRI_MEMORY_MB, strict=True), 1
        )
    }
    topology = {"name": layout, "fanout": "divide", "components": components}
    return {"format": FORMAT, "topology": topology, "profile": profile, "cluster": {"nodes": nodes}}


def cao_pipeline(modules: int, edges: int, *, kinds: int = 16, seed: int = 0) -> Content:
    """A random workflow of Cao et al., sections 5.1 and 5.2, with one machine per task.

    A module takes 5 to 500 million instructions. Of each machine type there is one for every
    module, since the budgets suppose that the whole workflow could run on any one type. A type's
    speed in million instructions per second grows with its cores; prices grow with speed, up to a
    fifth more or less.
    """
    random = Random(f"cao {modules} {edges} {kinds} {seed}")
    inputs: list[set[int]] = [set() for _ in range(modules)]
    for v in range(1, modules):
        inputs[v].add(v - 1)  # along the pipeline
    for v in range(modules):
        if v > 0:
            inputs[v].add(random.randrange(v))
        if v < modules - 1:
            inputs[random.randrange(v + 1, modules)].add(v)
    most = modules * (modules - 1) // 2
    while sum(map(len, inputs)) < min(edges, most):
        a, b = sorted(random.sample(range(modules), 2))
        inputs[b].add(a)
    speed = sorted(
        random.choice((1, 1, 2, 2, 4, 8, 16)) * random.uniform(2000, 3300) for _ in range(kinds)
    )
    price = sorted(s * random.uniform(0.8, 1.2) * 1e-5 for s in speed)
    work = [random.uniform(5, 500) for _ in range(modules)]
    components: Content = {"w0": {"spout": True, "rate": 1000}}
    for v in range(1, modules):
        components[f"w{v}"] = {
            "inputs": {f"w{u}": "shuffle" for u in sorted(inputs[v])},
            "join": "zip",
        }
    profile = {
        f"w{v}": {
            f"vt{t}": {"cpu_ms": round(1000 * work[v] / speed[t - 1], 6)}
            for t in range(1, kinds + 1)
        }
        for v in range(modules)
    }
    catalog = {
        f"vt{t}": {
            "price": round(price[t - 1], 6),
            "available": modules,
            "cpu": 100,
            "memory_mb": 2048 * t,
        }
        for t in range(1, kinds + 1)
    }
    topology = {"name": f"cao-{modules}-{seed}", "components": components}
    return {
        "format": FORMAT,
        "topology": topology,
        "profile": profile,
        "catalog": catalog,
        "machine_per_task": True,
    }


def cao_budgets(document: Content) -> list[float]:
    """Six levels up to 1.1 times what the workflow costs on the dearest type of machine.

    They divide the way from the same on the cheapest type into equal steps.
    """
    prices = [machine["price"] for machine in document["catalog"].values()]
    modules = len(document["topology"]["components"])
    low, high = 1.1 * modules * min(prices), 1.1 * modules * max(prices)
    return [low + level * (high - low) / CAO_LEVELS for level in range(1, CAO_LEVELS + 1)]


def random_topology(components: int, *, kinds: int = 5, seed: int = 0) -> Content:
    """A random topology without cycles, with its profile and catalog."""
    random = Random(f"topology {components} {kinds} {seed}")
    spouts = max(1, components // 12)
    nodes: Content = {
        f"c{i}": {"spout": True, "rate": round(random.uniform(500, 2000))} for i in range(spouts)
    }
    for i in range(spouts, components):
        sources = sorted(random.sample(range(i), min(i, random.choice((1, 1, 1, 2, 2, 3)))))
        nodes[f"c{i}"] = {
            "inputs": {f"c{j}": random.choice(("shuffle", "shuffle", "fields")) for j in sources},
            # Below 1 where several streams meet, so that rates do not grow with depth.
            "selectivity": round(random.uniform(0.3, 1.2) / len(sources), 3),
        }
    for spec in nodes.values():
        spec |= {
            "bytes": random.choice((50, 100, 200)),
            "memory_mb": random.choice((64, 128, 256, 512)),
        }
    catalog = random_catalog(kinds, seed=seed)
    speed = {kind: random.uniform(0.8, 1.3) for kind in catalog}
    profile = {
        name: {
            kind: {
                "cpu_ms": round(base * random.uniform(0.9, 1.1) / speed[kind], 6),
                "cpu_fixed": random.choice((0.5, 1.0, 2.0)),
            }
            for kind in catalog
        }
        for name in nodes
        for base in (random.choice((0.02, 0.05, 0.1, 0.3, 0.6, 1.0)),)
    }
    topology = {"name": f"random-{components}-{seed}", "components": nodes}
    return {"format": FORMAT, "topology": topology, "profile": profile, "catalog": catalog}


def random_catalog(kinds: int = 5, *, seed: int = 0) -> Content:
    """Machine types of one to sixteen cores, priced by the core with some spread."""
    random = Random(f"catalog {kinds} {seed}")
    cores = sorted(random.choice((1, 2, 4, 8, 16)) for _ in range(kinds))
    return {
        f"k{i}": {
            "price": round(0.05 * core * random.uniform(0.85, 1.15), 4),
            "available": random.choice((8, 20, 60, 200)),
            "cpu": 100 * core,
            "memory_mb": 4096 * core,
            "slots": 4,
            "bandwidth_mbps": 1000 * (1 + core // 4),
        }
        for i, core in enumerate(cores, 1)
    }


def random_cluster(nodes: int, *, kinds: int = 4, seed: int = 0) -> Content:
    """A cluster of several types of machines in a few racks."""
    random = Random(f"cluster {nodes} {kinds} {seed}")
    types = [
        {
            "type": f"k{i}",
            "cpu": 100 * random.choice((1, 2, 4, 8, 16)),
            "slots": random.choice((2, 4)),
        }
        for i in range(1, kinds + 1)
    ]
    return {
        "cluster": {
            "nodes": {
                f"n{n}": {
                    **(kind := random.choice(types)),
                    "memory_mb": 40 * int(kind["cpu"]),
                    "rack": f"r{n % max(1, nodes // 16)}",
                    "bandwidth_mbps": random.choice((1000, 10_000)),
                }
                for n in range(1, nodes + 1)
            }
        }
    }
