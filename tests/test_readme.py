"""The README tells the truth about what there is."""

from __future__ import annotations

from pathlib import Path

from headrace.registry import entries

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SCHEDULERS = README.split("## Schedulers\n")[1].split("\n## ")[0]


def test_every_placement_scheduler_stands_in_the_table_with_its_maturity() -> None:
    rows = {
        line.split("|")[1].strip(" `"): line
        for line in SCHEDULERS.splitlines()
        if line.startswith("| `")
    }
    for entry in entries("place"):
        assert rows[entry.name].rstrip().endswith(f"| {entry.maturity} |")


def test_every_linked_document_exists() -> None:
    import re

    for link in re.findall(r"\]\(([^)#]+)\)", README):
        if not link.startswith("http"):
            assert (Path(__file__).parents[1] / link).exists(), link
