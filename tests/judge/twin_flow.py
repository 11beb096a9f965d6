"""The judge's twin, first half: what flows between tasks, read from the file alone.

It spells out every pair of tasks and adds up. `factor` scales all spout rates, and what was
measured along with them.
"""

from __future__ import annotations

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


class Flow:
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
        self.near: dict[int, dict[str, dict[str, float]]] = {}  # of an edge: who sends what to whom
        if any(edge.grouping == "load-aware" for edge in self.edges):
            self._settle()
        self.pairs = [pair for pair in self._all_pairs() if pair[0] in placed and pair[1] in placed]
        self.used_nodes = [
            node for node in self.nodes if any(where == node for where, _ in placed.values())
        ]

    # What the file says

    def _task_names(self, component: str) -> list[str]:
        if "tasks" in self.content:
            return [component]
        return [
            f"{component}.{i}" for i in range(1, self.components[component].get("tasks", 1) + 1)
        ]

    def _share_by_tasks(self, prefix: str, source: str, target: str) -> float:
        """The target's tasks among all tasks that share what the source emits."""
        sharing = [
            c
            for c, s in self.components.items()
            if c.startswith(prefix)
            and any(e["grouping"] != "all" for e in s.get("inputs", {}).get(source, []))
        ]
        return len(self._task_names(target)) / sum(len(self._task_names(c)) for c in sharing)

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
                shared = 1.0
                if self.topology_of[target].get("fanout") == "tasks" and entry["grouping"] != "all":
                    shared = self._share_by_tasks(prefix, source, target)
                found: Content = {
                    "bytes": giver.get("bytes"),
                    "selectivity": gain * shared,
                    "tuples_per_s": None,
                    "shares": None,
                }
                for row in self.content.get("streams", []):
                    if (row["from"], row["to"]) == (prefix + source, target) and row.get(
                        "stream", entry["stream"]
                    ) == entry["stream"]:
                        found |= {key: row[key] for key in found if key in row}
                if entry["grouping"] == "load-aware":
                    found["shares"] = None  # whatever was measured under another plan
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
        """What share of its component's tuples a task handles."""
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

    def _settle(self) -> None:
        """Let tuples go to the nearest tasks that can take them, until no share changes."""
        for _ in range(1000):
            before = dict(self.share)
            for target in self.components:
                into = [e for e in self.edges if e.target == target]
                if any(e.grouping == "load-aware" for e in into):
                    self._settle_target(target, into)
            if all(abs(before[task] - share) < 1e-13 for task, share in self.share.items()):
                return

    def _settle_target(self, target: str, into: list[Edge]) -> None:
        received = dict.fromkeys(self.tasks[target], 0.0)
        for _, task, tuples, _ in self.measured_pairs:
            if task in received:
                received[task] += tuples
        aware: list[Edge] = []
        for edge in into:
            if (edge.source, target) in self.covered:
                continue
            if edge.grouping == "load-aware":
                aware.append(edge)
                continue
            for task, copies in zip(self.tasks[target], self._copies(edge), strict=True):
                received[task] += self._emitted(edge, self.rate) * copies
        for edge in aware:
            rows = self._nearest_first(edge, received)
            self.near[id(edge)] = rows
            for row in rows.values():
                for task, tuples in row.items():
                    received[task] += tuples
        whole = sum(received.values())
        if whole > 0:
            self.share |= {task: tuples / whole for task, tuples in received.items()}

    def _nearest_first(self, edge: Edge, received: dict[str, float]) -> dict[str, dict[str, float]]:
        """What each sender sends to each receiver, level by level, as far as threads take it."""
        senders = [t for t in self.tasks[edge.source] if t in self.placed]
        receivers = [t for t in self.tasks[edge.target] if t in self.placed]
        left = {t: self._emitted(edge, self.rate) * self.share[t] for t in senders}
        room = {t: max(0.0, self._thread_takes(t) - received[t]) for t in receivers}
        rows: dict[str, dict[str, float]] = {t: dict.fromkeys(receivers, 0.0) for t in senders}
        for level in [level for level in range(4) for _ in range(20)]:
            offer: dict[tuple[str, str], float] = {}
            for a in senders:
                choice = [b for b in receivers if self.distance(a, b) <= level and room[b] > 0]
                offer |= {(a, b): left[a] / len(choice) for b in choice}
            for b in receivers:
                arriving = sum(tuples for (_, to), tuples in offer.items() if to == b)
                accepted = 1.0 if arriving <= room[b] else room[b] / arriving
                for a in senders:
                    taken = offer.get((a, b), 0.0) * accepted
                    rows[a][b] += taken
                    left[a] -= taken
                room[b] = max(0.0, room[b] - arriving * accepted)
        for a in senders:
            for b in receivers:
                rows[a][b] += left[a] / len(receivers)
        return rows

    def _thread_takes(self, task: str) -> float:
        """Tuples/s that one thread can process."""
        component = self.component_of[task]
        node = self.nodes[self.placed[task][0]]
        costs = self.content.get("profile", {}).get(component, {})
        if any("cpu_ms" in cost or cost.get("cpu_fixed") for cost in costs.values()):
            cost = costs.get(node.get("type", "")) or costs["*"]
            free = max(0.0, 100 - cost.get("cpu_fixed", 0.0))
            return free / (cost["cpu_ms"] / 10) if cost.get("cpu_ms") else float("inf")
        points = self.components[component].get("cpu", 0.0) * self.factor
        even = self.rate[component] / len(self.tasks[component])
        return 100 / points * even if points else float("inf")

    def _all_pairs(self) -> list[tuple[str, str, float, float | None]]:
        pairs = list(self.measured_pairs)
        for edge in self.edges:
            if (edge.source, edge.target) in self.covered:
                continue
            if id(edge) in self.near:
                pairs += [
                    (a, b, tuples, None if edge.bytes is None else tuples * edge.bytes)
                    for a, row in self.near[id(edge)].items()
                    for b, tuples in row.items()
                ]
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
