"""Executors into slots by the pairs that communicate (Muhammad, algorithms 2, 5 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import Pairs

Affinity = Literal["pair", "group"]  # with the pair that opened the slot, or with all in it
Leftovers = Literal["slots", "modulo"]  # over slots with room, or over all by a counter


if TYPE_CHECKING:
    from scipy.sparse import csr_array


def sort_by_traffic(pairs: Pairs) -> Pairs:
    """Pairs with the most traffic first; equal ones keep their order."""
    order = np.argsort(-pairs.tuples_per_s, kind="stable")
    return Pairs(
        pairs.source[order],
        pairs.target[order],
        pairs.tuples_per_s[order],
        pairs.bytes_per_s[order],
    )


def group_by_pairs(
    pairs: Pairs, executors: int, workers: int, affinity: Affinity, leftovers: Leftovers
) -> Ints:
    """The slot of each executor: a pair opens a slot, and connected executors fill it up, [T].

    A pair opens a slot if neither of its two executors has one; a slot grows to
    ceil(executors / workers). Leftovers go in the order of the pairs and then of the executors.
    """
    from scipy.sparse import csr_array

    most = -(-executors // workers)
    slot_of = np.full(executors, -1, dtype=np.int64)
    weight = csr_array(
        (pairs.tuples_per_s, (pairs.source, pairs.target)), shape=(executors, executors)
    )
    weight = csr_array(weight + weight.T)
    slot = 0
    for source, target in zip(pairs.source.tolist(), pairs.target.tolist(), strict=True):
        if slot == workers:
            break
        if source == target or slot_of[source] >= 0 or slot_of[target] >= 0:
            continue
        slot_of[[source, target]] = slot
        to_seed = _row(weight, source) + _row(weight, target)
        to_group = to_seed.copy()
        size = 2
        while size < most:
            chosen = _frequently_communicating(
                to_group if affinity == "group" else to_seed, to_group, slot_of
            )
            if chosen is None:
                break
            slot_of[chosen] = slot
            to_group += _row(weight, chosen)
            size += 1
        slot += 1
    both = np.column_stack([pairs.source, pairs.target]).ravel()
    order = np.concatenate([both, np.arange(executors)])
    _, seen = np.unique(order, return_index=True)
    left = [e for e in order[np.sort(seen)].tolist() if slot_of[e] < 0]
    slot_of[left] = (
        np.arange(1, len(left) + 1) % workers
        if leftovers == "modulo"
        else slots_with_room(slot_of, slot, workers, most)[: len(left)]
    )
    return slot_of


def slots_with_room(slot_of: Ints, opened: int, workers: int, most: int) -> Ints:
    """A slot for each executor that still fits, round-robin: slots that no pair opened first."""
    size = np.bincount(slot_of[slot_of >= 0], minlength=workers)
    rounds = range(most)
    empty = [slot for _ in rounds for slot in range(opened, workers)]
    started = [slot for turn in rounds for slot in range(opened) if size[slot] + turn < most]
    return np.array(empty + started, dtype=np.int64)


def _frequently_communicating(preferred: Floats, fallback: Floats, slot_of: Ints) -> int | None:
    """The unassigned executor with most traffic to the seed pair, or else to the whole group."""
    for affinity in (preferred, fallback):
        open_affinity = np.where(slot_of < 0, affinity, 0.0)
        if open_affinity.max() > 0:
            return int(open_affinity.argmax())
    return None


def _row(weight: csr_array, executor: int) -> Floats:
    return np.asarray(weight[[executor], :].toarray()[0], dtype=np.float64)
