"""What is planned: topologies and machines, from files, from sections, or built in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.document import FORMAT, SECTIONS
from headrace.model.headroom import with_headroom
from headrace.model.output import save, text_for
from headrace.model.plan import made_from
from headrace.model.problem import Problem
from headrace.model.read import Inputs, read, validated
from headrace.model.section import Headroom
from headrace.model.topology import Topology
from headrace.model.what_if import WhatIf, apply_change
from headrace.model.workload import Workload


@dataclass(frozen=True, repr=False)
class Case:
    """Topologies, machines and what was measured: merged, checked, ready to be planned."""

    inputs: Inputs

    @cached_property
    def problem(self) -> Problem:
        """The frozen arrays that schedulers get."""
        return build(self.inputs)

    @property
    def workload(self) -> Workload:
        """What sizers and provisioners get."""
        return Workload(self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """The sections, as a file would have them."""
        return {"format": FORMAT, **made_from(self.inputs.document)}

    def save(self, file: str | Path) -> Path:
        """Write the sections as .yaml or .json."""
        return save(file, text_for(file, self.to_dict()))

    def what_if(
        self,
        *,
        rate_factor: float | None = None,
        without: Sequence[str] | str = (),
        add: Mapping[str, int] | None = None,
        price: Mapping[str, float] | None = None,
        set: Mapping[str, Any] | None = None,
    ) -> Case:
        """The case with a change: another load, nodes gone, machines more, other prices or values.

        >>> import headrace as hr
        >>> case = hr.load(hr.example("quickstart.yaml"))
        >>> case.what_if(rate_factor=2, without="small-3")
        <Case word-count: 4 components, 13 tasks on 4 nodes>
        """
        gone = (without,) if isinstance(without, str) else tuple(without)
        change = WhatIf(
            tuple((set or {}).items()),
            rate_factor,
            gone,
            tuple((add or {}).items()),
            tuple((price or {}).items()),
        )
        return Case(apply_change(self.inputs, change))

    def with_headroom(self, headroom: Headroom | None) -> Case:
        """The case with this share of every machine left free; None: as the files say."""
        return self if headroom is None else Case(with_headroom(self.inputs, headroom))

    def __repr__(self) -> str:
        from headrace.words import case_in_a_line

        return case_in_a_line(self.inputs)

    def _repr_html_(self) -> str:
        from headrace.page import problem_fragment

        return problem_fragment(self.problem)


@dataclass(frozen=True)
class Cluster:
    """Machines, built in Python: every call gives a new cluster.

    >>> import headrace as hr
    >>> hr.Cluster().add("big-{1..2}", cpu=800, memory_mb=16384, slots=4).section()
    {'nodes': {'big-{1..2}': {'cpu': 800, 'memory_mb': 16384, 'slots': 4}}}
    """

    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def add(self, name: str, **facts: Any) -> Cluster:
        """With a node, or with a range of alike ones such as `big-{1..3}`."""
        if name in self.nodes:
            raise InvalidInput(f"cluster: the node `{name}` is given twice")
        return Cluster({**self.nodes, name: facts})

    def section(self) -> dict[str, Any]:
        """The `cluster:` section of a file."""
        return {"nodes": {name: dict(facts) for name, facts in self.nodes.items()}}


Source = Case | str | Path | Mapping[str, Any]  # whatever a case can be made of


def load(*files: str | Path) -> Case:
    """Read files and merge their sections.

    >>> import headrace as hr
    >>> hr.load(hr.example("quickstart.yaml"))
    <Case word-count: 4 components, 13 tasks on 5 nodes>
    """
    if not files:
        raise InvalidInput("no file to load: name at least one")
    return Case(read([str(file) for file in files]))


def case(*parts: Mapping[str, Any] | Topology | Cluster, **sections: Any) -> Case:
    """A case from sections of the file format, from topologies and clusters, or from all of them.

    >>> import headrace as hr
    >>> words = hr.Topology("words").spout("feed", rate=100)
    >>> words = words.bolt("count", inputs={"feed": "shuffle"})
    >>> hr.case(words, hr.Cluster().add("n{1..2}", cpu=400, slots=2))
    <Case words: 2 components, 2 tasks on 2 nodes>
    """
    merged: dict[str, Any] = {}
    topologies = [part.section() for part in parts if isinstance(part, Topology)]
    given = [part for part in parts if not isinstance(part, Topology)]
    given += [{"topology": topologies[0]}] if len(topologies) == 1 else []
    given += [{"topologies": topologies}] if len(topologies) > 1 else []
    for part in [*given, sections]:
        content = {"cluster": part.section()} if isinstance(part, Cluster) else dict(part)
        for section in content:
            if section in merged and section != "format":
                raise InvalidInput(f"the section `{section}` is given twice")
        merged |= content
    for section in ("topology", "cluster"):
        if isinstance(merged.get(section), Topology | Cluster):
            merged[section] = merged[section].section()
    return Case(validated({"format": FORMAT, **merged}, {}))


def as_case(source: Source) -> Case:
    """A case, whatever it was given as: itself, a file, or sections."""
    if isinstance(source, Case):
        return source
    return load(source) if isinstance(source, str | Path) else case(source)


def example(*path: str) -> Path:
    """An example file that comes with Headrace, such as `quickstart.yaml`."""
    from headrace.model.examples import example as find

    return find(*path)


__all__ = ["SECTIONS", "Case", "Cluster", "Source", "as_case", "case", "example", "load"]
