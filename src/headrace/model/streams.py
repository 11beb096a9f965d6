"""What flows between components: rates, streams and measured task pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.components import NamedComponent
from headrace.model.document import MeasuredStream, Topology
from headrace.model.flow import Amplifies, Flow, components_on_cycles, rates
from headrace.model.nearest import nearest
from headrace.model.problem import Pairs, Stream
from headrace.model.read import Inputs

MOST_TASKS = 10_000_000  # of a component; a task with a higher number is a mistake


@dataclass(frozen=True, slots=True)
class DataFlow:
    """Rates, streams and measured pairs of all topologies."""

    rate: Floats
    streams: tuple[Stream, ...]
    pairs: Pairs
    task_share: Floats | None

    @staticmethod
    def of(
        inputs: Inputs,
        topologies: Sequence[Topology],
        components: Sequence[NamedComponent],
        notes: list[str],
    ) -> DataFlow:
        """What the topologies say, and what was measured instead; `notes` gets what differs."""
        index = {c.name: i for i, c in enumerate(components)}
        tasks = np.array([c.spec.tasks for c in components], dtype=np.int64)
        streams = _streams(inputs, topologies, components, index)
        gain = [
            _gain(topologies[components[s.source].topology], components[s.source], streams, s)
            for s in streams
        ]
        stated = _measured_tasks(inputs, components, index)
        streams, gain, measured = _measured_streams(
            inputs, components, index, stated, streams, gain, notes
        )
        pairs = _pairs(inputs, components, index, stated)
        streams, measured, covered = _add_up_pairs(streams, measured, pairs, stated)
        if len(pairs) and (tasks != stated).any():
            notes.append(
                "traffic: measured with another number of tasks, "
                "so used as totals per stream where that number changed"
            )
            streams, pairs, covered = _drop_recounted(streams, pairs, covered, stated, tasks)
        spout_rate = _spout_rates(inputs, components, notes)
        flows = [
            Flow(s.source, s.target, g, float(tasks[s.target]) if s.grouping == "all" else 1.0, m)
            for s, g, m in zip(streams, gain, measured, strict=True)
        ]
        zipped = [i for i, c in enumerate(components) if c.spec.join == "zip"]
        for c in sorted(components_on_cycles(len(components), flows) & set(zipped)):
            raise inputs.invalid(
                (*components[c].path, "join"), "a component on a cycle cannot be zipped"
            )
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # looked at below
                rate, emitted = rates(spout_rate, flows, zipped)
        except Amplifies as error:
            loop = " -> ".join(components[c].name for c in (*error.loop, error.loop[0]))
            returns = f"the loop {loop} returns {error.factor:.3g} tuples for each one it is given"
            which = (
                returns
                if error.alone
                else f"{returns}, and with the loops it shares components with, at least 1"
            )
            message = f"{which}, so its rate grows without end; it must return less than 1"
            raise inputs.invalid(components[error.loop[0]].path, message) from None
        beyond = np.flatnonzero(~np.isfinite(rate))
        if len(beyond):
            c = components[beyond[0]]
            raise inputs.invalid(
                c.path,
                f"the rate of `{c.name}` is beyond all numbers; lower a rate or a selectivity",
            )
        streams = [replace(s, tuples_per_s=float(e)) for s, e in zip(streams, emitted, strict=True)]
        share = _task_share(streams, covered, pairs, tasks)
        derived = tuple(s for s, c in zip(streams, covered, strict=True) if not c)
        return DataFlow(rate, derived, pairs, share)


def _streams(
    inputs: Inputs,
    topologies: Sequence[Topology],
    components: Sequence[NamedComponent],
    index: Mapping[str, int],
) -> list[Stream]:
    streams: list[Stream] = []
    for target, c in enumerate(components):
        prefix = c.name.removesuffix(str(c.path[-1]))
        for name, entries in c.spec.inputs.items():
            source = index.get(prefix + name)
            if source is None or components[source].topology != c.topology:
                siblings = [str(o.path[-1]) for o in components if o.topology == c.topology]
                raise inputs.invalid(
                    (*c.path, "inputs", name),
                    f"`{topologies[c.topology].name}` has no component `{name}`"
                    f"{nearest(name, siblings)}",
                )
            known: set[str] = set()
            for entry in entries:
                if entry.stream in known:
                    raise inputs.invalid(
                        (*c.path, "inputs", name),
                        f"the stream `{entry.stream}` of `{name}` is given twice",
                    )
                known.add(entry.stream)
                size = components[source].spec.bytes
                streams.append(
                    Stream(
                        source,
                        target,
                        entry.stream,
                        entry.grouping,
                        0.0,
                        np.nan if size is None else size,
                        None,
                        entry.fields,
                    )
                )
    return streams


def _gain(
    topology: Topology, source: NamedComponent, streams: Sequence[Stream], stream: Stream
) -> float:
    """Tuples on a stream per tuple its source processes; a spout's rate is what it emits."""
    emitted = 1.0 if source.spec.spout else source.spec.selectivity
    if topology.fanout == "copy":
        return emitted
    return emitted / len({s.target for s in streams if s.source == stream.source})


def _spout_rates(inputs: Inputs, components: Sequence[NamedComponent], notes: list[str]) -> Floats:
    history = inputs.document.history or {}
    rate = np.zeros(len(components))
    names = [c.name for c in components if c.spec.spout]
    for name in history:
        if name not in names:
            raise inputs.invalid(
                ("history", name), f"there is no spout `{name}`{nearest(name, names)}"
            )
    for i, c in enumerate(components):
        if not c.spec.spout:
            continue
        if history.get(c.name):
            rate[i] = history[c.name][-1][1]
            stated = "absent" if c.spec.rate is None else f"{c.spec.rate:g}"
            notes.append(f"history: {c.name}.rate {stated} -> {rate[i]:g}")
        elif c.spec.rate is None:
            rate[i] = 1.0
            notes.append(f"assumed: {c.name} emits 1 tuple/s, since it has no `rate`")
        else:
            rate[i] = c.spec.rate
    return rate


def _measured_tasks(
    inputs: Inputs, components: Sequence[NamedComponent], index: Mapping[str, int]
) -> Ints:
    """The number of tasks each component had when its tasks were measured.

    A stream whose rate and shares were both measured shows how many tasks received it. If it comes
    from a spout, which receives nothing, the pairs beside it show how many sent it. All other
    measurements of tasks are about those of the file.
    """
    tasks = np.array([c.measured_tasks or c.spec.tasks for c in components], dtype=np.int64)
    measured = [e for e in inputs.document.streams or () if e.tuples_per_s is not None and e.shares]
    received = {e.target: len(e.shares or ()) for e in measured}
    spouts = {c.name for c in components if c.spec.spout}
    sent = dict.fromkeys({e.source for e in measured} & spouts, 0)
    for row in inputs.document.traffic or () if sent else ():
        component, _, number = row[0].rpartition(".")
        if component in sent and number.isdecimal():
            sent[component] = max(sent[component], int(number))
    for name, count in (*received.items(), *sent.items()):
        if name in index and 0 < count <= MOST_TASKS:
            tasks[index[name]] = count
    return tasks


def _measured_streams(
    inputs: Inputs,
    components: Sequence[NamedComponent],
    index: Mapping[str, int],
    stated: Ints,
    streams: list[Stream],
    gain: list[float],
    notes: list[str],
) -> tuple[list[Stream], list[float], list[float | None]]:
    """Streams, gains and rates, with what was measured instead of what the topology says."""
    measured: list[float | None] = [None] * len(streams)
    streams, gain = list(streams), list(gain)
    between: dict[tuple[int, int], list[int]] = {}
    for s, stream in enumerate(streams):
        between.setdefault((stream.source, stream.target), []).append(s)
    for row, entry in enumerate(inputs.document.streams or ()):
        matching = _matching(inputs, row, entry, index, streams, between)
        for s in matching:
            stream, label = streams[s], f"streams: {entry.source} -> {entry.target}"
            q = components[stream.target].spec.tasks
            if entry.bytes is not None:
                if not np.isnan(stream.bytes) and stream.bytes != entry.bytes:
                    notes.append(f"{label}: bytes {stream.bytes:g} -> {entry.bytes:g}")
                stream = replace(stream, bytes=entry.bytes)
            if entry.selectivity is not None:
                if gain[s] != entry.selectivity:
                    notes.append(f"{label}: selectivity {gain[s]:g} -> {entry.selectivity:g}")
                gain[s] = entry.selectivity
            if entry.tuples_per_s is not None:
                notes.append(f"{label}: rate derived -> {entry.tuples_per_s:g} tuples/s")
                measured[s] = entry.tuples_per_s
            if entry.shares is not None and stream.grouping != "all":
                if len(entry.shares) == stated[stream.target] != q:
                    notes.append(
                        f"{label}: shares left out, since they are of {len(entry.shares)} tasks "
                        f"and {q} are planned"
                    )
                elif len(entry.shares) != q:
                    raise inputs.invalid(
                        ("streams", row, "shares"),
                        f"has {len(entry.shares)} shares; `{entry.target}` has {q} tasks",
                    )
                elif not sum(entry.shares) > 0:
                    raise inputs.invalid(
                        ("streams", row, "shares"), "every share is 0; at least one must be more"
                    )
                else:
                    notes.append(f"{label}: shares {stream.grouping} -> measured")
                    stream = replace(stream, shares=np.array(entry.shares) / sum(entry.shares))
            streams[s] = stream
    return streams, gain, measured


def _matching(
    inputs: Inputs,
    row: int,
    entry: MeasuredStream,
    index: Mapping[str, int],
    streams: Sequence[Stream],
    between: Mapping[tuple[int, int], list[int]],
) -> list[int]:
    for key, name in (("from", entry.source), ("to", entry.target)):
        if name not in index:
            raise inputs.invalid(
                ("streams", row, key), f"there is no component `{name}`{nearest(name, list(index))}"
            )
    joining = between.get((index[entry.source], index[entry.target]), [])
    matching = [s for s in joining if entry.stream in (None, streams[s].name)]
    if matching:
        return matching
    if not joining:
        raise inputs.invalid(
            ("streams", row), f"`{entry.target}` does not list `{entry.source}` in its inputs"
        )
    names = [streams[s].name for s in joining]
    had = f"there are {', '.join(f'`{name}`' for name in names)}{nearest(str(entry.stream), names)}"
    raise inputs.invalid(
        ("streams", row),
        f"no stream `{entry.stream}` from `{entry.source}` to `{entry.target}`; {had}",
    )


def _pairs(
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


def _add_up_pairs(
    streams: list[Stream], measured: list[float | None], pairs: Pairs, tasks: Ints
) -> tuple[list[Stream], list[float | None], list[bool]]:
    """Streams whose task-level traffic was measured carry what their pairs add up to."""
    owner = np.repeat(np.arange(len(tasks)), tasks)
    total: dict[tuple[int, int], float] = {}
    for a, b, t in zip(
        owner[pairs.source].tolist(),
        owner[pairs.target].tolist(),
        pairs.tuples_per_s.tolist(),
        strict=True,
    ):
        total[a, b] = total.get((a, b), 0.0) + t
    covered = [(s.source, s.target) in total for s in streams]
    amount = list(measured)
    seen: set[tuple[int, int]] = set()
    for i, stream in enumerate(streams):
        edge = (stream.source, stream.target)
        if covered[i]:
            # Pairs do not say which stream they are of: the first between two components gets all.
            copies = float(tasks[stream.target]) if stream.grouping == "all" else 1.0
            amount[i] = 0.0 if edge in seen else total[edge] / copies
            seen.add(edge)
    return streams, amount, covered


def _drop_recounted(
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


def _task_share(
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
