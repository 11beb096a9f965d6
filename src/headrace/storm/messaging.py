"""What a tuple to another worker costs in CPU: serialised, sent, received, deserialised.

Threads of the worker do most of that. Each worker says what they spent. Serialising is done by the
executor's own thread, so its component's profile has it, for as many tuples as left the worker
under the plan that was measured. Under another plan others leave, so it is taken out of the
profile. All of it over the tuples that went between workers is the price of one. At low rates it
is higher than at high ones, where messages travel together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.storm.state import SYSTEM, State, named_executors

KIND = "workers"
LEAST_PER_S = 50.0  # tuples between workers: of fewer, timers make the price


def price_sending(
    folder: Path, state: State, measured: Mapping[str, Any], since_ms: float = 0.0
) -> dict[str, Any]:
    """What was measured, and `send_cpu_ms`, the price of a tuple to another worker, if known.

    Traffic is of the places that the state has.
    """
    traffic = measured.get("traffic", ())
    remote = remote_per_s(state, traffic)
    sent_per_s = sum(remote.values())
    spent = messaging_ms_per_s(folder, state, since_ms)
    if sent_per_s < LEAST_PER_S or not spent > 0:
        return dict(measured)
    rates = component_rates(traffic)
    profile = dict(measured.get("profile", {}))
    for component, each_ms in serialising_ms(folder, state, since_ms).items():
        if component in profile and rates.get(component, 0.0) > 0:
            own = remote.get(component, 0.0) * each_ms / rates[component]
            cheaper, taken = without_own(profile[component], own)
            profile[component] = cheaper
            spent += taken * rates[component]
    found = {**measured, "send_cpu_ms": spent / sent_per_s}
    return {**found, "profile": profile} if profile else found


def without_own(costs: Mapping[str, Any], own_ms: float) -> tuple[dict[str, Any], float]:
    """A component's costs by machine type without its part of sending, and how much that is."""
    taken = min([own_ms, *(cost["cpu_ms"] for cost in costs.values())])
    return {kind: {**cost, "cpu_ms": cost["cpu_ms"] - taken} for kind, cost in costs.items()}, taken


def remote_per_s(state: State, traffic: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Tuples/s that every component sends to other workers."""
    place = {name: state.place_of(executor) for name, executor in named_executors(state)}
    found: dict[str, float] = {}
    for source, target, rate, *_ in traffic:
        if source in place and target in place and place[source] != place[target]:
            component = component_of(source)
            found[component] = found.get(component, 0.0) + float(rate)
    return found


def component_rates(traffic: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Tuples/s that profiles are of: what a component gets, or what a spout emits."""
    got: dict[str, float] = {}
    emitted: dict[str, float] = {}
    for source, target, rate, *_ in traffic:
        one, other = component_of(source), component_of(target)
        if not is_system(one):  # answers of ackers are no input of a spout
            got[other] = got.get(other, 0.0) + float(rate)
        if not is_system(other):
            emitted[one] = emitted.get(one, 0.0) + float(rate)
    return {**emitted, **got}


def component_of(task: str) -> str:
    return task.rpartition(".")[0]


def is_system(component: str) -> bool:
    return component.rpartition("/")[2].startswith(SYSTEM)


def messaging_ms_per_s(folder: Path, state: State, since_ms: float) -> float:
    """CPU milliseconds a second that the workers' own threads spend on messages."""
    return sum(messaging_by_worker(folder, state, since_ms).values())


def messaging_by_worker(
    folder: Path, state: State, since_ms: float = 0.0
) -> dict[tuple[str, int], float]:
    """The same for every worker, by node and port."""
    spent: dict[tuple[str, int], list[float]] = {}
    for row in worker_rows(folder, state, since_ms):
        sums = spent.setdefault((row["node"], row["port"]), [0.0, 0.0])
        sums[0] += row["messaging_ms"]
        sums[1] += row["seconds"]
    return {worker: ms / seconds for worker, (ms, seconds) in spent.items() if seconds > 0}


def serialising_ms(folder: Path, state: State, since_ms: float) -> dict[str, float]:
    """Milliseconds that an executor of each component takes to serialise a tuple, from samples."""
    several = len(state.topologies) > 1
    sums: dict[str, list[float]] = {}
    for row in worker_rows(folder, state, since_ms):
        for component, (count, ms) in row.get("serialised", {}).items():
            name = f"{row['topology']}/{component}" if several else component
            both = sums.setdefault(name, [0.0, 0.0])
            both[0] += count
            both[1] += ms
    return {name: ms / count for name, (count, ms) in sums.items() if count > 0}


def worker_rows(folder: Path, state: State, since_ms: float) -> Iterator[dict[str, Any]]:
    """What workers of the running topologies said of themselves since then."""
    topologies = {running.name for running in state.topologies}
    for file in sorted((folder / KIND).glob("*.jsonl")):
        if int(file.name[:15]) <= since_ms:
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            at_ms = datetime.fromisoformat(row["event_time"]).timestamp() * 1000
            if row["topology"] in topologies and at_ms - row["seconds"] * 1000 >= since_ms:
                yield row
