"""The headrace/1 document of what Nimbus says over Thrift: it knows more than Storm's UI.

The answer is that of `NimbusReader` of the plug-in: one JSON object with `nimbus_conf`,
`supervisors` and `topologies`. Counts are of a worker's life, so each executor's are divided by its
own uptime. A task here is a thread, Storm's executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from headrace.errors import InvalidInput
from headrace.model.components import ACKER
from headrace.model.document import FORMAT
from headrace.model.nearest import nearest
from headrace.observe.rounding import six_digits
from headrace.observe.storm.answers import of_storm
from headrace.observe.storm.settings import grouping_of, is_load_aware, knows_resources

LATENCY_FLAG = "from execute latency, which is wall-clock time: CPU is less where execute() waits"
CPU, ON_HEAP, OFF_HEAP = "cpu.pcore.percent", "onheap.memory.mb", "offheap.memory.mb"
MEMORY = "memory.mb"
Row = Mapping[str, Any]


def is_of_nimbus(content: Row) -> bool:
    """Whether it is such an answer."""
    return isinstance(content.get("supervisors"), list) and "nimbus_conf" in content


def nimbus_document(
    content: Row, topology: str | None, where: str
) -> tuple[dict[str, Any], list[str]]:
    """The document of one topology, and notes on what Storm does not say."""
    try:
        running = Running(content, _choose(content["topologies"], topology, where))
        return running.document(), list(running.notes())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{where}: is not as Nimbus answers ({error!r})") from None


def _choose(topologies: Sequence[Row], wanted: str | None, where: str) -> Row:
    names = {str(row["id"]): str(row["name"]) for row in topologies}
    if not names:
        raise InvalidInput(f"{where}: no topology runs there")
    if wanted is None and len(names) > 1:
        raise InvalidInput(
            f"{where}: {len(names)} topologies run there: {', '.join(sorted(names.values()))}",
            fix="--topology NAME",
        )
    for row in topologies:
        if wanted in (None, row["id"], row["name"]):
            return row
    near = nearest(str(wanted), [*names.values(), *names])
    raise InvalidInput(f"{where}: no topology `{wanted}` runs there{near}")


@dataclass(frozen=True)
class Running:
    """A topology, and the cluster that it runs on."""

    content: Row
    topology: Row

    @cached_property
    def conf(self) -> Row:
        return self.topology["conf"]

    @cached_property
    def components(self) -> dict[str, Row]:
        """The topology's own components; system ones are left out."""
        known: Mapping[str, Row] = self.topology["topology"]["components"]
        return {name: row for name, row in known.items() if not of_storm(name)}

    @cached_property
    def executors(self) -> dict[str, list[Row]]:
        """Executors that report, by component, in the order of their tasks."""
        found: dict[str, list[Row]] = {}
        rows = cast("list[Row]", self.topology["executors"])
        for row in sorted(rows, key=lambda row: int(row["first"])):
            found.setdefault(str(row["component"]), []).append(row)
        return found

    def count(self, component: str) -> int:
        """All executors of a component, also those that do not report."""
        page: Row = self.topology["component_pages"].get(component, {})
        return max(int(page.get("executors") or 0), len(self.executors.get(component, ())), 1)

    def per_s(self, component: str, figure: str) -> dict[str, float]:
        """A count of all executors of a component as tuples/s, by stream."""
        found: dict[str, float] = {}
        reporting = self.executors.get(component, [])
        for row in reporting:
            for stream, value in (row.get(figure) or {}).items():
                found[stream] = found.get(stream, 0.0) + value / max(1.0, float(row["uptime_s"]))
        # Those that do not report are taken to do as much as the others.
        return {
            stream: rate * self.count(component) / len(reporting)
            for stream, rate in found.items()
            if not of_storm(stream) and not of_storm(stream.split(":")[-1])
        }

    def document(self) -> dict[str, Any]:
        """The headrace/1 document."""
        topology: dict[str, Any] = {"name": str(self.topology["name"]).replace("/", "-")}
        for key, setting in (
            ("workers", "topology.workers"),
            ("priority", "topology.priority"),
            ("worker_max_heap_mb", "topology.worker.max.heap.size.mb"),
        ):
            if isinstance(value := self.conf.get(setting), int | float) and value:
                topology[key] = value
        if self.executors.get(ACKER):
            needs = self._needs(ACKER)
            count = self.count(ACKER)
            topology["ackers"] = {"tasks": count, **needs} if needs else count
        topology["components"] = {name: self._component(name) for name in self.components}
        content = {
            "format": FORMAT,
            "topology": topology,
            "cluster": {"nodes": dict(self._nodes())},
            "profile": {
                name: {"*": cost} for name in self.components if (cost := self._cost(name))
            },
            "streams": list(self._streams()),
            "plan": self._plan(),
        }
        return {key: value for key, value in content.items() if value}

    def _component(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {"tasks": self.count(name)}
        if self.components[name]["kind"] == "spout":
            rate = sum(self.per_s(name, "emitted").values())
            found = {"spout": True, **found, "rate": six_digits(rate)}
        inputs: dict[str, list[dict[str, Any]]] = {}
        for entry in self._inputs(name):
            how = {
                "stream": entry["stream"],
                "grouping": grouping_of(entry["grouping"], is_load_aware(self.conf)),
            }
            if entry.get("fields"):
                how["fields"] = list(entry["fields"])
            inputs.setdefault(entry["from"], []).append(how)
        if inputs:
            found["inputs"] = inputs
        return found | self._needs(name)

    def _needs(self, name: str) -> dict[str, float]:
        """What an executor asks for, where the cluster's scheduler looks at it."""
        if not knows_resources(self.content["nimbus_conf"]):
            return {}
        asked: Row = self.topology["component_pages"].get(name, {}).get("resources") or {}
        memory_mb = asked.get(ON_HEAP, 0.0) + asked.get(OFF_HEAP, 0.0)
        needs = {"cpu": asked.get(CPU, 0.0), "memory_mb": memory_mb}
        return {key: value for key, value in needs.items() if value}

    def _inputs(self, name: str) -> list[Row]:
        return [
            entry
            for entry in self.components[name]["inputs"]
            if entry["from"] in self.components and not of_storm(entry["stream"])
        ]

    def _streams(self) -> Iterator[dict[str, Any]]:
        for name in self.components:
            for entry in self._inputs(name):
                sent = self.per_s(entry["from"], "emitted")
                worked_on = sum(self.per_s(entry["from"], "executed").values())
                rate = sent.get(entry["stream"], 0.0)
                stream = {
                    "from": entry["from"],
                    "to": name,
                    "stream": entry["stream"],
                    "tuples_per_s": six_digits(rate),
                }
                base = worked_on or sum(sent.values())
                yield stream | ({"selectivity": six_digits(rate / base)} if base else {})

    def _cost(self, name: str) -> dict[str, Any] | None:
        """CPU per tuple of a bolt, as far as its execute latency says it."""
        took = tuples = 0.0
        for row in self.executors.get(name, ()):
            for stream, executed in (row.get("executed") or {}).items():
                if not of_storm(stream):
                    tuples += executed
                    took += executed * (row.get("execute_ms") or {}).get(stream, 0.0)
        if took <= 0 or tuples <= 0:
            return None
        return {"cpu_ms": six_digits(took / tuples), "flag": LATENCY_FLAG}

    def _nodes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        shows = knows_resources(self.content["nimbus_conf"])
        for supervisor in self.content["supervisors"]:
            if supervisor.get("blacklisted"):
                continue
            host = str(supervisor["host"])
            node: dict[str, Any] = {"slots": int(supervisor["slots"])}
            taken: dict[str, Any] = {}
            if slots := sorted(self._slot(host, port) for port in self._others_ports(host)):
                taken["slots"] = slots
            if shows:
                room: Row = supervisor["resources"]
                memory_mb = room.get(MEMORY, room.get("supervisor.memory.capacity.mb"))
                node |= {"cpu": room.get(CPU, room.get("supervisor.cpu.capacity"))}
                node |= {"memory_mb": memory_mb}
                cpu, memory = self._own_demand(host)
                used = {
                    "cpu": float(supervisor["used_cpu"]) - cpu,
                    "memory_mb": float(supervisor["used_memory_mb"]) - memory,
                }
                taken |= {key: six_digits(value) for key, value in used.items() if value > 1e-6}
            yield host, node | ({"taken": taken} if taken else {})

    def _own_demand(self, host: str) -> tuple[float, float]:
        cpu = memory = 0.0
        for name, rows in self.executors.items():
            asked: Row = self.topology["component_pages"].get(name, {}).get("resources") or {}
            here = sum(row["host"] == host for row in rows)
            cpu += here * asked.get(CPU, 0.0)
            memory += here * (asked.get(ON_HEAP, 0.0) + asked.get(OFF_HEAP, 0.0))
        return cpu, memory

    def _ports(self, host: str, topology: Row) -> set[int]:
        rows = cast("list[Row]", topology["executors"])
        return {int(row["port"]) for row in rows if row["host"] == host}

    def _others_ports(self, host: str) -> set[int]:
        others = [t for t in self.content["topologies"] if t is not self.topology]
        return {port for t in others for port in self._ports(host, t)}

    def _slot(self, host: str, port: int) -> int:
        """The slot of a port. Nimbus names ports in use alone, so others are taken to follow on."""
        used = sorted({p for t in self.content["topologies"] for p in self._ports(host, t)})
        slots = next(int(s["slots"]) for s in self.content["supervisors"] if s["host"] == host)
        named: list[int] = self.content["nimbus_conf"].get("supervisor.slots.ports") or []
        stated = sorted(named)
        if set(used) <= set(stated[:slots]):
            return stated.index(port)
        return port - used[0] if used[-1] - used[0] < slots else used.index(port)

    def _plan(self) -> dict[str, Any] | None:
        """Where executors run; nothing unless all of them do."""
        rows = {name: self.executors.get(name, []) for name in (*self.components, ACKER)}
        if any(len(rows[name]) < self.count(name) for name in self.components):
            return None
        return {
            "assignment": {
                f"{name}.{i}": {
                    "node": row["host"],
                    "worker": self._slot(str(row["host"]), int(row["port"])),
                }
                for name, listed in rows.items()
                for i, row in enumerate(listed, start=1)
            }
        }

    def notes(self) -> Iterator[str]:
        """What Storm does not say, and what looks wrong."""
        uptimes = [float(row["uptime_s"]) for rows in self.executors.values() for row in rows]
        yield (
            f"rates are means over the life of each executor ({min(uptimes, default=0):g} to "
            f"{max(uptimes, default=0):g} s); Storm counts a sample of its tuples "
            "(topology.stats.sample.rate) and multiplies"
        )
        missing = int(self.topology["executors_total"]) - len(uptimes)
        if missing > 0:
            yield (
                f"{missing} of {self.topology['executors_total']} executors do not report; "
                "they are taken to do as much as the others of their component"
            )
        if is_load_aware(self.conf):
            yield "shuffle is load-aware here, as is Storm's default: near tasks get the tuples"
        spouts = [name for name, row in self.components.items() if row["kind"] == "spout"]
        yield (
            f"Storm measures neither the CPU of spouts ({', '.join(spouts)}) nor bytes: "
            "the task hook of the plug-in does"
        )
