"""Examples that the page offers to start from."""

from __future__ import annotations

from headrace.model.examples import example
from headrace.serve.shelf import NotThere

# name -> what it is, and its files
EXAMPLES: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "quickstart": ("word count on five nodes, measured", (("quickstart.yaml",),)),
    "busy-word-count": (
        "a busy word count on the nine nodes of Muhammad",
        (("muhammad", "word-count-busy.yaml"), ("muhammad", "cluster.yaml")),
    ),
    "linear-small": (
        "Nasiri's linear topology on a small cluster",
        (("nasiri", "linear.yaml"), ("nasiri", "cluster-small.yaml")),
    ),
    "flight": (
        "Cao's flight delays, on machines to rent",
        (("cao", "flight.yaml"), ("cao", "vm-types.yaml")),
    ),
}


def example_files(name: str) -> list[dict[str, str]]:
    """The names and texts of an example's files."""
    if name not in EXAMPLES:
        raise NotThere(f"there is no example `{name[:40]}`; there are: {', '.join(EXAMPLES)}")
    paths = [example(*parts) for parts in EXAMPLES[name][1]]
    return [{"name": path.name, "text": path.read_text(encoding="utf-8")} for path in paths]
