"""From a topology, a plan and the last commit to the stages of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.model.topology import Topology, subscriptions
from headrace.run.placement import Place, Placement
from headrace.run.seats import Part, Role, Seat, Stage, Target
from headrace.run.stages import Stages
from headrace.run.state import Commit, files_of_task, groups_of_task


@dataclass(frozen=True, slots=True)
class CompiledBatch:
    """The stages of a batch, and the place that each of their seats belongs to (None: any)."""

    stages: tuple[Stage, ...]
    places: tuple[tuple[Place | None, ...], ...]
    parts: Mapping[int, Path]  # output -> where its parts are written


def compile_batch(
    topology: Topology,
    order: Stages,
    placement: Placement | None,
    last: Commit,
    *,
    batch: int,
    attempt: str,
    folder: Path,
) -> CompiledBatch:
    """The stages of a batch; the topology has the task counts of the plan."""
    targets = _targets(topology, order)
    sources = {
        name: tuple((s, how) for s, t, how in subscriptions(topology.components) if t == name)
        for name in topology.components
    }
    scratch = folder / "batches" / str(batch)
    parts = {
        i: output.sink.parts(batch, attempt, scratch) for i, output in enumerate(topology.outputs)
    }
    sinks: dict[str, list[Part]] = {}
    for i, output in enumerate(topology.outputs):
        sinks.setdefault(output.component, []).append(
            Part(i, output.stream, str(parts[i]), output.sink.writer())
        )
    seats = [
        _seats(topology, order, at, targets, placement, last) for at in range(len(order.levels))
    ]
    ordered = before_keys(topology)
    made: list[Stage] = []
    for at, row in enumerate(seats):
        following = seats[at + 1] if at + 1 < len(seats) else ()
        names = {seat.component for seat in row}
        made.append(
            Stage(
                batch=batch,
                folder=str(folder),
                seats=row,
                # A source belongs to the driver.
                code={name: replace(topology.code[name], source=None) for name in names},
                sources={name: sources[name] for name in names},
                targets={name: targets[name] for name in names},
                parts={name: tuple(sinks[name]) for name in names if name in sinks},
                next_seat={
                    (seat.component, seat.number): i
                    for i, seat in enumerate(following)
                    if seat.role != "replay"
                },
                ordered=ordered,
                times={name: topology.times[name] for name in names if name in topology.times},
                watermark=last.watermark(topology),
                first_watermark=last.first_watermark,
            )
        )
    places = tuple(
        tuple(None if placement is None else placement.places[s.component, s.number] for s in row)
        for row in seats
    )
    return CompiledBatch(tuple(made), places, parts)


def before_keys(topology: Topology) -> frozenset[str]:
    """Components whose output reaches a fields grouping, at once or through others."""
    edges = subscriptions(topology.components)
    found = {source for source, _, how in edges if how.grouping == "fields"}
    while more := {source for source, target, _ in edges if target in found} - found:
        found |= more
    return frozenset(found)


def _targets(topology: Topology, order: Stages) -> dict[str, tuple[Target, ...]]:
    ordered = before_keys(topology)
    found: dict[str, list[Target]] = {name: [] for name in topology.components}
    counted: dict[str, int] = {}
    for source, target, how in subscriptions(topology.components):
        number = counted.get(target, 0)
        counted[target] = number + 1
        back = (source, target) in order.back_edges
        # Its tasks get rows of one run in turns, and pass them on: each needs its own position.
        spread = how.grouping in ("fields", "direct") and topology.code[target].state is None
        tasks = topology.components[target].tasks
        found[source].append(
            Target(target, number, how, tasks, back, rowwise=spread and target in ordered)
        )
    return {name: tuple(targets) for name, targets in found.items()}


def _seats(
    topology: Topology,
    order: Stages,
    at: int,
    targets: Mapping[str, Sequence[Target]],
    placement: Placement | None,
    last: Commit,
) -> tuple[Seat, ...]:
    replaying = order.replaying if at == 0 else ()
    kinds: tuple[tuple[Role, Sequence[str]], ...] = (
        ("work", order.levels[at]),
        ("wait", order.waiting[at]),
        ("replay", replaying),
    )
    roles: list[tuple[Role, str]] = [(role, name) for role, names in kinds for name in names]
    row: list[Seat] = []
    for role, name in roles:
        component = topology.components[name]
        for number in range(component.tasks):
            seat = Seat(role, name, number)
            if role != "wait" and placement is not None:
                local = [t.component for t in targets[name] if t.how.grouping == "local-or-shuffle"]
                seat = replace(
                    seat,
                    beside={target: placement.beside((name, number), target) for target in local},
                )
            if role == "work" and topology.code[name].state is not None:
                groups = groups_of_task(component, number)
                seat = replace(
                    seat, groups=groups, state=files_of_task(last.state, name, component, number)
                )
            if role == "replay":  # with fewer tasks than before, a task sends for several
                mine = (
                    c
                    for c in last.carried
                    if c.component == name and c.number % component.tasks == number
                )
                seat = replace(seat, carried=tuple(mine))
            row.append(seat)
    return tuple(row)
