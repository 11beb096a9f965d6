"""Families of problems to compare schedulers on: the papers' own, and seeded random ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.examples import example
from headrace.model.nearest import nearest
from headrace.model.plan import made_from
from headrace.model.problem import Problem
from headrace.model.read import read, validated

RANDOM = 100  # random problems in their family


@dataclass(frozen=True, slots=True)
class Case:
    """A problem that can be sent to other machines: its sections as JSON text."""

    family: str
    name: str
    sections: str


def case(family: str, name: str, sections: dict[str, Any]) -> Case:
    """A case from sections, in their order: some schedulers break ties by it."""
    return Case(
        family, name, json.dumps({key: value for key, value in sections.items() if key != "format"})
    )


@lru_cache(maxsize=16)
def build_problem(sections: str) -> Problem:
    """The problem of a case; the same one is needed many times in a row."""
    return build(validated({"format": FORMAT, **json.loads(sections)}, {}))


def from_files(family: str, name: str, files: Sequence[str | Path]) -> Case:
    """A case from files, read and merged."""
    return case(family, name, made_from(read(files).document))


def micro(cluster: str) -> Iterator[Case]:
    """Three layouts of 10 to 32 tasks on one cluster."""
    for layout in ("linear", "diamond", "star"):
        for tasks in range(10, 34, 2):
            files = [
                example("eskandari", "micro", f"{part}.yaml")
                for part in (f"{layout}-{tasks}", cluster)
            ]
            yield from_files(f"micro-{cluster}", f"{layout}-{tasks}", files)


def homogeneous() -> Iterator[Case]:
    """Eskandari, section 6.2.1: linear, diamond and star of 10 to 32 tasks on ten equal nodes."""
    return micro("homogeneous")


def heterogeneous() -> Iterator[Case]:
    """The same on ten nodes of three sizes."""
    return micro("heterogeneous")


def applications() -> Iterator[Case]:
    """Eskandari, sections 6.2.2 and 6.3: applications and micro-benchmarks on Storm clusters."""
    for cluster in (
        "storm-1-high-2-low",
        "storm-2-high-2-low",
        "storm-2-high-4-low",
        "storm-8-high",
    ):
        for app in (
            "smart-home",
            "taxi-routes",
            "micro/storm-io-linear",
            "micro/storm-io-diamond",
            "micro/storm-io-star",
        ):
            yield from case_if_valid(
                "eskandari-storm",
                f"{app.removeprefix('micro/')} on {cluster}",
                [example("eskandari", f"{part}.yaml") for part in (app, cluster)],
            )


def muhammad() -> Iterator[Case]:
    """Muhammad, table 4.2: six scenarios of two topologies, and word count under load."""
    scenarios = (
        ("", ""),
        ("-4-workers", ""),
        ("-5-workers", ""),
        ("-4-workers", "-4-slots"),
        ("-5-workers", "-4-slots"),
        ("-5-workers", "-5-slots"),
    )
    for app in ("word-count", "exclamation"):
        for i, (workers, slots) in enumerate(scenarios, 1):
            files = [
                example("muhammad", f"{app}{workers}.yaml"),
                example("muhammad", f"cluster{slots}.yaml"),
            ]
            yield from_files("muhammad", f"{app}, scenario {i}", files)
    yield from_files(
        "muhammad",
        "busy word-count",
        [example("muhammad", f"{n}.yaml") for n in ("word-count-busy", "cluster")],
    )


def nasiri() -> Iterator[Case]:
    """Nasiri: three layouts on clusters of two sizes."""
    for layout in ("linear", "diamond", "star"):
        for cluster in ("small", "medium"):
            files = [
                example("nasiri", f"{layout}.yaml"),
                example("nasiri", f"cluster-{cluster}.yaml"),
            ]
            yield from case_if_valid("nasiri", f"{layout} on {cluster}", files)


def random() -> Iterator[Case]:
    """Seeded layered topologies on heterogeneous clusters."""
    for seed in range(RANDOM):
        yield case("random", f"seed {seed}", random_sections(seed))


def case_if_valid(family: str, name: str, files: Sequence[Path]) -> Iterator[Case]:
    """The case, unless its files do not make a problem together."""
    try:
        found = from_files(family, name, files)
        build_problem(found.sections)
    except HeadraceError:
        return
    yield found


def random_sections(seed: int) -> dict[str, Any]:
    """A layered topology of 3 to 10 components on unequal nodes with a fifth to a half to spare."""
    rng = np.random.default_rng([seed, 20])
    count = int(rng.integers(3, 11))
    components: dict[str, Any] = {}
    for i in range(count):
        spec: dict[str, Any] = {
            "tasks": int(rng.integers(1, 17)),
            "cpu": int(rng.integers(5, 61)),
            "memory_mb": int(rng.integers(64, 513)),
            "selectivity": round(float(rng.uniform(0.2, 2.0)), 2),
            "bytes": int(rng.integers(20, 400)),
        }
        if i < max(1, count // 5):
            spec |= {"spout": True, "rate": int(rng.integers(100, 5000))}
        else:
            sources = rng.choice(i, size=min(i, int(rng.integers(1, 3))), replace=False)
            groupings = rng.choice(
                ["shuffle", "fields", "shuffle", "all"], p=[0.5, 0.3, 0.15, 0.05], size=len(sources)
            )
            spec["inputs"] = {
                f"c{int(s)}": str(grouping) for s, grouping in zip(sources, groupings, strict=True)
            }
        components[f"c{i}"] = spec
    need = {
        key: sum(c["tasks"] * c[key] for c in components.values()) for key in ("cpu", "memory_mb")
    }
    largest = max(c["cpu"] for c in components.values())
    size = rng.choice([1.0, 2.0, 3.0], size=int(rng.integers(3, 13)))
    spare = float(rng.uniform(1.2, 1.5))
    cpu = np.maximum(size / size.sum() * need["cpu"] * spare, largest)
    memory = np.maximum(size / size.sum() * need["memory_mb"] * spare, 512)
    nodes = {
        f"n{i}": {
            "cpu": round(float(c), 1),
            "memory_mb": round(float(m), 1),
            "slots": 4,
            "rack": f"r{i % 2}",
            "cores": int(max(1, c // 100)),
        }
        for i, (c, m) in enumerate(zip(cpu, memory, strict=True))
    }
    return {
        "topology": {"name": f"random-{seed}", "components": components},
        "cluster": {"nodes": nodes},
    }


# name -> the cases; one line per family.
FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "micro-homogeneous": homogeneous,
    "micro-heterogeneous": heterogeneous,
    "eskandari-storm": applications,
    "muhammad": muhammad,
    "nasiri": nasiri,
    "random": random,
}


def cases(family: str) -> list[Case]:
    """All cases of a family."""
    if family not in FAMILIES:
        raise InvalidInput(
            f"no family `{family}`{nearest(family, list(FAMILIES))}; "
            f"there are: {', '.join(FAMILIES)}"
        )
    return list(FAMILIES[family]())
