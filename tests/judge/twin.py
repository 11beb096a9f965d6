"""The judge's twin: every figure again, task by task, from the file and the written definitions.

Slow and plain on purpose. It shares no code with the judge or the model.
"""

from __future__ import annotations

import math

from tests.judge.twin_flow import Content, Flow, Placed


class Twin(Flow):
    """What a plan uses, which rules it breaks and how good it is."""

    def __init__(self, content: Content, placed: Placed, factor: float = 1.0) -> None:
        super().__init__(content, placed, factor)
        self.cpu = {node: self._fixed_cpu(node) + self._growing_cpu(node) for node in self.nodes}

    # Resources

    def tasks_on(self, node: str) -> list[str]:
        return [task for task, (where, _) in self.placed.items() if where == node]

    def workers(self) -> list[tuple[str, int]]:
        return sorted(set(self.placed.values()))

    def _cost(self, task: str, node: str) -> Content | None:
        """The profile's entry for a task on a node's type; None without one."""
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
            if self.placed[b][0] == node != self.placed[a][0]:
                sends += tuples * self.options.get("receive_node_cpu_ms", 0.0) / 10
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
        """What would not do: a task's one thread, or a resource of a node in use."""
        found = [
            f"task {task}: one thread"
            for task, (node, _) in self.placed.items()
            if (growing := self._task_growing(task, node)) > 0
            and self._task_fixed(task, node) + growing > 100
        ]
        found += [
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
        """Components of one topology that are equally far from its spouts by the longest way.

        Cycles are cut where a walk in file order closes them.
        """
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
        """Nasiri eq. 7-8, divided by the number of kinds.

        A kind is a row of e, the cost of a tuple on every machine type.
        """
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
    """By bisection over the document with all rates scaled; None if nothing is ever full."""

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
