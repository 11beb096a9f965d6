"""A few mutated files; `benchmarks/fuzzing.py` has ten thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FUZZING = Path(__file__).parents[1] / "benchmarks" / "fuzzing.py"


def test_mutated_files_are_answered_or_refused_in_words() -> None:
    command = [sys.executable, str(FUZZING), "--files", "25", "--first", "700"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "25 files, seeds 700 to 724: 0 faults" in found.stdout
