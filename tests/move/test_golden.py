"""Worked examples of block redistributions: tests/golden/move/blocks.yaml, derived by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.move.blocks import Blocks, classes, superclasses
from headrace.planner.moving import move_blocks

EXAMPLES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "golden" / "move" / "blocks.yaml").read_text()
)
IDS = [example["blocks"] for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_classes_and_superclasses(example: dict[str, Any]) -> None:
    blocks = Blocks.parse(example["blocks"])
    assert [c.units for c in classes(blocks)] == example["classes"]
    assert {s.number: dict(s.chain) for s in superclasses(blocks)} == example["superclasses"]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_steps_and_what_they_cost(example: dict[str, Any]) -> None:
    for by, expected in example["steps"].items():
        moves = move_blocks(example["blocks"], by)
        if expected["receivers"]:
            assert [step.cost for step in moves.steps] == expected["receivers"]
        assert (moves.one_port or moves.makespan) == expected["one_port"]
