"""Kernels kept on disk: what one process compiled, others load, call and build upon."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KERNELS = """
from headrace.solve.compiled import compiled, kernel

@kernel
def double(x):
    return 2 * x

@compiled
def quadruple(x):
    return double(double(x))
"""


def test_a_kernel_is_loaded_and_linked_by_later_processes(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    first = call(tmp_path, "kernels.double(3)")
    second = call(tmp_path, "kernels.double(4)")
    third = call(tmp_path, "kernels.quadruple(5)")  # compiled now, from the kept `double`
    fourth = call(tmp_path, "kernels.quadruple(6)")  # kept, in a process that never saw `double`
    assert [first, second, third, fourth] == [
        ("6", True),
        ("8", False),
        ("20", True),
        ("24", False),
    ]


def call(folder: Path, expression: str) -> tuple[str, bool]:
    """What it gives, and whether anything had to be compiled."""
    done = subprocess.run(
        [sys.executable, "-c", f"import kernels; print({expression})"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), "compiling" in done.stderr
