"""The judge's twin: every figure once more, task by task, from the file and the written definitions alone.

Slow and plain on purpose. It shares no code with the judge, the model or each other's shortcuts: it
reads the sections of a document, spells out every pair of tasks, and adds up. `factor` scales all
spout rates, and what was measured along with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Content = dict[str, Any]
Placed = dict[str, tuple[str, int]]  # task -> node, slot; tasks of a refused topology are absent


@dataclass(frozen=True)
class Edge:
    """A stream between two components as the file and its measurements have it."""

    source: str
    target: str
    grouping: str
    gain: float
    bytes: float | None
    measured: float | None
    shares: list[float] | None


class Twin:
    """One document, one plan, one factor."""

    def __init__(self, content: Content, placed: Placed, factor: float = 1.0) -> None:
        self.content, self.placed, self.factor = content, placed, factor
        self.nodes: Content = content["cluster"]["nodes"]
        self.options: Content = content.get("options", {}).get("judge", {})
        self.components: dict[str, Content] = {}
        self.topology_of: dict[str, Content] = {}
        for topology in content.get("topologies", [content.get("topology", {})]):
            prefix = topology["name"] + "/" if "topologies" in content else ""
            for name, spec in content.get("tasks", topology.get("components", {})).items():
                self.components[prefix + name] = spec
                self.topology_of[prefix + name] = topology
        self.tasks = {c: self._task_names(c) for c in self.components}
        self.component_of = {task: c for c, tasks in self.tasks.items() for task in tasks}
        self.measured_pairs = [
            (row[0], row[1], row[2] * factor, row[3] * factor if len(row) == 4 else None)
            for row in content.get("traffic", [])
        ]
        self.covered = {
            (self.component_of[a], self.component_of[b]) for a, b, _, _ in self.measured_pairs
        }
        self.edges = [edge for c in self.components for edge in self._edges_into(c)]
        self.rate = self._rates()
        self.share = self._shares()
        self.pairs = [pair for pair in self._all_pairs() if pair[0] in placed and pair[1] in placed]
        self.used_nodes = [
            node for node in self.nodes if any(where == node for where, _ in placed.values())
        ]
        self.cpu = {node: self._fixed_cpu(node) + self._growing_cpu(node) for node in self.nodes}

    # What the file says

    def _task_names(self, component: str) -> list[str]:
        if "tasks" in self.content:
            return [component]
        return [
            f"{component}.{i}" for i in range(1, self.components[component].get("tasks", 1) + 1)
        ]

    def _edges_into(self, target: str) -> list[Edge]:
        spec, prefix = self.components[target], target[: target.rfind("/") + 1]
        edges: list[Edge] = []
        for source, entries in spec.get("inputs", {}).items():
            giver = self.components[prefix + source]
            subscribers = [
                c
                for c, s in self.components.items()
                if c.startswith(prefix) and source in s.get("inputs", {})
            ]
            gain = 1.0 if giver.get("spout") else giver.get("selectivity", 1.0)
            if self.topology_of[target].get("fanout") == "divide":
                gain /= len(subscribers)
            for entry in entries:
                found: Content = {
                    "bytes": giver.get("bytes"),
                    "selectivity": gain,
                    "tuples_per_s": None,
                    "shares": None,
                }
                for row in self.content.get("streams", []):
                    if (row["from"], row["to"]) == (prefix + source, target) and row.get(
                        "stream", entry["stream"]
                    ) == entry["stream"]:
                        found |= {key: row[key] for key in found if key in row}
                shares = found["shares"] and [
                    share / sum(found["shares"]) for share in found["shares"]
                ]
                measured = (
                    None if found["tuples_per_s"] is None else found["tuples_per_s"] * self.factor
                )
                edges.append(
                    Edge(
                        prefix + source,
                        target,
                        entry["grouping"],
                        found["selectivity"],
                        found["bytes"],
                        measured,
                        shares,
                    )
                )
        return edges

    # What flows

    def _emitted(self, edge: Edge, rate: dict[str, float]) -> float:
        return edge.measured if edge.measured is not None else rate[edge.source] * edge.gain

    def _copies(self, edge: Edge) -> list[float]:
        """How many of one emitted tuple each task of the target gets."""
        q = len(self.tasks[edge.target])
        if edge.grouping == "all":
            return [1.0] * q
        if edge.shares:
            return edge.shares
        if edge.grouping == "global":
            return [1.0] + [0.0] * (q - 1)
        return [1.0 / q] * q

    def _rates(self) -> dict[str, float]:
        """Let tuples flow round and round until nothing changes."""
        rate = dict.fromkeys(self.components, 0.0)
        for _ in range(1000):
            after: dict[str, float] = {}
            for c, spec in self.components.items():
                inputs = [
                    self._emitted(e, rate) * sum(self._copies(e))
                    for e in self.edges
                    if e.target == c and (e.source, c) not in self.covered
                ]
                for source in {
                    e.source for e in self.edges if e.target == c and (e.source, c) in self.covered
                }:
                    inputs.append(
                        sum(
                            t
                            for a, b, t, _ in self.measured_pairs
                            if (self.component_of[a], self.component_of[b]) == (source, c)
                        )
                    )
                taken_in = min(inputs, default=0.0) if spec.get("join") == "zip" else sum(inputs)
                after[c] = spec.get("rate", 1.0) * self.factor if spec.get("spout") else taken_in
            if after == rate:
                break
            rate = after
        return rate

    def _shares(self) -> dict[str, float]:
        """The part of its component's tuples that a task handles: what it receives of what all of them receive."""
        received = dict.fromkeys(self.component_of, 0.0)
        for edge in self.edges:
            if (edge.source, edge.target) not in self.covered:
                for task, copies in zip(self.tasks[edge.target], self._copies(edge), strict=True):
                    received[task] += self._emitted(edge, self.rate) * copies
        for _, target, tuples, _ in self.measured_pairs:
            received[target] += tuples
        share: dict[str, float] = {}
        for tasks in self.tasks.values():
            whole = sum(received[task] for task in tasks)
            share |= {
                task: received[task] / whole if whole > 0 else 1 / len(tasks) for task in tasks
            }
        return share

    def _all_pairs(self) -> list[tuple[str, str, float, float | None]]:
        pairs = list(self.measured_pairs)
        for edge in self.edges:
            if (edge.source, edge.target) in self.covered:
                continue
            for source in self.tasks[edge.source]:
                sends = self._emitted(edge, self.rate) * self.share[source]
                gets = dict(zip(self.tasks[edge.target], self._copies(edge), strict=True))
                beside = [
                    t
                    for t in gets
                    if t in self.placed and self.placed[t] == self.placed.get(source)
                ]
                if edge.grouping == "local-or-shuffle" and beside:
                    gets = {t: 1 / len(beside) for t in beside}
                for target, copies in gets.items():
                    tuples = sends * copies
                    pairs.append(
                        (
                            source,
                            target,
                            tuples,
                            None if edge.bytes is None else tuples * edge.bytes,
                        )
                    )
        return pairs

    # Traffic

    def distance(self, a: str, b: str) -> int:
        """Same worker 0, same node 1, same rack 2, else 3."""
        if self.placed[a] == self.placed[b]:
            return 0
        here, there = self.placed[a][0], self.placed[b][0]
        if here == there:
            return 1
        return 2 if self.nodes[here].get("rack", "") == self.nodes[there].get("rack", "") else 3

    def traffic(self, at_least: int) -> float:
        """Tuples/s between tasks at least so far from each other."""
        return sum(tuples for a, b, tuples, _ in self.pairs if self.distance(a, b) >= at_least)

    def network_distance(self) -> float:
        return sum(tuples * self.distance(a, b) for a, b, tuples, _ in self.pairs)

    def mbps(self, node: str, way: str) -> float:
        """Mbit/s a node sends to or takes in from other nodes."""
        moved = 0.0
        for a, b, _, size in self.pairs:
            if self.distance(a, b) >= 2 and self.placed[a if way == "out" else b][0] == node:
                moved += size or 0.0
        return moved * 8 / 1e6

    def all_sized(self) -> bool:
        return all(size is not None for _, _, tuples, size in self.pairs if tuples > 0)

    # Resources

    def tasks_on(self, node: str) -> list[str]:
        return [task for task, (where, _) in self.placed.items() if where == node]

    def workers(self) -> list[tuple[str, int]]:
        return sorted(set(self.placed.values()))

    def _cost(self, task: str, node: str) -> Content | None:
        """The profile's entry for a task on a node's type; None if the component is not profiled."""
        costs = self.content.get("profile", {}).get(self.component_of[task], {})
        if not any("cpu_ms" in cost or cost.get("cpu_fixed") for cost in costs.values()):
            return None
        return costs.get(self.nodes[node].get("type", "")) or costs["*"]

    def _task_fixed(self, task: str, node: str) -> float:
        cost = self._cost(task, node)
        return cost.get("cpu_fixed", 0.0) if cost else 0.0

    def _task_growing(self, task: str, node: str) -> float:
        cost = self._cost(task, node)
        if cost is None:
            return self.components[self.component_of[task]].get("cpu", 0.0) * self.factor
        return self.rate[self.component_of[task]] * self.share[task] * cost.get("cpu_ms", 0.0) / 10

    def _fixed_cpu(self, node: str) -> float:
        return sum(self._task_fixed(task, node) for task in self.tasks_on(node))

    def _growing_cpu(self, node: str) -> float:
        sends = 0.0
        for a, b, tuples, _ in self.pairs:
            if self.placed[a][0] == node:
                price = [
                    0.0,
                    self.options.get("send_worker_cpu_ms", 0.0),
                    *[self.options.get("send_node_cpu_ms", 0.0)] * 2,
                ]
                sends += tuples * price[self.distance(a, b)] / 10
        return sends + sum(self._task_growing(task, node) for task in self.tasks_on(node))

    def use(self, node: str, resource: str) -> float:
        """What our tasks use of a resource on a node."""
        if resource == "cpu":
            return self.cpu[node]
        return sum(
            _amount(self.components[self.component_of[task]], resource, 0.0)
            for task in self.tasks_on(node)
        )

    def free(self, node: str, resource: str) -> float:
        """What others leave of a resource on a node."""
        return _amount(self.nodes[node], resource, math.inf) - _amount(
            self.nodes[node].get("taken", {}), resource, 0.0
        )

    def resources(self) -> list[str]:
        things = [
            *self.components.values(),
            *self.nodes.values(),
            *(node.get("taken", {}) for node in self.nodes.values()),
        ]
        return [
            "cpu",
            "memory_mb",
            *sorted({name for thing in things for name in thing.get("resources", {})}),
        ]

    # Rules

    def violations(self) -> list[tuple[str, str, str, float, float, str | None]]:
        """(kind, node, resource, needed, available, task) of every broken rule."""
        broken: list[tuple[str, str, str, float, float, str | None]] = []
        for node in self.nodes:
            for resource in self.resources():
                if (
                    _more(self.use(node, resource), self.free(node, resource))
                    and self.use(node, resource) > 0
                ):
                    broken.append(
                        (
                            "overload",
                            node,
                            resource,
                            self.use(node, resource),
                            self.free(node, resource),
                            None,
                        )
                    )
            for way in ("out", "in"):
                bandwidth = self.nodes[node].get("bandwidth_mbps", math.inf)
                if self.mbps(node, way) > bandwidth * (1 + 1e-9):
                    broken.append(
                        (
                            "overload",
                            node,
                            f"bandwidth {way}",
                            self.mbps(node, way),
                            bandwidth,
                            None,
                        )
                    )
        for node, slot in self.workers():
            inside = [task for task in self.placed if self.placed[task] == (node, slot)]
            slots = self.nodes[node].get("slots", 4)
            if slot >= slots:
                broken.append(("no such slot", node, "slots", slot + 1, slots, None))
            elif slot in self.nodes[node].get("taken", {}).get("slots", []):
                broken.append(("slot taken", node, "slots", 1, 0, None))
            owners = [self.topology_of[self.component_of[task]] for task in inside]
            names = {owner.get("name", "") for owner in owners}
            if len(names) > 1:
                broken.append(("slot shared", node, "slots", len(names), 1, None))
            heap = min(owner.get("worker_max_heap_mb", math.inf) for owner in owners)
            memory = sum(
                self.components[self.component_of[task]].get("memory_mb", 0.0) for task in inside
            )
            if memory > heap * (1 + 1e-9):
                broken.append(("worker heap", node, "memory_mb", memory, heap, None))
        for task, (node, _) in self.placed.items():
            if node not in self.components[self.component_of[task]].get("nodes", [node]):
                broken.append(("pinned", node, "nodes", 1, 0, task))
        for c, spec in self.components.items():
            for node in self.nodes:
                together = sum(
                    1 for task in self.tasks[c] if self.placed.get(task, ("", 0))[0] == node
                )
                if spec.get("apart") and together > 1:
                    broken.append(("apart", node, "apart", together, 1, None))
        return broken

    # Speed

    def full(self) -> list[str]:
        """The resources that would not do, of the nodes in use."""
        found = [
            f"node {node}: cpu"
            for node in self.used_nodes
            if self.cpu[node] > max(0.0, self.free(node, "cpu"))
        ]
        for way in ("out", "in"):
            found += [
                f"node {node}: bandwidth {way}"
                for node in self.used_nodes
                if self.mbps(node, way) > self.nodes[node].get("bandwidth_mbps", math.inf)
            ]
        return found

    def batch_seconds(self) -> float | None:
        """Stage after stage, each as slow as its slowest node; None if no stage takes any time."""
        interval, total = self.options.get("batch_interval_s", 1.0), 0.0
        for stage in self.stages():
            total += (
                max(
                    self._stage_cpu_s(stage, node) + self._stage_transfer_s(stage, node)
                    for node in self.nodes
                )
                * interval
            )
        return total + self.options.get("batch_overhead_s", 0.0) if total else None

    def stages(self) -> list[set[str]]:
        """Components of one topology that are equally far from its spouts by the longest way; cycles are cut where a walk in file order closes them."""
        ends = {(e.source, e.target) for e in self.edges} | self.covered
        back: set[tuple[str, str]] = set()
        seen: set[str] = set()

        def walk(c: str, path: tuple[str, ...]) -> None:
            seen.add(c)
            for target in self.components:
                if (c, target) in ends and target in (*path, c):
                    back.add((c, target))
                elif (c, target) in ends and target not in seen:
                    walk(target, (*path, c))

        for spouts in (True, False):
            for c, spec in self.components.items():
                if c not in seen and bool(spec.get("spout")) == spouts:
                    walk(c, ())
        level = {c: 0 if spec.get("spout") else 1 for c, spec in self.components.items()}
        for _ in self.components:
            for a, b in ends - back:
                level[b] = max(level[b], level[a] + 1)
        keys = {c: (self.topology_of[c].get("name"), level[c]) for c in self.components}
        return [
            {c for c in self.components if keys[c] == key} for key in dict.fromkeys(keys.values())
        ]

    def _stage_cpu_s(self, stage: set[str], node: str) -> float:
        """One task per core at a time: waves of the mean task, at least as long as the longest."""
        points = [
            self._task_fixed(t, node) + self._task_growing(t, node)
            for t in self.tasks_on(node)
            if self.component_of[t] in stage
        ]
        if not points:
            return 0.0
        free = self.free(node, "cpu")
        waves = 1 if math.isinf(free) else math.ceil(len(points) / max(1, free // 100))
        return max(waves * sum(points) / len(points), *points) / 100

    def _stage_transfer_s(self, stage: set[str], node: str) -> float:
        """The stage's input from other nodes, in and out at the same time."""
        moved = [0.0, 0.0]
        for a, b, _, size in self.pairs:
            if self.component_of[b] in stage and self.distance(a, b) >= 2:
                for end, task in enumerate((a, b)):
                    moved[end] += (size or 0.0) if self.placed[task][0] == node else 0.0
        return max(moved) * 8 / 1e6 / self.nodes[node].get("bandwidth_mbps", math.inf)

    # Figures over nodes

    def utilisation(self, node: str) -> float:
        return (self.cpu[node] + self.nodes[node].get("taken", {}).get("cpu", 0.0)) / self.nodes[
            node
        ]["cpu"]

    def balance(self) -> float | None:
        """Standard deviation of CPU utilisation over all nodes."""
        if any("cpu" not in node for node in self.nodes.values()):
            return None
        values = [self.utilisation(node) for node in self.nodes]
        mean = sum(values) / len(values)
        return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))

    def weighted_utilisation(self) -> float | None:
        """Nasiri eq. 7-8, divided by the number of kinds: a kind is a row of e, the cost of a tuple on every machine type."""
        if any("cpu" not in node for node in self.nodes.values()):
            return None
        types = sorted({node["type"] for node in self.nodes.values()})
        kinds: set[tuple[float, ...]] = set()
        for c in self.components:
            costs = self.content.get("profile", {}).get(c)
            if costs is not None:
                row = tuple(
                    (costs.get(machine) or costs["*"]).get("cpu_ms", 0.0) for machine in types
                )
                if not all(row) or self.rate[c] == 0:
                    return None
                kinds.add(row)
        if not kinds:
            return None
        overall = 0.0
        for i, machine in enumerate(types):
            x = sum((1 / e[i]) / sum(1 / e[k] for k in range(len(types))) for e in kinds) / len(
                kinds
            )
            of_type = [
                self.utilisation(node)
                for node, facts in self.nodes.items()
                if facts["type"] == machine
            ]
            overall += x * sum(of_type) / len(of_type)
        return overall

    def cost(self) -> float | None:
        """The price of every node in use."""
        catalog = self.content.get("catalog", {})
        if not self.used_nodes or any(
            self.nodes[node]["type"] not in catalog for node in self.used_nodes
        ):
            return None
        return sum(catalog[self.nodes[node]["type"]]["price"] for node in self.used_nodes)

    def processed(self) -> float:
        """Tuples/s all placed components process."""
        return sum(self.rate[c] for c, tasks in self.tasks.items() if tasks[0] in self.placed)


def max_rate(content: Content, placed: Placed) -> float | None:
    """By bisection over the same document with all rates scaled; None if nothing is full at any rate."""

    def fits(factor: float) -> bool:
        return not Twin(content, placed, factor).full()

    if not fits(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, high * 16
        if high > 1e13:
            return None
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _amount(thing: Content, resource: str, absent: float) -> float:
    found = (
        thing.get(resource)
        if resource in ("cpu", "memory_mb")
        else thing.get("resources", {}).get(resource)
    )
    return absent if found is None else found


def _more(needed: float, available: float) -> bool:
    """More than there is, beyond rounding."""
    return needed > available + 1e-9 * max(1.0, abs(available) if math.isfinite(available) else 1.0)
