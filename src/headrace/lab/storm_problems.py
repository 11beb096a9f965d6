"""Random Storm clusters for the referee: what Storm's schedulers know, and nothing else."""

from __future__ import annotations

from random import Random
from typing import Any

from headrace.model.document import FORMAT

Content = dict[str, Any]
NAMES = ("words", "parse", "Split", "count", "join", "rank", "store", "alert", "b2", "b10")


def draw_storm_cluster(seed: int) -> Content:
    """Racks of unlike nodes, some in use, and one to four topologies that fit on them.

    With room to spare: for first fits that fail there are tight ones.
    """
    random = Random(f"storm cluster {seed}")
    topologies = [_topology(random, f"t{g}") for g in range(random.randint(1, 4))]
    cpu, memory_mb = (_total(topologies, key) for key in ("cpu", "memory_mb"))
    nodes: Content = {}
    room = random.uniform(3.0, 6.0)
    racks = random.randint(1, 4)
    count = random.randint(4, 14)
    for n in range(count):
        size = random.choice((0.5, 1.0, 1.0, 2.0)) * room / count
        slots = random.randint(8, 14)
        node: Content = {
            "rack": f"r{random.randrange(racks)}",
            "cpu": max(100, round(cpu * size / 50) * 50),
            "memory_mb": max(1024, round(memory_mb * size / 256) * 256),
            "slots": slots,
        }
        if random.random() < 0.25:
            node["taken"] = {
                "slots": [random.randrange(slots)],
                "cpu": random.choice((10, 35, 100)),
                "memory_mb": random.choice((128, 500)),
            }
        nodes[f"n{n}"] = node
    return {"format": FORMAT, "topologies": topologies, "cluster": {"nodes": nodes}}


def draw_tight_storm_cluster(seed: int) -> Content:
    """Few nodes that tasks dealt out at random fill, or nearly: other places for them are rare.

    First fit alone often fails: Storm 2.3 then tries other places for up to 10,000 states.
    """
    random = Random(f"tight storm cluster {seed}")
    topologies = [_tight_topology(random, f"t{g}") for g in range(random.choice((1, 1, 2)))]
    components = [c for topology in topologies for c in topology["components"].values()]
    racks = random.randint(1, 2)
    count = random.randint(2, 4)
    dealt: list[list[Content]] = [[] for _ in range(count)]
    for component in components:
        for _ in range(component["tasks"]):
            random.choice(dealt).append(component)
    spare = random.choice((0.0, 0.2, 0.4))
    nodes: Content = {
        f"n{n}": {"rack": f"r{random.randrange(racks)}", **_filled_node(random, tasks, spare)}
        for n, tasks in enumerate(dealt)
    }
    return {"format": FORMAT, "topologies": topologies, "cluster": {"nodes": nodes}}


def _filled_node(random: Random, tasks: list[Content], spare: float) -> Content:
    def room(amounts: list[float], step: int) -> int:
        return round(sum(amounts) * (1 + random.uniform(0, spare)) / step) * step + step

    node: Content = {
        "cpu": room([task["cpu"] for task in tasks], 10),
        "memory_mb": room([task["memory_mb"] for task in tasks], 50),
        "resources": {"licences": sum(task["resources"]["licences"] for task in tasks)},
        "slots": random.randint(2, 4),
    }
    if random.random() < 0.3:
        node["taken"] = {"slots": [random.randrange(node["slots"])]}
    return node


def _tight_topology(random: Random, name: str) -> Content:
    names = random.sample(NAMES, random.randint(2, 4))
    components: Content = {}
    for i, own in enumerate(names):
        component: Content = {
            "tasks": random.randint(1, 3),
            "cpu": random.choice((10, 20, 50, 90)),
            "memory_mb": random.choice((50, 150, 200, 350, 500)),
            "resources": {"licences": random.choice((0, 0, 1, 2))},
        }
        if i == 0:
            component |= {"spout": True, "rate": 10}
        else:
            component["inputs"] = {random.choice(names[:i]): "shuffle"}
        components[own] = component
    if random.random() < 0.5:
        components["__acker"] = {
            "tasks": random.randint(1, 3),
            "cpu": random.choice((5, 10, 30)),
            "memory_mb": random.choice((50, 100, 200)),
            "resources": {"licences": 0},
        }
    return {
        "name": name,
        "worker_max_heap_mb": random.choice((600, 800, 1200)),
        "components": components,
    }


def _topology(random: Random, name: str) -> Content:
    names = random.sample(NAMES, random.randint(2, 7))
    components: Content = {}
    for i, own in enumerate(names):
        component: Content = {
            "tasks": random.choice((1, 1, 2, 3, 4, 6, 9, 13)),
            "cpu": random.choice((5, 10, 15, 40, 70)),
            "memory_mb": random.choice((64, 128, 200, 384)),
        }
        sources = random.sample(names[:i], min(i, random.randint(1, 2)))
        if not sources or random.random() < 0.1:
            component |= {"spout": True, "rate": random.choice((10, 100))}
        else:
            # One in ten feeds itself too: then Storm takes it twice in a round.
            sources += [own] * (random.random() < 0.1)
            component["inputs"] = dict.fromkeys(sources, "shuffle")
            component["selectivity"] = 0.5
        components[own] = component
    if random.random() < 0.5:
        components["__acker"] = {
            "tasks": random.randint(1, 6),
            "cpu": random.choice((5, 10)),
            "memory_mb": random.choice((64, 128)),
        }
    return {
        "name": name,
        "workers": random.randint(1, 8),
        "priority": random.choice((0, 0, 1, 5)),
        "worker_max_heap_mb": random.choice((512, 768, 1500)),
        "components": components,
    }


def _total(topologies: list[Content], key: str) -> float:
    components = [c for topology in topologies for c in topology["components"].values()]
    return sum(component["tasks"] * component[key] for component in components)
