"""How many tuples pass: the rates of a topology's components, cycles included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from headrace.model.arrays import Floats


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream as the rates see it."""

    source: int
    target: int
    gain: float  # tuples emitted on the stream per tuple the source processes
    copies: float  # tuples the target receives per tuple emitted (its number of tasks under `all`, else 1)
    measured: float | None = None  # tuples emitted per second, where known


class Amplifies(Exception):
    """A loop returns at least as many tuples as it is given."""

    def __init__(self, loop: Sequence[int], factor: float) -> None:
        super().__init__("a loop amplifies without end")
        self.loop = tuple(loop)
        self.factor = factor


def rates(spout_rate: Floats, flows: Sequence[Flow], zipped: Sequence[int]) -> tuple[Floats, Floats]:
    """Tuples/s each component processes [C] and each stream carries [S].

    Inputs add up; a zipped component takes one tuple of every input at a time, so it runs at the slowest input's rate.
    Strongly connected components are solved as one linear system each, in the order of the flow.
    """
    processed = spout_rate.copy()
    emitted = np.array([np.nan if flow.measured is None else flow.measured for flow in flows], dtype=np.float64)
    into: list[list[int]] = [[] for _ in spout_rate]
    for s, flow in enumerate(flows):
        into[flow.target].append(s)
    for piece in _in_flow_order(len(spout_rate), flows):
        inside = {c: i for i, c in enumerate(piece)}
        matrix, given = np.zeros((len(piece), len(piece))), processed[piece]
        for c in piece:
            inputs: list[float] = []
            for s in into[c]:
                flow = flows[s]
                if flow.measured is None and flow.source in inside:
                    matrix[inside[c], inside[flow.source]] += flow.gain * flow.copies
                else:
                    emitted[s] = processed[flow.source] * flow.gain if flow.measured is None else flow.measured
                    inputs.append(float(emitted[s]) * flow.copies)
            if inputs:
                given[inside[c]] += min(inputs) if c in zipped else sum(inputs)
        if matrix.any():
            factor = float(np.abs(np.linalg.eigvals(matrix)).max())
            if factor >= 1 - 1e-12:
                raise Amplifies(_loop(piece, matrix), factor)
            given = np.linalg.solve(np.eye(len(piece)) - matrix, given)
        processed[piece] = given
        for s, flow in enumerate(flows):
            if flow.measured is None and flow.source in inside and flow.target in inside:
                emitted[s] = processed[flow.source] * flow.gain
    return processed, emitted


def cyclic(count: int, flows: Sequence[Flow]) -> set[int]:
    """Components that lie on a cycle of derived streams."""
    pieces = _in_flow_order(count, flows)
    loops = {flow.source for flow in flows if flow.source == flow.target}
    return loops | {c for piece in pieces if len(piece) > 1 for c in piece}


def _in_flow_order(count: int, flows: Sequence[Flow]) -> list[list[int]]:
    """Strongly connected components, sources first."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((flow.source, flow.target) for flow in flows)
    condensed: Any = nx.condensation(graph)
    return [sorted(condensed.nodes[piece]["members"]) for piece in nx.topological_sort(condensed)]


def _loop(piece: Sequence[int], matrix: Floats) -> list[int]:
    """A cycle of the piece, by following each component's strongest successor."""
    strongest = matrix.argmax(axis=0)
    seen: list[int] = []
    at = int(matrix.max(axis=0).argmax())
    while at not in seen:
        seen.append(at)
        at = int(strongest[at])
    return [piece[i] for i in seen[seen.index(at) :]]
