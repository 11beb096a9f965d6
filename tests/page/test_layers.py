"""Layers of a drawing: streams point right, boxes do not meet."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from headrace.page.layers import lay_out


def test_layers_point_right_and_boxes_do_not_meet() -> None:
    random = Random(1)
    for _ in range(30):
        count = random.randint(1, 25)
        edges = [
            (random.randrange(count), random.randrange(count)) for _ in range(random.randint(0, 40))
        ]
        layout = lay_out([50.0] * count, edges, gap=20.0)
        for (a, b), back, bends in zip(edges, layout.back, layout.bends, strict=True):
            assert back or layout.layer[a] < layout.layer[b]
            assert back or len(bends) == layout.layer[b] - layout.layer[a] - 1
        for layer in set(layout.layer):
            y = sorted(layout.y[v] for v in range(count) if layout.layer[v] == layer)
            assert all(below - above >= 70 - 1e-6 for above, below in pairwise(y))


def test_only_cycles_are_drawn_backwards() -> None:
    assert lay_out([1.0] * 4, [(0, 1), (1, 2), (0, 3), (3, 2)], gap=1.0).back == [False] * 4
    assert lay_out([1.0] * 3, [(0, 1), (1, 2), (2, 1), (2, 2)], gap=1.0).back == [
        False,
        False,
        True,
        True,
    ]


def test_a_crossing_that_can_be_avoided_is_avoided() -> None:
    layout = lay_out([1.0] * 4, [(0, 3), (1, 2)], gap=1.0)
    assert (layout.y[0] < layout.y[1]) == (layout.y[3] < layout.y[2])
