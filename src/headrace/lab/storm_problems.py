"""Random Storm clusters for the referee: what Storm's schedulers know, and nothing else."""

from __future__ import annotations

from random import Random
from typing import Any

from headrace.model.document import FORMAT

Content = dict[str, Any]
NAMES = ("words", "parse", "Split", "count", "join", "rank", "store", "alert", "b2", "b10")


def draw_storm_cluster(seed: int) -> Content:
    """Racks of unlike nodes, some in use, and one to four topologies that fit on them.

    With room to spare: where first fit fails, Storm 2.3 tries other places for up to 10,000 steps,
    and ours refuses.
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
