"""The papers: claims are well formed, and the quick ones are measured again.

A claim called reproduced that no longer is fails here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.lab.claims import Measured, disagreements, read_paper
from headrace.lab.papers import Experiment, Table, readme, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAPERS = sorted(
    file.parent for file in (Path(__file__).resolve().parents[2] / "papers").glob("*/claims.toml")
)
IDS = [folder.name for folder in PAPERS]


@pytest.mark.parametrize("folder", PAPERS, ids=IDS)
def test_quick_claims_hold(folder: Path, spark: SparkSession) -> None:
    assert any(claim.quick for claim in read_paper(folder).claims)
    assert run(folder, quick=True, spark=lambda: spark) == []


@pytest.mark.parametrize("folder", PAPERS, ids=IDS)
def test_the_statuses_are_those_of_the_last_full_run(folder: Path) -> None:
    kept = json.loads((folder / "results.json").read_text())["measured"]
    measured = {name: Measured(**m) for name, m in kept.items()}
    paper = read_paper(folder)
    assert len(paper.claims) >= 6
    assert disagreements(paper.claims, measured) == []


def test_the_page_tells_claim_and_measurement_side_by_side() -> None:
    paper = read_paper(PAPERS[0])
    first = paper.claims[0]
    page = readme(
        paper,
        Experiment(
            {first.id: Measured(first.value)}, [Table("T", ["a", "b"], [[1, 0.5]])], {"p.svg": ""}
        ),
        1.0,
    )
    assert first.says in page
    assert "| 1 | 0.5 |" in page
    assert "![p](p.svg)" in page
