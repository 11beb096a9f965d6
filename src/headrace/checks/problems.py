"""Small random problems to try a scheduler on; together they use every part of the format.

    random = Random(7)
    problem = problem_of(draw_document(random))
    plan = my_scheduler(problem)

`draw_document` draws the sections of a file, which the problem is built from as from any file: its
topologies may have cycles, pins and measured traffic, and may not fit their cluster.
`draw_roomy_document` draws problems that no scheduler has a reason to refuse. `draw_assignment`
draws a plan, good or bad. The same seed gives the same problem.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from headrace.errors import Infeasible
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.read import validated

Content = dict[str, Any]

GROUPINGS = ("shuffle", "none", "custom", "fields", "global", "all", "direct", "local-or-shuffle")
# Not in alphabetical order: the order of the file is one thing, Storm's order of names another.
NAMES = ("source", "feed", "parse", "split", "join", "count", "alert", "store", "echo", "batch")


def problem_of(content: Content) -> Problem:
    """The problem that a document's sections describe."""
    return build(validated({"format": FORMAT, **content}, {}))


def draw_document(
    random: Random, *, most_tasks: int = 12, most_nodes: int = 5, cycle: bool | None = None
) -> Content:
    """Sections of a random file: topologies or a bare task graph, and a cluster.

    The cluster may well be too small. `cycle` says whether topologies have one; None: some do.
    """
    content: Content = {"cluster": _cluster(random, random.randint(1, most_nodes))}
    nodes = content["cluster"]["nodes"]
    if cycle is None and random.random() < 0.2:
        return (
            content
            | _bare_graph(random, list(nodes), random.randint(1, most_tasks))
            | _judge_options(random)
        )
    several = random.random() < 0.3
    topologies = [
        _topology(random, f"t{g}", list(nodes), most_tasks // (2 if several else 1), cycle)
        for g in range(2 if several else 1)
    ]
    components = {
        (f"{topology['name']}/{name}" if several else name): spec
        for topology in topologies
        for name, spec in topology["components"].items()
    }
    content |= {"topologies": topologies} if several else {"topology": topologies[0]}
    content |= _profile(random, list(components), sorted({node["type"] for node in nodes.values()}))
    content |= _measured(
        random, components, loops=any(_has_loop(topology) for topology in topologies)
    )
    if random.random() < 0.5:
        priced = [machine for machine in ("slow", "fast") if random.random() < 0.8]
        content["catalog"] = {
            machine: {"price": random.choice((0.5, 1, 2.25))} for machine in priced
        }
    return content | _judge_options(random)


def draw_roomy_document(
    random: Random, *, tasks: int = 9, nodes: int = 4, topologies: int = 1
) -> Content:
    """Topologies without cycles on a cluster where each node alone has room for all tasks."""
    drawn = [_plain_topology(random, f"t{g}", tasks // topologies) for g in range(topologies)]
    machines = {
        f"n{n}": {
            "type": random.choice(("slow", "fast")),
            "rack": random.choice(("r1", "r2")),
            "slots": 4 * topologies,
            "cpu": 6400,
            "memory_mb": 65536,
            "bandwidth_mbps": 10_000,
            "cores": 64,
            "ghz": random.choice((2.0, 3.0)),
            "flops_per_cycle": 4,
        }
        for n in range(1, nodes + 1)
    }
    section: Content = {"topologies": drawn} if topologies > 1 else {"topology": drawn[0]}
    return section | {"cluster": {"nodes": machines}}


def draw_assignment(random: Random, problem: Problem, *, sound: bool = False) -> Assignment:
    """A random plan, which may refuse a topology; a `sound` one keeps to free slots.

    In others, slots may not exist, be taken, or be shared by topologies.
    """
    node = np.empty(problem.task_count, dtype=np.int64)
    worker = np.empty(problem.task_count, dtype=np.int64)
    usable = random.sample(range(len(problem.nodes)), random.randint(1, len(problem.nodes)))
    sound = sound or random.random() < 0.5
    for task in range(problem.task_count):
        node[task] = random.choice(usable)
        free = np.flatnonzero(~problem.slot_taken[node[task]]).tolist()
        anything = list(range(int(problem.slots[node[task]]) + 1))
        worker[task] = random.choice(
            free if free and (sound or random.random() < 0.7) else anything
        )
    if len(problem.topologies) == 1 or random.random() < 0.7:
        return Assignment(node, worker)
    refused = random.randrange(len(problem.topologies))
    gone = problem.topology[problem.component_of] == refused
    node[gone], worker[gone] = UNPLACED, UNPLACED
    return Assignment(
        node, worker, {problem.topologies[refused]: Infeasible("does not fit", resource="cpu")}
    )


def _some(random: Random, likely: float, **values: Any) -> Content:
    """Some of the values: each with this likelihood."""
    return {key: value for key, value in values.items() if random.random() < likely}


def _number(random: Random, most: float) -> float:
    return round(random.uniform(0, most), random.choice((0, 1, 2)))


def _cluster(random: Random, count: int) -> Content:
    nodes: Content = {}
    known = random.random() < 0.8  # CPU of all nodes or of some: figures over all nodes need all
    for name in random.sample([f"n{n}" for n in range(1, 10)], count):
        slots = random.choice((1, 1, 2, 3, 4))
        cpu = random.choice((100, 250, 400, 800))
        node: Content = {"type": random.choice(("slow", "fast", "fast")), "slots": slots}
        node |= _some(random, 1.0 if known else 0.5, cpu=cpu)
        node |= _some(
            random,
            0.7,
            memory_mb=random.choice((1024, 4096)),
            rack=random.choice(("r1", "r2", "r3")),
        )
        node |= _some(
            random,
            0.5,
            bandwidth_mbps=random.choice((0.01, 1, 100)),
            resources={"gpu": random.choice((0, 1, 4))},
        )
        node |= _some(
            random, 0.3, sockets=2, cores=random.choice((2, 8)), ghz=2.5, flops_per_cycle=8
        )
        taken = _some(random, 0.2, cpu=random.choice((30, 90)), memory_mb=512, resources={"gpu": 1})
        taken |= _some(
            random, 0.3, slots=random.sample(range(slots), random.randint(slots // 2, slots - 1))
        )
        nodes[name] = node | ({"taken": taken} if taken else {})
    return {"nodes": nodes}


def _demands(random: Random) -> Content:
    demands = _some(random, 0.7, cpu=_number(random, 90), memory_mb=random.choice((0, 128, 700)))
    return demands | _some(
        random, 0.2, resources={"gpu": random.choice((0.5, 1))}, state_mb=random.choice((1, 64))
    )


def _bare_graph(random: Random, nodes: list[str], count: int) -> Content:
    names = random.sample([f"{letter}{digit}" for letter in "abcdef" for digit in range(9)], count)
    tasks = {
        name: _demands(random)
        | _some(random, 0.3, component=random.choice("xyz"), nodes=_pin(random, nodes))
        for name in names
    }
    traffic = [
        [a, b, _number(random, 50), *([_number(random, 9e4)] if random.random() < 0.8 else [])]
        for a in names
        for b in names
        if random.random() < 0.3
    ]
    topology = _some(
        random, 0.5, workers=random.randint(1, 6), worker_max_heap_mb=random.choice((500, 2000))
    )
    return {"tasks": tasks, "traffic": traffic, "topology": topology}


def _pin(random: Random, nodes: list[str]) -> list[str]:
    return random.sample(nodes, random.randint(1, len(nodes)))


def _topology(
    random: Random, name: str, nodes: list[str], most_tasks: int, cycle: bool | None
) -> Content:
    topology = _plain_topology(random, name, most_tasks)
    components = topology["components"]
    for spec in components.values():
        spec |= _some(random, 0.1, nodes=_pin(random, nodes), apart=True)
        for inputs in spec.get("inputs", {}).values():
            for entry in inputs:
                entry["grouping"] = random.choice(GROUPINGS)
    topology |= _some(
        random,
        0.3,
        worker_max_heap_mb=random.choice((500, 2000)),
        isolated_machines=1,
        fanout="divide",
    )
    topology |= _some(random, 0.6, workers=random.randint(1, 6), priority=random.randint(-2, 2))
    bolts = [name for name, spec in components.items() if "spout" not in spec]
    if bolts and (random.random() < 0.2 if cycle is None else cycle):
        _close_loop(random, components, bolts)
    elif random.random() < 0.2:
        for bolt in bolts:
            components[bolt] |= _some(random, 0.5, join="zip")
    return topology


def _plain_topology(random: Random, name: str, most_tasks: int) -> Content:
    """A directed acyclic graph, perhaps in several pieces, of shuffled streams."""
    chosen = random.sample(NAMES, random.randint(1, min(5, most_tasks)))
    components: Content = {}
    for position, component in enumerate(chosen):
        spec: Content = {"tasks": random.randint(1, max(1, most_tasks // len(chosen)))} | _demands(
            random
        )
        if position == 0 or random.random() < 0.2:
            spec |= {"spout": True} | _some(random, 0.9, rate=_number(random, 200))
        else:
            sources = [source for source in chosen[:position] if random.random() < 0.6]
            spec["inputs"] = {source: _streams(random) for source in sources}
            spec |= _some(random, 0.6, selectivity=random.choice((0, 0.5, 2, 3.5)))
        components[component] = spec | _some(random, 0.7, bytes=random.choice((0, 8, 100, 2000)))
    topology = {
        "name": name,
        "components": dict(random.sample(sorted(components.items()), len(components))),
    }
    return topology | _some(random, 0.5, bound_by=random.choice(("cpu", "memory", "network", "io")))


def _streams(random: Random) -> list[Content]:
    names = ["default"] if random.random() < 0.8 else ["default", "late"]
    return [{"stream": name, "grouping": "shuffle"} for name in names]


def _close_loop(random: Random, components: Content, bolts: list[str]) -> None:
    """Let a bolt feed itself or an earlier one, and limit what bolts emit, so that loops end."""
    for _ in range(random.randint(1, 2)):
        position = random.randrange(len(bolts))
        source, target = bolts[position], bolts[random.randint(0, position)]
        components[target]["inputs"][source] = [
            {"stream": "default", "grouping": random.choice(GROUPINGS)}
        ]
    for source in bolts:
        # Where a tuple makes less than one new tuple, copies to all tasks counted, loops end.
        copies = sum(
            spec["tasks"] if entry["grouping"] == "all" else 1
            for spec in components.values()
            for entry in spec.get("inputs", {}).get(source, [])
        )
        components[source]["selectivity"] = round(0.8 / max(1, copies), 4)


def _has_loop(topology: Content) -> bool:
    reached = {name: set(spec.get("inputs", {})) for name, spec in topology["components"].items()}
    for _ in reached:
        for sources in reached.values():
            sources |= {further for source in sources for further in reached[source]}
    return any(name in sources for name, sources in reached.items())


def _profile(random: Random, components: list[str], types: list[str]) -> Content:
    if random.random() < 0.4:
        return {}
    # Few kinds, so that two components may be of one kind.
    kinds = [{machine: random.choice((0.1, 0.5, 2.0, 7.5)) for machine in types} for _ in range(2)]
    profile: Content = {}
    for component in components:
        if random.random() < 0.7:
            kind = random.choice(kinds)
            fixed = _number(random, 20)
            profile[component] = {
                machine: {"cpu_ms": ms} | _some(random, 0.5, cpu_fixed=fixed)
                for machine, ms in kind.items()
            }
            if random.random() < 0.3:
                profile[component] = {
                    "*": {"cpu_ms": random.choice((0, 1.5))} | _some(random, 0.7, cpu_fixed=fixed)
                }
    return {"profile": profile}


def _measured(random: Random, components: Content, *, loops: bool) -> Content:
    """Measurements of some streams, and task by task between some pairs of components."""
    streams: list[Content] = []
    traffic: list[list[Any]] = []
    zips = any(spec.get("join") == "zip" for spec in components.values())
    for target, spec in components.items():
        prefix = target[: target.rfind("/") + 1]
        for source, entries in spec.get("inputs", {}).items():
            row = {"from": prefix + source, "to": target} | _some(
                random, 0.3, stream=entries[0]["stream"]
            )
            row |= _some(
                random,
                0.3,
                bytes=random.choice((16, 500)),
                shares=[random.choice((0.1, 1, 3)) for _ in range(spec["tasks"])],
            )
            if not loops:
                row |= _some(
                    random,
                    0.15,
                    tuples_per_s=_number(random, 150),
                    selectivity=random.choice((0.5, 1.5)),
                )
            if random.random() < 0.3:
                streams.append(row)
            if random.random() < 0.15 and not zips:
                traffic += _pairs(
                    random,
                    prefix + source,
                    components[prefix + source]["tasks"],
                    target,
                    spec["tasks"],
                )
    return ({"streams": streams} if streams else {}) | ({"traffic": traffic} if traffic else {})


def _pairs(random: Random, source: str, sources: int, target: str, targets: int) -> list[list[Any]]:
    return [
        [
            f"{source}.{i}",
            f"{target}.{j}",
            _number(random, 40),
            *([_number(random, 9e4)] if random.random() < 0.8 else []),
        ]
        for i in range(1, sources + 1)
        for j in range(1, targets + 1)
        if random.random() < 0.7
    ]


def _judge_options(random: Random) -> Content:
    options = _some(
        random,
        0.3,
        send_worker_cpu_ms=0.4,
        send_node_cpu_ms=1.3,
        batch_interval_s=2.5,
        batch_overhead_s=0.25,
    )
    if "send_worker_cpu_ms" in options:
        options["receive_node_cpu_ms"] = 0.7
    return {"options": {"judge": options}} if options else {}
