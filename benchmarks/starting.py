"""Starting: what a first command costs beside `import numba`, in processor time, interleaved."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import Row

COMMAND = ("-m", "headrace.cli", "place")
# Warm: Python has compiled every module, and may do so even where a machine forbids it.
WARM = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    runs = 3 if quick else 9
    with tempfile.TemporaryDirectory() as folder:
        starter = str(Path(folder) / "app.yaml")
        subprocess.run([sys.executable, "-m", "headrace.cli", "init", starter], check=True)
        kinds: dict[str, Sequence[str]] = {
            "nothing": ("-c", "pass"),
            "numba": ("-c", "import numba"),
            "headrace": ("-c", "import headrace"),
            "place": (*COMMAND, starter),
            "place --by storm-even": (*COMMAND, starter, "--by", "storm-even"),
            "place --json": (*COMMAND, starter, "--json"),
        }
        for arguments in kinds.values():
            cpu_seconds(arguments)
        taken: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(runs):
            for name, arguments in kinds.items():
                taken[name].append(cpu_seconds(arguments))
    median = {name: statistics.median(values) for name, values in taken.items()}
    own = median["headrace"] - median["nothing"]
    yield Row("`import headrace`, beyond Python's own start", f"{own:.3f} s", "< 0.1 s", own < 0.1)
    yield Row("`import numba`", f"{median['numba']:.2f} s")
    for name, target in (("place", 1.8), ("place --json", None), ("place --by storm-even", None)):
        ratio = median[name] / median["numba"]
        wanted = "" if target is None else f"<= {target:g} x"
        holds = None if target is None else ratio <= target
        said = f"headrace {name} on the starter file, over `import numba`"
        yield Row(said, f"{ratio:.2f} x ({median[name]:.2f} s)", wanted, holds)


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Processor time of a Python process, its children's included."""
    process = subprocess.Popen([sys.executable, *arguments], env=WARM, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} ended with status {status}")
    return used.ru_utime + used.ru_stime
