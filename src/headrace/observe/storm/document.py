"""The headrace/1 document of Storm's answers. Our task is a thread, Storm's executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.model.document import FORMAT
from headrace.model.production import GROUPINGS
from headrace.observe.rounding import six_digits
from headrace.observe.storm.answers import (
    Answers,
    Bolt,
    Count,
    Drawn,
    Spout,
    Subscription,
    Supervisors,
    Vertex,
    Worker,
    of_storm,
)
from headrace.observe.storm.settings import grouping_of, is_load_aware

FULL = 0.8  # of a bolt's capacity: beyond, its queue grows with every burst
BEHIND = 0.95  # of what was sent to it, what a bolt worked off
LATENCY_FLAG = "from execute latency, which is wall-clock time: CPU is less where execute() waits"
CAPACITY_FLAG = "from capacity, since the execute latency is below what Storm shows"
FIRST_PORT = 6700  # of a supervisor, unless it says otherwise
ACKERS = "topology.acker.executors"


def document_of(answers: Answers) -> tuple[dict[str, Any], list[str]]:
    """The headrace/1 document, and notes on what Storm does not say and on what looks wrong."""
    page, rates = answers.page, _rates(answers)
    own = [vertex for vertex in (*page.spouts, *page.bolts) if not of_storm(vertex.id)]
    topology: dict[str, Any] = {"name": page.name.replace("/", "-")}
    # What reports may be fewer workers than were asked for.
    if workers := _whole(page.configuration.get("topology.workers")) or page.workers_total:
        topology["workers"] = workers
    if ackers := _ackers(answers):
        topology["ackers"] = ackers
    for key, setting in (
        ("priority", "topology.priority"),
        ("worker_max_heap_mb", "topology.worker.max.heap.size.mb"),
    ):
        if isinstance(value := page.configuration.get(setting), int | float):
            topology[key] = value
    topology["components"] = {vertex.id: _component(vertex, answers, rates) for vertex in own}
    content = {
        "format": FORMAT,
        "topology": topology,
        "cluster": {"nodes": _nodes(answers, answers.supervisors)}
        if answers.supervisors is not None
        else None,
        "profile": {
            v.id: {"*": cost} for v in own if isinstance(v, Bolt) and (cost := _cost(v, answers))
        },
        "streams": list(_streams(answers, rates)),
    }
    return {key: value for key, value in content.items() if value}, list(_notes(answers, rates))


@dataclass(frozen=True, slots=True)
class Rates:
    """Tuples/s, by component and stream."""

    emitted: Mapping[str, Mapping[str, float]]
    executed: Mapping[str, Mapping[tuple[str, str], float]]  # by source and stream
    seconds: float

    def out_of(self, component: str) -> float:
        return sum(self.emitted.get(component, {}).values())

    def into(self, component: str) -> float:
        return sum(self.executed.get(component, {}).values())


def _rates(answers: Answers) -> Rates:
    page, metrics = answers.page, answers.metrics
    if answers.components:
        return _rates_of_executors(answers)
    if metrics is not None:
        seconds = _seconds(metrics.window, page.uptime_s)
        vertices = (*metrics.spouts, *metrics.bolts)
        emitted = {
            v.id: {c.stream: c.value / seconds for c in v.emitted if not of_storm(c.stream)}
            for v in vertices
        }
        executed = {
            v.id: {(c.source, c.stream): c.value / seconds for c in _of_users(v.executed)}
            for v in metrics.bolts
        }
        return Rates(emitted, executed, seconds)
    # The page only knows totals: right where a component has one stream; where it has several, each
    # is taken to carry the same.
    seconds = _seconds(page.window, page.uptime_s)
    used: dict[str, set[str]] = {}
    for name in answers.drawn:
        for entry in _subscriptions(answers, name):
            used.setdefault(entry.source, set()).add(entry.stream)
    emitted = {
        v.id: dict.fromkeys(
            streams := sorted(used.get(v.id, {"default"})), v.emitted / seconds / len(streams)
        )
        for v in (*page.spouts, *page.bolts)
    }
    return Rates(emitted, {v.id: {("", ""): v.executed / seconds} for v in page.bolts}, seconds)


def _rates_of_executors(answers: Answers) -> Rates:
    """Each executor's counts over its own time: they begin again with its worker."""
    emitted: dict[str, dict[str, float]] = {}
    executed: dict[str, dict[tuple[str, str], float]] = {}
    times: list[float] = []
    for name, page in answers.components.items():
        lasted = [_seconds(page.window, e.uptime_s) for e in page.executors]
        times += lasted
        out = sum(e.emitted / s for e, s in zip(page.executors, lasted, strict=True))
        into = sum(e.executed / s for e, s in zip(page.executors, lasted, strict=True))
        sent, done = sum(o.emitted for o in page.outputs), sum(i.executed for i in page.inputs)
        emitted[name] = {
            o.stream: out * o.emitted / sent
            for o in page.outputs
            if sent and not of_storm(o.stream)
        }
        executed[name] = {
            (i.source, i.stream): into * i.executed / done
            for i in page.inputs
            if done and not of_storm(i.source) and not of_storm(i.stream)
        }
    return Rates(emitted, executed, sum(times) / len(times) if times else 1.0)


def _whole(value: Any) -> int:
    """A whole number that a setting says, else 0."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _ackers(answers: Answers) -> int:
    """Storm's ackers: as the settings say, else one for each worker that was asked for."""
    configuration = answers.page.configuration
    if ACKERS in configuration and configuration[ACKERS] is not None:
        return _whole(configuration[ACKERS])
    own = sum(v.executors for v in (*answers.page.spouts, *answers.page.bolts))
    workers = _whole(configuration.get("topology.workers")) or answers.page.workers_total
    return max(0, min(workers, answers.page.executors_total - own))


def _seconds(window: str, uptime_s: float) -> float:
    """The time counts are of: the window, or less if the topology is younger."""
    return max(1.0, min(float(window) if window.isdecimal() else uptime_s, uptime_s))


def _of_users(counts: Iterable[Count]) -> list[Count]:
    return [c for c in counts if not of_storm(c.source) and not of_storm(c.stream)]


def _component(vertex: Vertex, answers: Answers, rates: Rates) -> dict[str, Any]:
    found: dict[str, Any] = {"tasks": vertex.executors}
    if isinstance(vertex, Spout):
        found = {"spout": True, **found, "rate": six_digits(rates.out_of(vertex.id))}
    inputs: dict[str, list[dict[str, str]]] = {}
    for entry in _subscriptions(answers, vertex.id):
        inputs.setdefault(entry.source, []).append(
            {"stream": entry.stream, "grouping": grouping_of(entry.grouping, _aware(answers))}
        )
    if inputs:
        found["inputs"] = inputs
    if answers.shows_resources:
        requested = {"cpu": vertex.cpu, "memory_mb": vertex.on_heap_mb + vertex.off_heap_mb}
        found |= {key: value for key, value in requested.items() if value}
    return found


def _aware(answers: Answers) -> bool:
    """Whether shuffle is load-aware: by default it is, since Storm 2."""
    older = answers.version is not None and answers.version.startswith(("0.", "1."))
    return is_load_aware(answers.page.configuration) and not older


def _subscriptions(answers: Answers, component: str) -> list[Subscription]:
    """What a component reads, without the streams that Storm itself adds."""
    known = {v.id for v in (*answers.page.spouts, *answers.page.bolts)}
    drawn = answers.drawn.get(component, Drawn())
    return [
        s
        for s in drawn.inputs
        if s.source in known and not of_storm(s.source) and not of_storm(s.stream)
    ]


def _streams(answers: Answers, rates: Rates) -> Iterator[dict[str, Any]]:
    for component in answers.drawn:
        for entry in _subscriptions(answers, component):
            sent = rates.emitted.get(entry.source, {}).get(entry.stream, 0.0)
            # A spout works on what it emits.
            worked_on = rates.into(entry.source) or rates.out_of(entry.source)
            stream = {
                "from": entry.source,
                "to": component,
                "stream": entry.stream,
                "tuples_per_s": six_digits(sent),
            }
            yield stream | ({"selectivity": six_digits(sent / worked_on)} if worked_on else {})


def _cost(bolt: Bolt, answers: Answers) -> dict[str, Any] | None:
    """CPU per tuple of a bolt; nothing if it did nothing yet."""
    if page := answers.components.get(bolt.id):
        own = [e for e in page.inputs if not of_storm(e.source) and not of_storm(e.stream)]
        if (took := sum(e.execute_ms * e.executed for e in own)) > 0:
            tuples = sum(e.executed for e in own)
            return {"cpu_ms": six_digits(took / tuples), "flag": LATENCY_FLAG}
    for vertex in answers.metrics.bolts if answers.metrics else ():
        executed = {(c.source, c.stream): c.value for c in _of_users(vertex.executed)}
        took = sum(
            c.value * executed.get((c.source, c.stream), 0.0) for c in vertex.executed_ms_avg
        )
        if vertex.id == bolt.id and took > 0:
            return {"cpu_ms": six_digits(took / sum(executed.values())), "flag": LATENCY_FLAG}
    if bolt.execute_ms > 0:
        return {"cpu_ms": six_digits(bolt.execute_ms), "flag": LATENCY_FLAG}
    if bolt.capacity > 0 and bolt.executed > 0:
        # Capacity is the share of its time that an executor spends in execute().
        busy_s = (
            bolt.capacity * bolt.executors * _seconds(answers.page.window, answers.page.uptime_s)
        )
        return {"cpu_ms": six_digits(busy_s * 1000 / bolt.executed), "flag": CAPACITY_FLAG}
    return None


def _nodes(answers: Answers, summary: Supervisors) -> dict[str, Any]:
    """Supervisors as nodes; only what others use there is taken, since a new plan is made."""
    hosts = [supervisor.host for supervisor in summary.supervisors]
    nodes: dict[str, Any] = {}
    for supervisor in summary.supervisors:
        own = [worker for worker in answers.page.workers if worker.supervisor == supervisor.id]
        alone = hosts.count(supervisor.host) == 1
        node: dict[str, Any] = {"slots": supervisor.slots}
        taken: dict[str, Any] = {}
        if (others := supervisor.slots_used - len(own)) > 0:
            mine = _slots(own, answers, supervisor.slots)
            free = [slot for slot in range(supervisor.slots) if slot not in mine]
            taken["slots"] = free[:others]
        if answers.shows_resources:
            node |= {"cpu": supervisor.cpu, "memory_mb": supervisor.memory_mb}
            cpu = supervisor.cpu_used - sum(worker.cpu for worker in own)
            memory_mb = supervisor.memory_mb_used - sum(
                worker.on_heap_mb + worker.off_heap_mb for worker in own
            )
            taken |= {
                key: six_digits(value)
                for key, value in (("cpu", cpu), ("memory_mb", memory_mb))
                if value > 1e-6
            }
        nodes[supervisor.host if alone else f"{supervisor.host}-{supervisor.id[:8]}"] = node | (
            {"taken": taken} if taken else {}
        )
    return nodes


def _slots(workers: list[Worker], answers: Answers, slots: int) -> set[int]:
    """The slots of a topology's workers by their ports; which ports are free is not said."""
    ports = sorted(worker.port for worker in workers)
    named: list[int] = answers.page.configuration.get("supervisor.slots.ports") or []
    stated = sorted(named)[:slots]
    if ports and set(ports) <= set(stated):
        return {stated.index(port) for port in ports}
    if all(FIRST_PORT <= port < FIRST_PORT + slots for port in ports):
        return {port - FIRST_PORT for port in ports}
    return set(range(len(ports)))


def _notes(answers: Answers, rates: Rates) -> Iterator[str]:
    page = answers.page
    yield (
        f"rates are means over {rates.seconds:g} s; "
        "Storm counts a sample of its tuples (topology.stats.sample.rate) and multiplies"
    )
    if answers.version is not None and not answers.version.startswith("2."):
        yield f"this is Storm {answers.version}; the field names are those of Storm 2"
    if answers.metrics is None and not answers.components:
        yield (
            "no /component pages: what a component emits is taken from its page, "
            "and divided evenly over its streams where it has several"
        )
    if answers.supervisors is None:
        yield "no /supervisor/summary: there is no cluster in the document"
    elif not answers.shows_resources:
        yield (
            "the resource-aware scheduler is off, so Storm knows slots only: "
            "set cpu and memory_mb on the nodes to have them counted"
        )
    used = {entry.grouping for name in answers.drawn for entry in _subscriptions(answers, name)}
    if "fields" in used:
        yield (
            "Storm's UI shows a global grouping as `fields`: "
            "change it to `global` by hand where it is one, or ask Nimbus (nimbus://host:port)"
        )
    if odd := sorted(used - GROUPINGS.keys()):
        yield f"unknown groupings, taken as custom: {', '.join(odd)}"
    spouts = ", ".join(spout.id for spout in page.spouts if not of_storm(spout.id))
    cost = (
        "what was requested for them is used" if answers.shows_resources else "they count as free"
    )
    yield (
        f"Storm does not measure the CPU of spouts ({spouts}), so {cost}; nor does it measure bytes"
    )
    if _aware(answers):
        yield "shuffle is load-aware here, as is Storm's default: near tasks get the tuples"
    own = sum(v.executors for v in (*page.spouts, *page.bolts) if not of_storm(v.id))
    missing = page.executors_total - own - _ackers(answers)
    if missing > 0:
        yield (
            f"{missing} of {page.executors_total} executors are not among the components: "
            "they do not report, or are of Storm's own components"
        )
    yield from _findings(answers, rates)


def _findings(answers: Answers, rates: Rates) -> Iterator[str]:
    """Bolts that are full, fail, or work off less than is sent to them."""
    for bolt in answers.page.bolts:
        if bolt.capacity > FULL:
            yield (
                f"{bolt.id} is at {bolt.capacity:.0%} of its capacity: "
                "it needs more executors, or a faster node"
            )
        if bolt.failed:
            yield f"{bolt.id} failed {bolt.failed:,.0f} tuples"
        measured = answers.components or answers.metrics
        for entry in _subscriptions(answers, bolt.id) if measured else ():
            sent = rates.emitted.get(entry.source, {}).get(entry.stream, 0.0)
            done = rates.executed.get(bolt.id, {}).get((entry.source, entry.stream), 0.0)
            if entry.grouping != "all" and done < BEHIND * sent:
                yield (
                    f"{bolt.id} worked off {done / sent:.0%} of what {entry.source} sent "
                    f"on `{entry.stream}`: it falls behind"
                )
