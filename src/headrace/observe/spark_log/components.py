"""Stages folded into components.

A stage of a streaming query comes back in every micro-batch, and one inside a loop in every turn.
Stages are the same component if they are of the same query (or call site), have the same operators,
read from the same components, and are the same one among such in their run. A run is a micro-batch,
an SQL execution, or a job.

A job lists the stages it could skip, since their output was there already, under new numbers. Such
a stage is the one that ran with the same last RDD.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CALL_SITE = re.compile(r"(?P<action>\S+) at (?:.*/)?(?P<file>[^/:]+?)(?:\.\w+)?:(?P<line>\d+)$")
OUTSIDE = re.compile(r"[^A-Za-z0-9_]+")
IN_PYTHON = re.compile(r"Python|Pandas|InArrow")
QUERY_STARTS = ("start at ", "toTable at ")
SPARKS_OWN_FILES = (
    "NativeMethodAccessorImpl",
    "<unknown>",
    "FutureTask",
    "CompletableFuture",
    "DirectMethodHandleAccessor",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as its events tell it."""

    id: int
    name: str  # "collect at app.py:12"
    tasks: int
    parents: tuple[int, ...]
    output_rdd: int | None
    operators: tuple[str, ...]
    job: int | None = None
    call_site: str | None = None  # of the SQL query it belongs to
    execution: str | None = None
    query: str | None = None
    batch: str | None = None
    description: str | None = None
    failure: str | None = None

    @property
    def origin(self) -> str:
        """The streaming query, or else the line of the program, it comes from."""
        site = self.call_site if self.execution is not None and self.call_site else self.name
        # A job that foreachBatch starts belongs to the query too, but comes from a line of its own.
        if self.query is not None and site.startswith(QUERY_STARTS):
            return _query_name(self.description) or "stream"
        return call_site(site)

    @property
    def run(self) -> tuple[str, str | int | None]:
        """What it ran in once."""
        if self.batch is not None:
            return ("batch", self.batch)
        return ("execution", self.execution) if self.execution is not None else ("job", self.job)


@dataclass(frozen=True, slots=True)
class Component:
    """Stages that are the same step of the program."""

    name: str
    stages: tuple[int, ...]
    inputs: tuple[str, ...]
    tasks: int  # of its largest run
    same_tasks: bool  # in every run
    operators: tuple[str, ...]
    query: str | None

    @property
    def in_python(self) -> bool:
        """Whether Python workers do part of its work."""
        return any(IN_PYTHON.search(operator) for operator in self.operators)


def fold(stages: Sequence[Stage], ran: set[int]) -> tuple[list[Component], list[str]]:
    """The components of the stages that ran, sources first, and notes on what is missing."""
    worker_of = _workers(stages, ran)
    notes: list[str] = []
    keys: dict[tuple[object, ...], list[Stage]] = {}
    key_of: dict[int, tuple[object, ...]] = {}
    number_of: dict[tuple[object, ...], int] = {}
    met: Counter[tuple[object, ...]] = Counter()
    lost: set[int] = set()
    # A stage's parents are numbered before it.
    for stage in sorted((s for s in stages if s.id in ran), key=lambda s: s.id):
        parents = [worker_of[p] for p in stage.parents if p in worker_of]
        lost.update(p for p in stage.parents if p not in worker_of)
        sources = tuple(sorted({number_of[key_of[p]] for p in parents}))
        step = (stage.query, stage.origin, stage.operators, sources)
        met[(*step, stage.run)] += 1
        key = (*step, met[(*step, stage.run)])
        number_of.setdefault(key, len(number_of))
        keys.setdefault(key, []).append(stage)
        key_of[stage.id] = key
    if lost:
        notes.append(
            f"stage {_list_some(sorted(lost))}: read from, but the log has no finished task of it; "
            "its readers count as sources"
        )
    names = _names([(runs[0].origin, runs[0].query) for runs in keys.values()])
    components: list[Component] = []
    for (key, runs), name in zip(keys.items(), names, strict=True):
        sources: tuple[int, ...] = key[3]  # pyright: ignore[reportAssignmentType] # as put together above
        counts = [stage.tasks for stage in runs]
        components.append(
            Component(
                name=name,
                stages=tuple(stage.id for stage in runs),
                inputs=tuple(names[source] for source in sources),
                tasks=max(1, *counts),
                same_tasks=len(set(counts)) == 1,
                operators=runs[0].operators,
                query=runs[0].query,
            )
        )
    return components, notes


def _workers(stages: Sequence[Stage], ran: set[int]) -> Mapping[int, int]:
    """Stage -> the stage that did its work: itself, or the latest before with the same last RDD."""
    latest: dict[int | None, int] = {}
    found: dict[int, int] = {}
    for stage in sorted(stages, key=lambda s: s.id):
        if stage.id in ran:
            found[stage.id] = latest[stage.output_rdd] = stage.id
        elif stage.output_rdd in latest:
            found[stage.id] = latest[stage.output_rdd]
    return found


def _names(origins: Sequence[tuple[str, str | None]]) -> list[str]:
    """Origins with a number where several share one: collect-app-12-1, collect-app-12-2."""
    unnamed = {
        origin: dict.fromkeys(q for o, q in origins if o == origin and q is not None)
        for origin, _ in origins
    }
    bases: list[str] = []
    for origin, query in origins:
        queries = list(unnamed[origin])
        bases.append(
            f"{origin}{queries.index(query) + 1}"
            if query is not None and len(queries) > 1
            else origin
        )
    shared, seen, taken = Counter(bases), Counter[str](), set[str]()
    names: list[str] = []
    for base in bases:
        seen[base] += 1
        name = f"{base}-{seen[base]}" if shared[base] > 1 else base
        while name in taken:
            name += "x"
        taken.add(name)
        names.append(name)
    return names


def call_site(site: str) -> str:
    """`collect at /opt/jobs/app.py:12` -> `collect-app-12`; files of Spark and Java are omitted."""
    match = CALL_SITE.search(site.strip())
    if match is None:
        return OUTSIDE.sub("-", site.split(" at ")[0]).strip("-") or "stage"
    words = [match["action"]]
    if not match["file"].startswith(SPARKS_OWN_FILES):
        words += [match["file"], match["line"]]
    return OUTSIDE.sub("-", "-".join(words)).strip("-") or "stage"


def _query_name(description: str | None) -> str | None:
    """The name a user gave to a streaming query: what is before its id in the job's description."""
    before, found, _ = (description or "").replace("<br/>", "\n").partition("id = ")
    return OUTSIDE.sub("-", before).strip("-") or None if found else None


def _list_some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return f"{shown} and {len(numbers) - 5} more" if len(numbers) > 5 else shown
