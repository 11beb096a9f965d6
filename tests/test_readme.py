"""The README is short, and its first screen needs no knowledge of the field."""

from __future__ import annotations

from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README[: README.index("\n## ")]


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


def test_the_first_screen_shows_a_picture_and_no_table() -> None:
    assert "![" in FIRST_SCREEN
    assert "|" not in FIRST_SCREEN


def test_the_first_screen_has_no_word_of_the_trade() -> None:
    words = (
        "topolog", "spout", "bolt", "tuple", "slot", "rack", "worker", "scheduler", "selectivity",
        "throughput", "latency", "shuffle", "heuristic", "bound", "solver", "provision", "node",
    )  # fmt: skip
    assert [word for word in words if word in FIRST_SCREEN.lower()] == []
