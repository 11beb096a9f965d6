"""How many nodes get which pattern: the rows that all such programs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.model.arrays import Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def pattern_rows(patterns: Ints, node_class: Any, node_classes: int) -> csr_array:
    """A row for the tasks of each class, then one for the nodes of each class; patterns [P, C]."""
    from scipy.sparse import csr_array, vstack  # scipy takes long to load

    number, ones = np.arange(len(patterns)), np.ones(len(patterns))
    nodes = csr_array((ones, (node_class, number)), shape=(node_classes, len(patterns)))
    return csr_array(vstack([csr_array(patterns.T.astype(np.float64)), nodes]))
