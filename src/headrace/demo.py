"""The files of the demo: a busy word count on the nine-node cluster of Muhammad, tables 4.1 and 4.2."""

from __future__ import annotations

from headrace.model.examples import example


def demo_files() -> tuple[str, ...]:
    """The two files."""
    return tuple(str(example("muhammad", name)) for name in ("word-count-busy.yaml", "cluster.yaml"))
