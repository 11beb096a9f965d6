"""Large problems in cycles: clusters of classes are placed, then the classes themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.solve.least_traffic.clusters import NOWHERE, find_clusters, merge_classes
from headrace.solve.least_traffic.progress import TaskList, new_search
from headrace.solve.least_traffic.stages import (
    ONE_COOLING,
    Heat,
    build_first_plans,
    drop_nodes,
    improve,
    repair,
    rounds_of,
)
from headrace.solve.least_traffic.terms import terms_of

if TYPE_CHECKING:
    from headrace.model.arrays import Ints
    from headrace.solve.least_traffic.progress import Search
    from headrace.solve.least_traffic.terms import Terms

CYCLES = 3
SCARCE_CELLS = 20_000  # classes x nodes from which on clusters pay, where steps are scarce
CLUSTER_SIZE = (0.5, 0.3)  # of an average node: in the first cycle, and in later ones
CLUSTER_STEPS = 0.4  # share of the steps spent on clusters
FEWER_CLUSTERS = 0.7  # per class, at most: else they are not worth it
CLUSTER_RESCUES = 2  # there are still the classes to place if clusters cannot be packed
# How clusters cool down, in the first cycle and in later ones; and classes after them.
CLUSTER_COOLING = (Heat(0.3, 0.03), Heat(0.2, 0.03))
CLASS_COOLING = Heat(0.2, 0.001)


def clusters_pay(terms: Terms, budget: int) -> bool:
    """Whether to search on clusters: where steps are scarce and cheap.

    Where slots bind, a step takes longer the more a cluster holds, and little is gained.
    """
    return (
        terms.allowed.size >= SCARCE_CELLS and rounds_of(terms, budget) == 1 and not terms.slotted
    )


def plan_in_cycles(search: Search, budget: int) -> None:
    """Place clusters, then classes one by one; again with clusters of what is together by then."""
    left = budget
    cluster_steps = int(CLUSTER_STEPS * budget / CYCLES)
    for cycle in range(CYCLES):
        clustered = place_clusters(search, cluster_steps, again=cycle > 0)
        if cycle == 0 and not clustered:
            build_first_plans(search, budget)
        if not search.found:
            return
        if cycle == 0 and search.terms.node_rank:
            drop_nodes(search, budget)
        if not clustered:
            improve(search, left, CLASS_COOLING if cycle else ONE_COOLING)
            return
        improve(search, budget // CYCLES - cluster_steps, CLASS_COOLING)
        left -= budget // CYCLES


def place_clusters(search: Search, steps: int, *, again: bool) -> bool:
    """Remember a plan found by searching on clusters of classes; whether there is one.

    `again`: clusters are of classes that the best plan has on one node as a whole, and the search
    starts from that plan.
    """
    instance = search.instance
    home = None
    if again:
        search.resume()
        home = np.where(search.state.holders == 1, search.state.holder[:, 0], NOWHERE)
    cluster = find_clusters(instance, CLUSTER_SIZE[again], home)
    if cluster.max(initial=0) + 1 > FEWER_CLUSTERS * len(cluster):
        return False
    smaller, each = merge_classes(instance, cluster)
    prefer = "nodes" if search.terms.node_rank else "traffic"
    part = new_search(
        smaller, terms_of(smaller, prefer=prefer), int(search.rng.integers(2**31)), search.deadline
    )
    try:
        if again:
            part.load_list(to_clusters(search.list_tasks(), cluster, each))
            part.anneal(1)
        else:
            build_first_plans(part, steps, CLUSTER_RESCUES)
        if part.found:
            improve(part, steps, CLUSTER_COOLING[again])
    finally:
        search.made += part.made
        if part.found:
            part.resume()
            search.load_list(to_classes(part.list_tasks(), cluster, each))
            repair(search, steps)
            search.anneal(1)
    return part.found and not search.overloaded


def to_clusters(tasks: TaskList, cluster: Ints, each: Ints) -> TaskList:
    """A plan of classes as one of clusters; classes of a cluster are together, one is asked."""
    first = np.unique(cluster, return_index=True)[1]
    asked = first[cluster[tasks.class_]] == tasks.class_
    node, class_, count = (values[asked] for values in tasks)
    return TaskList(node, cluster[class_], count // each[class_])


def to_classes(tasks: TaskList, cluster: Ints, each: Ints) -> TaskList:
    """A plan of clusters as one of classes."""
    members = np.argsort(cluster, kind="stable")
    first = np.searchsorted(cluster[members], np.arange(len(cluster) + 1))
    many = np.diff(first)[tasks.class_]
    nth = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)  # of its cluster
    class_ = members[np.repeat(first[tasks.class_], many) + nth]
    return TaskList(
        np.repeat(tasks.node, many), class_, np.repeat(tasks.tasks, many) * each[class_]
    )
