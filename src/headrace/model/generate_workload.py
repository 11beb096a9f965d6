"""Random workloads for sizing, with all that makes counts hard to choose.

Cycles, streams copied to every task, ticks, fixed costs, nodes of several cores or of a share of
one, pins, separations, memory, bandwidth, limits on tasks, joins, divided streams, measured
threads. The same seed gives the same document.
"""

from __future__ import annotations

from random import Random
from typing import Any

from headrace.model.document import FORMAT

Content = dict[str, Any]

FEW_NODES, MANY_NODES = (1, 2, 2, 3, 3), (4, 5, 6, 8, 12, 20)
CORES = (100, 100, 100, 150, 200, 400, 400, 800)  # points of a node
LOOP = 0.6  # most that one loop returns of a tuple, with one task of each component


def random_workload(seed: int | str) -> Content:
    """A topology, its profile and a cluster.

    Two of three are so small that an exhaustive search can finish.
    """
    random = Random(f"workload {seed}")
    small = random.random() < 2 / 3
    components = random_components(random, random.choice((1, 2, 2, 3) if small else (3, 4, 6, 9)))
    streams = add_ticks(random, components)
    kinds = [f"k{i}" for i in range(1, random.choice((1, 2, 2, 3)) + 1)]
    nodes = random_nodes(random, kinds, random.choice(FEW_NODES if small else MANY_NODES))
    add_limits(random, components, nodes)
    add_bandwidth(Random(f"bandwidth {seed}"), components, nodes)
    topology = {
        "name": f"random-{seed}",
        "fanout": random.choice(("copy", "copy", "copy", "divide", "tasks")),
        "components": components,
    }
    document: Content = {
        "format": FORMAT,
        "topology": topology,
        "profile": random_profile(random, components, kinds),
        "cluster": {"nodes": nodes},
    }
    return document | ({"streams": streams} if streams else {})


def random_components(random: Random, bolts: int) -> Content:
    """One or two spouts, and bolts that hear one or two earlier ones; some loops back."""
    spouts = random.choice((1, 1, 1, 2))
    components: Content = {
        f"s{i}": {"spout": True, "rate": random.choice((1, 2, 5, 10))} for i in range(spouts)
    }
    for i in range(bolts):
        earlier = list(components)
        sources = random.sample(earlier, min(len(earlier), random.choice((1, 1, 1, 2))))
        if i == 0:
            sources = earlier  # every spout is heard
        components[f"b{i}"] = {
            "inputs": {name: random_grouping(random) for name in sources},
            "selectivity": round(random.choice((1.0, random.uniform(0.1, 3.0))), 3),
        }
        if len(sources) > 1 and random.random() < 0.2:
            components[f"b{i}"]["join"] = "zip"
    if random.random() < 0.3:
        add_loop(random, components, bolts)
    return components


def random_grouping(random: Random) -> str:
    """Mostly shuffle; sometimes every task hears everything, or one hears all."""
    return random.choice(("shuffle",) * 6 + ("fields",) * 2 + ("all",) * 2 + ("global",))


def add_loop(random: Random, components: Content, bolts: int) -> None:
    """Let an earlier bolt, or the same one, hear a later one; what comes back shrinks."""
    late = random.randrange(bolts)
    early = random.randrange(late + 1)
    target = components[f"b{early}"]
    if target.get("join") == "zip" or f"b{late}" in target["inputs"]:
        return
    target["inputs"][f"b{late}"] = random.choice(("shuffle", "shuffle", "shuffle", "all"))
    for i in range(early, late + 1):
        spec = components[f"b{i}"]
        if spec.pop("join", None) == "zip":
            first = next(iter(spec["inputs"].items()))
            spec["inputs"] = dict((first, (f"b{late}", "shuffle")))
        # Several ways may lead around the loop, so all on it shrink what they are given.
        spec["selectivity"] = round(random.uniform(0.05, LOOP) / (1 + late - early), 3)


def add_ticks(random: Random, components: Content) -> list[Content]:
    """Signs that go to every task: from a clock, or beside a bolt's own output; as streams."""
    bolts = [name for name in components if not name.startswith("s")]
    if random.random() < 0.2:
        components["clock"] = {"spout": True, "rate": random.choice((0.01, 0.1, 1))}
        components[random.choice(bolts)]["inputs"]["clock"] = "all"
    streams: list[Content] = []
    if random.random() < 0.2 and len(bolts) > 1:
        source, target = bolts[0], bolts[-1]
        if components[target].get("join") != "zip":
            own = components[target]["inputs"].get(source, "shuffle")
            components[target]["inputs"][source] = [own, {"stream": "tick", "grouping": "all"}]
            tick = {"from": source, "to": target, "stream": "tick"}
            streams.append(tick | {"selectivity": random.choice((0.001, 0.01, 0.1))})
    return streams


def random_nodes(random: Random, kinds: list[str], count: int) -> Content:
    """Nodes of several cores, of one, or of what others leave of one."""
    cpu = {kind: random.choice(CORES) for kind in kinds}
    nodes: Content = {}
    for i in range(1, count + 1):
        kind = random.choice(kinds)
        nodes[f"n{i}"] = {"type": kind, "cpu": cpu[kind]}
        if random.random() < 0.1:
            nodes[f"n{i}"]["taken"] = {"cpu": random.choice((20, 55))}
    return nodes


def random_profile(random: Random, components: Content, kinds: list[str]) -> Content:
    """Costs per tuple over two orders of magnitude; fixed costs in half of the workloads."""
    fixed = random.choice((0.0, 0.0, 1.0, 8.0))
    speed = {kind: random.uniform(0.5, 1.5) for kind in kinds}
    profile: Content = {}
    for name, spec in components.items():
        if spec.get("spout") and random.random() < 0.6:
            continue  # a spout without a profile costs nothing
        base = random.choice((0.2, 1, 3, 10, 20)) * random.uniform(0.7, 1.4)
        points = thread_points(random, base) if random.random() < 0.5 else {}
        profile[name] = {
            kind: {
                "cpu_ms": round(base / speed[kind] * random.uniform(0.8, 1.25), 4),
                "cpu_fixed": round(fixed * random.uniform(0.2, 1.0), 3),
                **points,
            }
            for kind in kinds
        }
    return profile


def thread_points(random: Random, cpu_ms: float) -> Content:
    """What 1, 2 and 4 threads reach in a slot, the same on all kinds of machines (LSA, MBA)."""
    rate = round(1000 / cpu_ms, 3)
    gain = random.uniform(1.0, 1.9)
    return {
        "threads": {
            threads: {"rate": round(rate * gain**doublings, 3), "cpu": 90, "memory": 10}
            for doublings, threads in enumerate((1, 2, 4))
        }
    }


def add_limits(random: Random, components: Content, nodes: Content) -> None:
    """Limits on tasks, memory, pins and separations, each in some of the workloads."""
    bolts = [spec for spec in components.values() if not spec.get("spout")]
    if random.random() < 0.15:
        random.choice(bolts)["max_tasks"] = random.choice((1, 2, 3, 5))
    if random.random() < 0.1:
        random.choice(bolts)["apart"] = True
    if random.random() < 0.1:
        random.choice(bolts)["nodes"] = random.sample(list(nodes), random.randint(1, len(nodes)))
    if random.random() < 0.15:
        for spec in bolts:
            spec["memory_mb"] = random.choice((100, 200, 400))
        for node in nodes.values():
            node["memory_mb"] = random.choice((1000, 2000, 4000))


def add_bandwidth(random: Random, components: Content, nodes: Content) -> None:
    """In some of the workloads tuples have bytes, and links that can be full before nodes are."""
    if random.random() < 0.1:
        for spec in components.values():
            spec["bytes"] = random.choice((50, 500))
        for node in nodes.values():
            node["bandwidth_mbps"] = random.choice((0.05, 1, 100))
