"""Clusters of classes that talk much and hardly part: there are fewer of them to search on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import kernel
from headrace.solve.instance import Instance

NOWHERE = -1
LARGEST_CLUSTER = 0.7  # of an average node
CLUSTER_GROWTH = (0.25, 0.5, 1.0)  # of the size clusters may have in the end, pass by pass


def find_clusters(instance: Instance, least: float, home: Ints | None = None) -> Ints:
    """A cluster for each class: classes with much traffic for their size go together.

    A cluster takes up to `least` of an average node, or what three average classes take, though
    never so much that packing gets hard. With `home`, the node of each class or `NOWHERE`, only
    what is on one node goes together.
    """
    classes = len(instance.count)
    share = node_shares(instance)
    most = float(np.clip(3 * share.max(axis=1).mean(), least, LARGEST_CLUSTER))
    partner = partners(instance)
    if home is not None:
        partner = np.where(
            (partner < 0) | (home == NOWHERE), -1, partner * len(instance.slots) + home
        )
    crossing = instance.edge_a != instance.edge_b
    a, b = instance.edge_a[crossing], instance.edge_b[crossing]
    traffic = (
        instance.edge_weight * instance.count[instance.edge_a] * instance.count[instance.edge_b]
    )[crossing]
    cluster = np.arange(classes)
    for growth in CLUSTER_GROWTH:  # small ones first: their traffic says which belong together
        pairs, which = np.unique(
            np.minimum(cluster[a], cluster[b]) * classes + np.maximum(cluster[a], cluster[b]),
            return_inverse=True,
        )
        one, two = pairs // classes, pairs % classes
        size = share.max(axis=1) + 1e-12
        worth_joining = np.bincount(which, traffic, minlength=len(pairs)) / np.sqrt(
            size[one] * size[two]
        )
        order = np.argsort(-worth_joining, kind="stable")
        join_clusters(one, two, order, share, partner, growth * most, cluster)
    return np.unique(cluster, return_inverse=True)[1]


def node_shares(instance: Instance) -> Floats:
    """Share of an average node that all tasks of a class take, by resource, [C, K]."""
    finite = np.isfinite(instance.capacity)
    mean = np.where(finite, np.maximum(instance.capacity, 0.0), 0.0).sum(axis=0) / np.maximum(
        finite.sum(axis=0), 1
    )
    unit = np.where(mean > 0, 1 / np.where(mean > 0, mean, 1.0), 0.0)
    return instance.count[:, None] * instance.demand.max(axis=0) * unit


def partners(instance: Instance) -> Ints:
    """Classes with the same number may join: one topology, the same pins, [C]; -1: may not join."""
    pins = np.zeros(len(instance.count), np.int64)
    if not (instance.allowed == instance.allowed[:1]).all():
        pins = np.unique(np.packbits(instance.allowed, axis=1), axis=0, return_inverse=True)[
            1
        ].ravel()
    alike = pins * (int(instance.group.max(initial=0)) + 1) + instance.group
    return np.where(instance.apart | (instance.count == 0), -1, alike)


@kernel
def join_clusters(
    one: Ints, two: Ints, order: Ints, share: Floats, partner: Ints, most: float, cluster: Ints
) -> None:
    """Join clusters pair by pair where both together take at most `most` of every resource.

    `share` of the first then counts for both.
    """
    for i in range(order.shape[0]):
        a, b = int(one[order[i]]), int(two[order[i]])
        while cluster[a] != a:
            a = int(cluster[a])
        while cluster[b] != b:
            b = int(cluster[b])
        if a == b or partner[a] < 0 or partner[a] != partner[b]:
            continue
        fits = True
        for r in range(share.shape[1]):
            if share[a, r] + share[b, r] > most:
                fits = False
        if fits:
            cluster[b] = a
            for r in range(share.shape[1]):
                share[a, r] += share[b, r]
    for c in range(cluster.shape[0]):
        a = int(cluster[c])
        while cluster[a] != a:
            a = int(cluster[a])
        cluster[c] = a


def merge_classes(instance: Instance, cluster: Ints) -> tuple[Instance, Ints]:
    """The instance with the classes of each cluster as one task, and its tasks of each class.

    Clusters are numbered 0..; a class alone in its cluster keeps its tasks. Traffic inside a
    cluster never crosses, so plans differ by the same traffic here and there. Classes of a cluster
    share pins and topology; none is kept apart.
    """
    clusters = int(cluster.max(initial=-1)) + 1
    alone = np.bincount(cluster, minlength=clusters)[cluster] == 1
    each = np.where(alone, 1, instance.count)
    count = np.ones(clusters, np.int64)
    count[cluster[alone]] = instance.count[alone]
    demand = np.zeros((len(instance.demand), clusters, instance.demand.shape[2]))
    for y in range(len(demand)):
        np.add.at(demand[y], cluster, instance.demand[y] * each[:, None])
    one = np.zeros(clusters, np.int64)
    one[cluster] = np.arange(len(cluster))  # any class of the cluster
    a, b = cluster[instance.edge_a], cluster[instance.edge_b]
    outside = (a != b) | (alone[instance.edge_a] & alone[instance.edge_b])
    low, high = np.minimum(a, b)[outside], np.maximum(a, b)[outside]
    weight = (instance.edge_weight * each[instance.edge_a] * each[instance.edge_b])[outside]
    pairs, which = np.unique(low * clusters + high, return_inverse=True)
    smaller = replace(
        instance,
        count=count,
        edge_a=pairs // clusters,
        edge_b=pairs % clusters,
        edge_weight=np.bincount(which, weight, minlength=len(pairs)).astype(np.float64),
        demand=demand,
        allowed=instance.allowed[one],
        apart=instance.apart[one],
        group=instance.group[one],
        memory=np.bincount(cluster, instance.memory * each, minlength=clusters),
    )
    return smaller, each
