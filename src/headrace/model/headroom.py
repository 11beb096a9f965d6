"""Headroom: the share of every machine that plans leave free.

Algorithms never hear of it. They get machines that are smaller by it, and the judge gets the true
ones, so that an algorithm that keeps to capacities keeps to the headroom too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from headrace.errors import HeadraceError, Infeasible
from headrace.model.document import FORMAT
from headrace.model.nearest import nearest
from headrace.model.problem import Problem
from headrace.model.read import Inputs, validated
from headrace.model.section import Headroom

BANDWIDTH = "bandwidth_mbps"


def headroom_in(inputs: Inputs) -> Headroom | None:
    """What the files say, as a section of its own or in `cluster`."""
    cluster, headroom = inputs.document.cluster, inputs.document.headroom
    stated = None if cluster is None else cluster.headroom
    if headroom is not None and stated is not None:
        raise inputs.invalid(
            ("headroom",), "the headroom also stands in `cluster.headroom`; give it once"
        )
    return stated if headroom is None else headroom


def headroom_of(inputs: Inputs, resources: Sequence[str]) -> dict[str, float]:
    """The share to leave free of each resource and of bandwidth, without those that are 0."""
    headroom, known = headroom_in(inputs), (*resources, BANDWIDTH)
    if isinstance(headroom, dict):
        for name in headroom:
            if name not in known:
                place = ("headroom",) if inputs.document.headroom else ("cluster", "headroom")
                raise inputs.invalid(
                    (*place, name), f"no machine has `{name}`{nearest(name, known)}"
                )
    shares = {name: headroom_share(headroom, name) for name in known}
    return {name: share for name, share in shares.items() if share > 0}


def with_headroom(inputs: Inputs, headroom: Headroom | None) -> Inputs:
    """The inputs with this headroom instead of their own."""
    checked = validated({"format": FORMAT, "headroom": headroom}, {}).document.headroom
    document = inputs.document.model_copy(update={"headroom": checked})
    if document.cluster is not None:
        cluster = document.cluster.model_copy(update={"headroom": None})
        document = document.model_copy(update={"cluster": cluster})
    return replace(inputs, document=document)


def within_headroom(problem: Problem, *, but: str = "") -> Problem:
    """The problem on nodes that are smaller by the headroom; one resource may stay as it is."""
    return _shrink_nodes(problem, but) if problem.headroom else problem


@lru_cache(maxsize=16)
def _shrink_nodes(problem: Problem, but: str) -> Problem:
    """Remembered, since bounds are remembered by problem."""
    share = {name: s for name, s in problem.headroom.items() if name != but}
    left = np.array([1 - share.get(name, 0.0) for name in problem.resources])
    return replace(
        problem,
        capacity=problem.capacity * left,
        bandwidth_mbps=problem.bandwidth_mbps * (1 - share.get(BANDWIDTH, 0.0)),
        headroom={},
    )


def name_headroom(error: HeadraceError, headroom: Headroom | Mapping[str, float]) -> HeadraceError:
    """A refusal for lack of room that says how much of it is kept free."""
    if not headroom or not isinstance(error, Infeasible):
        return error
    fields = {key: value for key, value in error.fields().items() if key not in ("kind", "message")}
    # What an algorithm says would help is about nodes that are smaller than they are.
    beyond = f"; or, beyond it, {error.fix}" if error.fix else ""
    fields["fix"] = f"lower the headroom{beyond}"
    message = f"{error.message} (a headroom of {headroom_in_words(headroom)} is kept free)"
    return Infeasible(message, **fields)  # pyright: ignore[reportArgumentType]


def headroom_in_words(headroom: Headroom | Mapping[str, float]) -> str:
    """`20 %`, or `20 % of cpu, 10 % of memory_mb`."""
    if isinstance(headroom, int | float):
        return f"{100 * headroom:g} %"
    if len(headroom) > 1 and len(set(headroom.values())) == 1:
        return headroom_in_words(next(iter(headroom.values())))
    return ", ".join(f"{100 * share:g} % of {name}" for name, share in headroom.items())


def headroom_share(headroom: Headroom | None, resource: str) -> float:
    """The share of a resource to leave free."""
    if headroom is None or isinstance(headroom, int | float):
        return float(headroom or 0.0)
    return headroom.get(resource, 0.0)
