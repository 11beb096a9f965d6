"""Traffic that was measured between single tasks, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.components import NamedComponent
from headrace.model.flow import Link
from headrace.model.nearest import nearest
from headrace.model.problem import Pairs, Stream
from headrace.model.read import Inputs


def read_pairs(
    inputs: Inputs, components: Sequence[NamedComponent], index: Mapping[str, int], tasks: Ints
) -> Pairs:
    rows = inputs.document.traffic or ()
    first = np.concatenate([[0], np.cumsum(tasks)])
    numbers: dict[str, int] = {}
    for row, entry in enumerate(rows):
        for position, name in enumerate(entry[:2]):
            if name not in numbers:
                numbers[str(name)] = _task(inputs, (row, position), str(name), index, first)
    source = np.array([numbers[row[0]] for row in rows], dtype=np.int64)
    target = np.array([numbers[row[1]] for row in rows], dtype=np.int64)
    tuples = np.array([row[2] for row in rows], dtype=np.float64)
    data = np.array([row[3] if len(row) == 4 else np.nan for row in rows], dtype=np.float64)
    owner = np.repeat([c.topology for c in components], tasks)
    across = np.flatnonzero(owner[source] != owner[target])
    if len(across):
        raise inputs.invalid(
            ("traffic", int(across[0])),
            "the two tasks are of different topologies; no tuples pass between those",
        )
    return Pairs(source, target, tuples, data)


def _task(
    inputs: Inputs, place: tuple[int, int], name: str, index: Mapping[str, int], first: Ints
) -> int:
    path = ("traffic", *place)
    if inputs.document.tasks is not None:
        if name not in index:
            raise inputs.invalid(path, f"there is no task `{name}`{nearest(name, list(index))}")
        return index[name]
    component, dot, number = name.rpartition(".")
    if component not in index or not number.isdecimal():
        shown = component if dot else name
        raise inputs.invalid(
            path,
            f"there is no task `{name}`; tasks are called component.N{nearest(shown, list(index))}",
        )
    count = int(first[index[component] + 1] - first[index[component]])
    if not 1 <= int(number) <= count:
        raise inputs.invalid(
            path, f"there is no task `{name}`; `{component}` has tasks 1 to {count}"
        )
    return int(first[index[component]]) + int(number) - 1


def add_up_pairs(links: list[Link], pairs: Pairs, tasks: Ints) -> tuple[list[Link], list[bool]]:
    """Links whose task-level traffic was measured carry what their pairs add up to; which do."""
    owner = np.repeat(np.arange(len(tasks)), tasks)
    total: dict[tuple[int, int], float] = {}
    for a, b, t in zip(
        owner[pairs.source].tolist(),
        owner[pairs.target].tolist(),
        pairs.tuples_per_s.tolist(),
        strict=True,
    ):
        total[a, b] = total.get((a, b), 0.0) + t
    covered = [(link.source, link.target) in total for link in links]
    links = list(links)
    seen: set[tuple[int, int]] = set()
    for i, link in enumerate(links):
        edge = (link.source, link.target)
        if covered[i]:
            # Pairs do not say which stream they are of: the first between two components gets all.
            copies = float(tasks[link.target]) if link.copied else 1.0
            links[i] = replace(link, measured=0.0 if edge in seen else total[edge] / copies)
            seen.add(edge)
    return links, covered


def drop_recounted(
    streams: list[Stream], pairs: Pairs, covered: list[bool], stated: Ints, tasks: Ints
) -> tuple[list[Stream], Pairs, list[bool]]:
    """Leave out pairs of components that now have another number of tasks; their totals stay."""
    changed = tasks != stated
    owner = np.repeat(np.arange(len(stated)), stated)
    a, b = owner[pairs.source], owner[pairs.target]
    shift = (np.cumsum(tasks) - tasks) - (np.cumsum(stated) - stated)
    kept = ~(changed[a] | changed[b])
    holds = Pairs(
        (pairs.source + shift[a])[kept],
        (pairs.target + shift[b])[kept],
        pairs.tuples_per_s[kept],
        pairs.bytes_per_s[kept],
    )
    lost = [
        c and bool(changed[s.source] or changed[s.target])
        for s, c in zip(streams, covered, strict=True)
    ]
    for i, stream in enumerate(streams):
        rows = (a == stream.source) & (b == stream.target)
        if (
            lost[i]
            and pairs.tuples_per_s[rows].sum() > 0
            and not np.isnan(pairs.bytes_per_s[rows]).any()
        ):
            streams[i] = replace(
                stream, bytes=float(pairs.bytes_per_s[rows].sum() / pairs.tuples_per_s[rows].sum())
            )
    return streams, holds, [c and not gone for c, gone in zip(covered, lost, strict=True)]


def share_of_tasks(
    streams: Sequence[Stream], covered: Sequence[bool], pairs: Pairs, tasks: Ints
) -> Floats | None:
    """Each task's share of what its component receives; None if all shares are even."""
    if all(s.even for s in streams) and not len(pairs):
        return None
    first = np.concatenate([[0], np.cumsum(tasks)])
    received = totals(pairs.target, pairs.tuples_per_s, int(first[-1]))
    for stream, measured in zip(streams, covered, strict=True):
        if not measured:
            q = int(tasks[stream.target])
            received[first[stream.target] : first[stream.target + 1]] += (
                stream.tuples_per_s * stream.received(q)
            )
    share = np.repeat(1.0 / tasks, tasks)
    for c in range(len(tasks)):
        here = received[first[c] : first[c + 1]]
        if here.sum() > 0:
            share[first[c] : first[c + 1]] = here / here.sum()
    return share
