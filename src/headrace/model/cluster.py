"""The nodes of the cluster: ranges expanded, measured facts instead of stated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.components import expand
from headrace.model.document import MachineType, Node
from headrace.model.nearest import nearest
from headrace.model.read import Inputs
from headrace.model.section import Key


def nodes_of(inputs: Inputs) -> dict[str, Node]:
    """The cluster's nodes by name, with measured facts instead of stated ones."""
    cluster, inventory = inputs.document.cluster, inputs.document.inventory or {}
    if cluster is None and not inventory:
        raise InvalidInput("no cluster: give a file with `cluster`")
    nodes: dict[str, Node] = {}
    for pattern, node in (cluster.nodes if cluster else {}).items():
        path = ("cluster", "nodes", pattern)
        for name in expand_at(inputs, path, pattern):
            if name in nodes:
                raise inputs.invalid(path, f"the node `{name}` is given twice")
            nodes[name] = node
    for name, facts in inventory.items():
        if cluster is not None and name not in nodes:
            near = nearest(name, list(nodes))
            raise inputs.invalid(("inventory", name), f"the cluster has no node `{name}`{near}")
        measured = facts.model_dump(exclude_none=True, exclude={"power"})
        nodes[name] = nodes.get(name, Node()).model_copy(update=measured)
    if not nodes:
        raise inputs.invalid(
            ("cluster", "nodes"), "the cluster has no nodes; at least one is needed"
        )
    return nodes


def expand_at(inputs: Inputs, path: Sequence[Key], pattern: str) -> Iterator[str]:
    """The names of a range; a wrong range is an error that names its place in the file."""
    try:
        return expand(pattern)
    except InvalidInput as error:
        raise inputs.invalid(path, error.message) from None


def inventory_notes(inputs: Inputs) -> Iterator[str]:
    """One line for every stated fact of a node that a measured one replaces."""
    cluster = inputs.document.cluster
    stated = (
        {name: node for pattern, node in cluster.nodes.items() for name in expand(pattern)}
        if cluster
        else {}
    )
    for name, facts in (inputs.document.inventory or {}).items():
        for key, value in facts.model_dump(exclude_none=True, exclude={"power"}).items():
            before = (
                getattr(stated[name], key)
                if name in stated and key in stated[name].model_fields_set
                else None
            )
            if before is not None and before != value:
                yield f"inventory: {name}.{key} {before} -> {value}"


def mark_taken_slots(inputs: Inputs, nodes: Mapping[str, Node], slots: Ints) -> Bools:
    """Which slots are used by others, or do not exist, [N, most slots]."""
    taken = np.arange(max(1, int(slots.max())))[None, :] >= slots[:, None]
    for i, (name, node) in enumerate(nodes.items()):
        for slot in node.taken.slots:
            if slot >= slots[i]:
                raise inputs.invalid(
                    ("cluster", "nodes", name, "taken"),
                    f"slot {slot} of `{name}` is taken, "
                    f"but it has {slots[i]} slots, counted from 0",
                )
            taken[i, slot] = True
    return taken


def prices(catalog: Mapping[str, MachineType] | None, types: Sequence[str]) -> Floats:
    """The price of each machine type, [Y]; nan where the catalog does not have it."""
    return np.array([catalog[t].price if catalog and t in catalog else np.nan for t in types])


def collect_fact(nodes: Mapping[str, Node], key: str, absent: float) -> Floats:
    """One fact of every node, [N]; `absent` where the file does not say."""
    return np.array(
        [absent if (value := getattr(node, key)) is None else value for node in nodes.values()],
        dtype=np.float64,
    )
