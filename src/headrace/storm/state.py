"""What Nimbus says (protocol headrace-storm/1) as Headrace's sections, and plans the other way.

An executor is a thread, so it is a task here: `component.N`, N from 1 in the order of Storm's
tasks. A supervisor is a node, and the slots of a node are its ports in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.document import FORMAT, Node
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.observe.storm.settings import grouping_of, is_load_aware

PROTOCOL = "headrace-storm/1"
SYSTEM = "__"  # how Storm's own components begin
ACKER = "__acker"
BY_PAIRS = ("direct", "custom")  # groupings
NO_CYCLES = ("gr-storm",)  # schedulers that refuse them; their paper knows of no acks


@dataclass(frozen=True, slots=True)
class Supervisor:
    """A node of the cluster, as Nimbus sees it."""

    id: str
    node: str
    host: str
    rack: str | None
    cpu: float
    memory_mb: float
    ports: tuple[int, ...]
    used_ports: tuple[int, ...]
    blacklisted: bool


@dataclass(frozen=True, slots=True)
class Executor:
    """A thread of a topology, and where it is; None: nowhere yet."""

    name: str
    first: int  # of Storm's tasks
    last: int
    cpu: float
    memory_mb: float
    place: tuple[str, int] | None  # supervisor's id, port

    @property
    def component(self) -> str:
        return self.name.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Running:
    """A topology on the cluster."""

    id: str
    name: str
    workers: int
    conf: Mapping[str, Any]
    components: Mapping[str, Mapping[str, Any]]
    executors: tuple[Executor, ...]

    @property
    def homeless(self) -> tuple[Executor, ...]:
        return tuple(executor for executor in self.executors if executor.place is None)

    @property
    def load_aware(self) -> bool:
        """Whether shuffle prefers receivers that are near, Storm's default."""
        return is_load_aware(self.conf)


@dataclass(frozen=True, slots=True)
class State:
    """A cluster at a moment."""

    at_s: float
    storm: str
    supervisors: tuple[Supervisor, ...]
    topologies: tuple[Running, ...]

    @property
    def nodes(self) -> dict[str, Supervisor]:
        """The supervisors that may be used, by node."""
        return {s.node: s for s in self.supervisors if not s.blacklisted and s.ports}

    @property
    def shape(self) -> object:
        """What a plan is made for: which executors there are, and which slots."""
        executors = {r.id: frozenset(e.name for e in r.executors) for r in self.topologies}
        return executors, {name: s.ports for name, s in self.nodes.items()}

    def place_of(self, executor: Executor) -> tuple[str, int] | None:
        """Node and worker of an executor, as plans have them."""
        if executor.place is None:
            return None
        supervisor, port = executor.place
        for one in self.supervisors:
            if one.id == supervisor and port in one.ports:
                return one.node, one.ports.index(port)
        return None


def read_state(content: Any) -> State:
    """A state from its JSON; refuses one that is not of this protocol."""
    try:
        if content["protocol"] != PROTOCOL:
            raise InvalidInput(f"the state is of protocol {content['protocol']}, not {PROTOCOL}")
        return State(
            float(content["at_ms"]) / 1000,
            str(content["storm"]),
            tuple(_supervisor(row) for row in content["supervisors"]),
            tuple(_topology(row) for row in content["topologies"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"the state of the cluster cannot be read: {error!r}") from None


def _supervisor(row: Mapping[str, Any]) -> Supervisor:
    return Supervisor(
        row["id"],
        row["node"],
        row["host"],
        row.get("rack"),
        float(row["cpu"]),
        float(row["memory_mb"]),
        tuple(sorted(row["ports"])),
        tuple(sorted(row["used_ports"])),
        bool(row["blacklisted"]),
    )


def _topology(row: Mapping[str, Any]) -> Running:
    executors = tuple(
        Executor(
            one["name"],
            int(one["first"]),
            int(one["last"]),
            float(one["cpu"] or 0),
            float(one["memory_mb"] or 0),
            (one["supervisor"], int(one["port"])) if "supervisor" in one else None,
        )
        for one in row["executors"]
    )
    return Running(
        row["id"], row["name"], int(row["workers"]), row["conf"], row["components"], executors
    )


def describe_cluster(
    state: State, known: Mapping[str, Node], worker_cpu: float = 0.0
) -> dict[str, Any]:
    """The cluster section: what Nimbus says of its supervisors, and what files know better.

    What a worker takes at rest, in points, is taken on every node: no executor can have it.
    """
    nodes: dict[str, Any] = {}
    for name, supervisor in state.nodes.items():
        facts: dict[str, Any] = {"cpu": supervisor.cpu, "memory_mb": supervisor.memory_mb}
        if supervisor.rack is not None:
            facts["rack"] = supervisor.rack
        if name in known:
            facts |= known[name].model_dump(mode="json", by_alias=True, exclude_unset=True)
        facts["slots"] = len(supervisor.ports)
        if worker_cpu > 0:
            taken = facts.get("taken", {})
            facts["taken"] = {**taken, "cpu": taken.get("cpu", 0.0) + worker_cpu}
        nodes[name] = facts
    return {"nodes": nodes}


def describe_topology(running: Running, acked: bool = True) -> dict[str, Any]:
    """The topology section: components with what an executor of theirs asks for.

    `acked`: whether ackers get anything; a spout may emit without asking for it.
    """
    components: dict[str, Any] = {}
    for executor in running.executors:
        found = components.setdefault(executor.component, {"tasks": 0})
        found["tasks"] += 1
        found["cpu"], found["memory_mb"] = executor.cpu, executor.memory_mb
    for name, content in running.components.items():
        if name not in components:
            continue
        components[name] |= {"spout": True} if content["kind"] == "spout" else {}
        inputs: dict[str, list[dict[str, Any]]] = {}
        for one in content["inputs"]:
            if one["from"] in components:
                grouping = grouping_of(one["grouping"], running.load_aware)
                fields = {"fields": one["fields"]} if one.get("fields") else {}
                entry = {"stream": one["stream"], "grouping": grouping, **fields}
                inputs.setdefault(one["from"], []).append(entry)
        if inputs:
            components[name]["inputs"] = inputs
    ackers = components.pop(ACKER)["tasks"] if acked and ACKER in components else None
    found: dict[str, Any] = {"name": running.name, "components": components}
    if ackers is not None:
        found["ackers"] = ackers
    if running.workers > 0:
        found["workers"] = running.workers
    if isinstance(priority := running.conf.get("topology.priority"), int):
        found["priority"] = priority
    return found


def describe(
    state: State,
    known: Mapping[str, Node],
    measured: Mapping[str, Any],
    rest: Mapping[str, Any],
    *,
    acks: bool = True,
) -> dict[str, Any]:
    """All sections of a problem: the cluster, its topologies, and what was measured of them.

    Without `acks`, ackers have no streams: what they say to spouts is a cycle.
    """
    several = len(state.topologies) > 1
    topologies = [
        describe_topology(r, acks and is_acked(r, several, measured)) for r in state.topologies
    ]
    cluster = describe_cluster(state, known, measured.get("worker_cpu", 0.0))
    content: dict[str, Any] = {"format": FORMAT, **rest, "cluster": cluster}
    if "carry_cpu_ms" in measured:
        own, carry = measured.get("own_cpu_ms", 0.0), measured["carry_cpu_ms"]
        content["options"] = price_messages(rest.get("options", {}), own, carry)
    if len(topologies) == 1:
        content["topology"] = topologies[0]
    else:
        content["topologies"] = topologies
    present = {name for name, _ in named_executors(state)}
    components = {name.rpartition(".")[0] for name in present}
    if profile := {c: p for c, p in measured.get("profile", {}).items() if c in components}:
        content["profile"] = profile
    by_pairs = pair_edges(state)
    traffic = [
        row
        for row in measured.get("traffic", ())
        if {row[0], row[1]} <= present and _edge(row) in by_pairs
    ]
    if traffic:
        content["traffic"] = traffic
    streams: list[dict[str, Any]] = []
    for stream in measured.get("streams", ()):
        edge = (stream["from"], stream["to"])
        system = any(end.rpartition("/")[2].startswith(SYSTEM) for end in edge)
        if set(edge) <= components and edge not in by_pairs and not system:
            # Averages of single streams are not of quite the same time; one rate at the spout and
            # selectivities are, and they agree.
            streams.append({key: x for key, x in stream.items() if key != "tuples_per_s"})
            _set_rate(topologies, stream)
    if streams:
        content["streams"] = streams
    return content


def price_messages(options: Mapping[str, Any], own_ms: float, carry_ms: float) -> dict[str, Any]:
    """Options with the measured prices of a tuple to another worker, unless they state any.

    The sender serialises it, and both ends carry it.
    """
    measured = {
        "send_worker_cpu_ms": own_ms + 2 * carry_ms,
        "send_node_cpu_ms": own_ms + carry_ms,
        "receive_node_cpu_ms": carry_ms,
    }
    stated = options.get("judge", {})
    return {**options, "judge": {**({} if stated.keys() & measured.keys() else measured), **stated}}


def is_acked(running: Running, several: bool, measured: Mapping[str, Any]) -> bool:
    """Whether a topology's ackers get tuples; before anything is measured, they are taken to."""
    prefix = f"{running.name}/" if several else ""
    own = {prefix + executor.component for executor in running.executors}
    streams = [s for s in measured.get("streams", ()) if s["from"] in own]
    return not streams or any(s["to"] == prefix + ACKER for s in streams)


def pair_edges(state: State) -> set[tuple[str, str]]:
    """Pairs of components of which single pairs of tasks are planned on.

    That is where streams do not say it: several streams at once, and groupings that only the
    topology knows. The rest is told by streams, which hold wherever executors are put.
    """
    several = len(state.topologies) > 1
    found: set[tuple[str, str]] = set()
    for running in state.topologies:
        prefix = f"{running.name}/" if several else ""
        for name, content in running.components.items():
            sources = [one["from"] for one in content["inputs"]]
            for one in content["inputs"]:
                grouping = grouping_of(one["grouping"], running.load_aware)
                if sources.count(one["from"]) > 1 or grouping in BY_PAIRS:
                    found.add((prefix + one["from"], prefix + name))
    return found


def _edge(row: Sequence[Any]) -> tuple[str, str]:
    return row[0].rpartition(".")[0], row[1].rpartition(".")[0]


def _set_rate(topologies: Sequence[Mapping[str, Any]], stream: Mapping[str, Any]) -> None:
    """Give a spout the rate that one of its streams says."""
    topology, slash, component = stream["from"].partition("/")
    for one in topologies:
        if slash and one["name"] != topology:
            continue
        found = one["components"].get(component if slash else stream["from"])
        if found is not None and found.get("spout") and stream.get("selectivity"):
            found["rate"] = stream["tuples_per_s"] / stream["selectivity"]


def named_executors(state: State) -> Iterable[tuple[str, Executor]]:
    """Every executor by its name in a problem: with its topology's name if there are several."""
    several = len(state.topologies) > 1
    for running in state.topologies:
        for executor in running.executors:
            yield (f"{running.name}/{executor.name}" if several else executor.name), executor


def current_plan(state: State, problem: Problem) -> Assignment:
    """Where executors are now, in the problem's terms."""
    places = {name: state.place_of(executor) for name, executor in named_executors(state)}
    number = {name: i for i, name in enumerate(problem.nodes)}
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    for task in range(problem.task_count):
        place = places.get(problem.task_name(task))
        if place is not None and place[0] in number:
            node[task], worker[task] = number[place[0]], place[1]
    return Assignment(node, worker)


def plans_for_nimbus(
    state: State, problem: Problem, assignment: Assignment, name: str
) -> dict[str, dict[str, Any]]:
    """A plan as the protocol has it, by topology's id."""
    several = len(state.topologies) > 1
    ids = {running.name: running.id for running in state.topologies}
    found: dict[str, dict[str, Any]] = {}
    for task in range(problem.task_count):
        if assignment.node[task] == UNPLACED:
            continue
        full = problem.task_name(task)
        topology, slash, executor = full.partition("/") if several else ("", "", full)
        id = ids[topology] if slash else state.topologies[0].id
        plan = found.setdefault(id, {"name": name, "assignment": {}})
        plan["assignment"][executor] = {
            "node": problem.nodes[assignment.node[task]],
            "worker": int(assignment.worker[task]),
        }
    return found


def executor_names(state: State) -> dict[str, dict[str, str]]:
    """Topology -> name of a task in Storm's sense -> name of the executor that runs it."""
    found: dict[str, dict[str, str]] = {}
    for running in state.topologies:
        names = found.setdefault(running.name, {})
        counts: dict[str, int] = {}
        for executor in sorted(running.executors, key=lambda one: one.first):
            for _ in range(executor.first, executor.last + 1):
                counts[executor.component] = counts.get(executor.component, 0) + 1
                names[f"{executor.component}.{counts[executor.component]}"] = executor.name
    return found


def misplaced(state: State, plans: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """The executors that are not where their plan wants them: another node, or other neighbours."""
    found: list[str] = []
    for running in state.topologies:
        if (plan := plans.get(running.id)) is None:
            continue
        wanted, real = plan["assignment"], {e.name: e.place for e in running.executors}
        together: dict[Any, set[Any]] = {}
        for name, place in wanted.items():
            together.setdefault((place["node"], place["worker"]), set()).add(real.get(name))
        for executor in running.executors:
            place, now = wanted.get(executor.name), state.place_of(executor)
            key = place and (place["node"], place["worker"])
            if place is None or now is None or now[0] != key[0] or len(together[key]) > 1:
                found.append(f"{running.name}/{executor.name}")
    return found
