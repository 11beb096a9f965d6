"""What flows between components: rates, streams and measured task pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.components import ACK, ACK_BYTES, ACK_INIT, NamedComponent
from headrace.model.document import MeasuredStream, Topology
from headrace.model.flow import Amplifies, FlowByCounts, Link, components_on_cycles, rates
from headrace.model.measured_pairs import (
    add_up_pairs,
    drop_recounted,
    read_pairs,
    share_of_tasks,
)
from headrace.model.nearest import nearest
from headrace.model.problem import Pairs, Stream
from headrace.model.read import Inputs
from headrace.model.section import LARGEST, LEAST

MOST_TASKS = 10_000_000  # of a component; a task with a higher number is a mistake


@dataclass(frozen=True, slots=True)
class DataFlow:
    """Rates, streams and measured pairs of all topologies."""

    rate: Floats
    streams: tuple[Stream, ...]
    pairs: Pairs
    task_share: Floats | None
    by_counts: FlowByCounts  # the same for any number of tasks

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
        links = _links(topologies, components, streams)
        stated = _measured_tasks(inputs, components, index)
        streams, links = _measured_streams(inputs, components, index, stated, streams, links, notes)
        pairs = read_pairs(inputs, components, index, stated)
        links, covered = add_up_pairs(links, pairs, stated)
        if len(pairs) and (tasks != stated).any():
            notes.append(
                "traffic: measured with another number of tasks, "
                "so used as totals per stream where that number changed"
            )
            streams, pairs, covered = drop_recounted(streams, pairs, covered, stated, tasks)
        spout_rate = _spout_rates(inputs, components, notes)
        flows = [link.at(tasks) for link in links]
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
        beyond = np.flatnonzero(~(rate <= LARGEST))  # also where it is no number
        if len(beyond):
            c = components[beyond[0]]
            raise inputs.invalid(
                c.path,
                f"the rate of `{c.name}` is above {LARGEST:g}; lower a rate or a selectivity",
            )
        rate, emitted = (np.where(found < LEAST, 0.0, found) for found in (rate, emitted))
        streams = [replace(s, tuples_per_s=float(e)) for s, e in zip(streams, emitted, strict=True)]
        share = share_of_tasks(streams, covered, pairs, tasks)
        derived = tuple(s for s, c in zip(streams, covered, strict=True) if not c)
        derived += _acks_to_spouts(components, rate)
        by_counts = FlowByCounts(spout_rate, tuple(links), tuple(zipped))
        return DataFlow(rate, derived, pairs, share, by_counts)


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
                size = ACK_BYTES if is_ack(entry.stream) else components[source].spec.bytes
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


def is_ack(stream: str) -> bool:
    """Whether a stream is one that Storm's ackers hear."""
    return stream in (ACK_INIT, ACK)


def _acks_to_spouts(components: Sequence[NamedComponent], rate: Floats) -> tuple[Stream, ...]:
    """What ackers say to spouts: one tuple for every one that a spout emitted.

    No link: a spout's rate does not depend on it.
    """
    return tuple(
        Stream(acker, i, ACK, "direct", float(rate[i]), ACK_BYTES)
        for acker, a in enumerate(components)
        if "ackers" in a.path[:-1]
        for i, c in enumerate(components)
        if c.spec.spout and c.topology == a.topology
    )


def _links(
    topologies: Sequence[Topology], components: Sequence[NamedComponent], streams: Sequence[Stream]
) -> list[Link]:
    """What each stream carries per tuple its source processes; a spout's rate is what it emits."""
    links: list[Link] = []
    for stream in streams:
        source = components[stream.source]
        if is_ack(stream.name):  # one for each tuple, and no share of what is emitted
            links.append(Link(stream.source, stream.target, 1.0, copied=False))
            continue
        gain = 1.0 if source.spec.spout else source.spec.selectivity
        fanout = topologies[source.topology].fanout
        copied = stream.grouping == "all"
        # A stream that goes to every task is copied, so `tasks` divides what the others carry.
        shared = dict.fromkeys(
            s.target
            for s in streams
            if s.source == stream.source
            and not is_ack(s.name)
            and (fanout == "divide" or s.grouping != "all")
        )
        if fanout == "divide":
            gain /= len(shared)
        sharing = tuple(shared) if fanout == "tasks" and not copied else ()
        to_first = stream.grouping == "global"
        links.append(Link(stream.source, stream.target, gain, copied, sharing, to_first=to_first))
    return links


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
    links: list[Link],
    notes: list[str],
) -> tuple[list[Stream], list[Link]]:
    """Streams and links, with what was measured instead of what the topology says."""
    streams, links = list(streams), list(links)
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
                if links[s].gain != entry.selectivity:
                    was = f"{links[s].gain:g}"
                    notes.append(f"{label}: selectivity {was} -> {entry.selectivity:g}")
                # It is that of the stream itself, so nothing is left to divide.
                links[s] = replace(links[s], gain=entry.selectivity, sharing=())
            if entry.tuples_per_s is not None:
                notes.append(f"{label}: rate derived -> {entry.tuples_per_s:g} tuples/s")
                links[s] = replace(links[s], measured=entry.tuples_per_s)
            if entry.shares is not None and stream.grouping == "load-aware":
                notes.append(
                    f"{label}: shares left out: a load-aware shuffle divides tuples by the plan"
                )
            elif entry.shares is not None and stream.grouping != "all":
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
    return streams, links


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
