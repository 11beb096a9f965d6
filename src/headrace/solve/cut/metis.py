"""METIS, which is an extra: the one place that calls it."""

from __future__ import annotations

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Floats, Ints
from headrace.solve.cut.graph import Graph
from headrace.solve.silence import silent_stdout


def label_with_metis(
    graph: Graph, load: Floats, room: Floats, *, recursive: bool, seed: int
) -> Ints:
    """METIS' part of each vertex, [V], with parts in the ratio of their room[P].

    load[V] and weights become whole numbers, which is all METIS knows; parts may come out overfull.
    Without METIS this refuses: no answer may depend on what happens to be installed.
    """
    try:
        import pymetis
    except ImportError:
        raise Unsupported(
            "this scheduler is defined by METIS, which is not installed",
            fix="pip install 'headrace[metis]'",
        ) from None
    with silent_stdout():  # METIS complains there about tiny graphs
        answer = pymetis.part_graph(
            len(room),
            pymetis.CSRAdjacency(graph.first, graph.other),
            vweights=_whole(load),
            eweights=_whole(graph.weight),
            tpwgts=(room / room.sum()).tolist(),
            recursive=recursive,
            options=pymetis.Options(seed=seed),
        )
    return np.asarray(answer.vertex_part, dtype=np.int64)


def _whole(values: Floats) -> Ints:
    """The values as whole numbers of at least 1, on average about 1000."""
    scale = 1_000 * len(values) / max(float(values.sum()), 1e-300)
    return np.maximum(1, np.rint(values * scale)).astype(np.int64)
