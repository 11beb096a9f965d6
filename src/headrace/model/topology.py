"""A topology in Python: the `topology:` section of a file, and perhaps the code that it runs.

    Topology("word-count", workers=4)
    .spout("sentence", tasks=5, rate=2000)
    .bolt("split", inputs={"sentence": "shuffle"}, tasks=8, selectivity=7)

can be planned. With code for every component it can also run:

    Topology("word-count")
    .spout("sentence", sentences, tasks=2)
    .bolt("split", split, inputs={"sentence": "shuffle"}, tasks=4)
    .bolt("count", count, inputs={"split": BY_WORD}, tasks=4, state=COUNTS)
    .sink("count", Parquet("counts"))

Every call gives a new topology. Keys of the topology and of its components are those of the file
format, so that one description serves both (`section()`).
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import ValidationError

from headrace.errors import InvalidInput
from headrace.model import document
from headrace.model.durations import Duration, seconds_of
from headrace.model.keys import KEYED_BY, holding_of
from headrace.model.nearest import nearest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Source = Callable[["SparkSession"], "DataFrame"]
PartWriter = Callable[[Path, "pa.Table"], None]
Form = Literal["arrow", "pandas", "tuple"]
Function = Callable[..., Any]
Section = TypeVar("Section", bound=document.Section)

FORMS = ("arrow", "pandas", "tuple")
FACTS = (
    "workers",
    "priority",
    "bound_by",
    "isolated_machines",
    "worker_max_heap_mb",
    "fanout",
    "ackers",
    "core_per_task",
)  # keys of a file's topology


@dataclass(frozen=True, slots=True)
class Keyed:
    """State of a bolt: a table with one row or more per key, kept from batch to batch.

    `key` names the columns that hold the key, in the order of the fields that the inputs are
    grouped by. A call sees the rows of the keys that came, unless `whole` or an input that is not
    grouped by fields asks for all.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    whole: bool = False  # True: a call sees all keys of its task, not only those that came
    ttl: Duration | None = None  # event time after which a key that no batch touched is forgotten

    @property
    def ttl_s(self) -> float | None:
        return None if self.ttl is None else seconds_of(self.ttl, "the time to live of state")

    def __post_init__(self) -> None:
        assert self.ttl_s is None or self.ttl_s >= 0
        for column in self.key:
            if column not in self.schema.names:
                columns = ", ".join(self.schema.names)
                raise InvalidInput(f"keyed state: no column `{column}`; the schema has {columns}")
        if not self.key:
            raise InvalidInput("keyed state: at least one key column is needed")


class Sink(Protocol):
    """Takes the output of a component, batch by batch."""

    def check(self, run: str) -> None:
        """Refuse what cannot be written to, before anything starts; changes nothing."""
        ...

    def open(self, run: str) -> None:
        """Called once, when the first batch begins."""
        ...

    def parts(self, batch: int, attempt: str, scratch: Path) -> Path:
        """The folder for the parts of a batch; `scratch` is one that goes away by itself."""
        ...

    def writer(self) -> PartWriter:
        """What writes a part: it goes to the tasks, on any machine, and the sink does not."""
        ...

    def deliver(self, batch: int, parts: Path, files: Sequence[Path]) -> None:
        """Make a batch visible, before it commits; in the driver, again if the batch runs again."""
        ...


@dataclass(frozen=True, slots=True)
class Code:
    """What a component runs: a spout has a source and perhaps a function, a bolt a function."""

    function: Function | None = None
    form: Form = "arrow"
    source: Source | None = None
    state: Keyed | None = None
    schema: pa.Schema | None = None
    on_timer: Function | None = None  # called when the watermark has passed a timer
    each_batch: bool = False  # called once more after the rows of a batch, without rows


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column that says when a component's rows happened, and how late they may come."""

    column: str
    late_s: float


@dataclass(frozen=True, slots=True)
class Output:
    """A stream that leaves the topology."""

    component: str
    stream: str
    sink: Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Components, the code of those that have some, and where results go."""

    name: str = field(kw_only=False)
    workers: int | None = None  # what these eight mean, `headrace schema` says
    priority: int = 0
    bound_by: Literal["cpu", "memory", "network", "io"] = "cpu"
    isolated_machines: int | None = None
    worker_max_heap_mb: float | None = None
    fanout: Literal["copy", "divide", "tasks"] = "copy"
    ackers: int | Mapping[str, Any] | None = None
    core_per_task: bool = False
    components: Mapping[str, document.Component] = field(
        default_factory=dict[str, document.Component]
    )
    code: Mapping[str, Code] = field(default_factory=dict[str, Code])
    outputs: tuple[Output, ...] = ()
    times: Mapping[str, EventTime] = field(default_factory=dict[str, EventTime])

    def __post_init__(self) -> None:
        self._header()

    def spout(
        self,
        name: str,
        source: Source | None = None,
        function: Function | None = None,
        *,
        form: Form = "arrow",
        schema: pa.Schema | None = None,
        **facts: Any,
    ) -> Topology:
        """With a spout: `source` makes a streaming DataFrame, `function` tuples of its rows."""
        code = Code(function, form, source=source, schema=schema)
        return self._with(name, code, {**facts, "spout": True})

    def bolt(
        self,
        name: str,
        function: Function | None = None,
        *,
        inputs: Mapping[str, Any],
        form: Form = "arrow",
        state: Keyed | None = None,
        schema: pa.Schema | None = None,
        on_timer: Function | None = None,
        each_batch: bool = False,
        **facts: Any,
    ) -> Topology:
        """With a bolt: `function` over Arrow tables, pandas frames or single tuples (`form`)."""
        code = Code(
            function, form, state=state, schema=schema, on_timer=on_timer, each_batch=each_batch
        )
        return self._with(name, code, {**facts, "inputs": dict(inputs)})

    def sink(self, component: str, sink: Sink, *, stream: str = "default") -> Topology:
        """With the output of a component sent to a sink."""
        return replace(self, outputs=(*self.outputs, Output(component, stream, sink)))

    def event_time(self, component: str, column: str, late: Duration = "10 minutes") -> Topology:
        """With a component whose rows say in a column when they happened.

        The watermark follows the latest of them by `late`; a row that is older than the watermark
        leaves by the stream `late`.
        """
        self._check_known(component, "an event time")
        late_s = seconds_of(late, f"event time of `{component}`")
        return replace(self, times={**self.times, component: EventTime(column, late_s)})

    def with_tasks(self, tasks: Mapping[str, int]) -> Topology:
        """With other task counts, such as those of a plan."""
        for name in tasks:
            self._check_known(name, "a task count")
        changed = {
            name: c.model_copy(update={"tasks": tasks.get(name, c.tasks)})
            for name, c in self.components.items()
        }
        return replace(self, components=changed)

    def section(self) -> dict[str, Any]:
        """The `topology:` section of a file, for `headrace place` and all other commands."""
        self.check()
        components = {
            name: c.model_dump(mode="json", exclude_defaults=True)
            for name, c in self.components.items()
        }
        for name, component in self.components.items():
            if component.inputs:
                components[name]["inputs"] = {
                    source: _shorten(inputs) for source, inputs in component.inputs.items()
                }
        facts = self._header().model_dump(mode="json", exclude_defaults=True)
        return {"name": self.name, **facts, "components": components}

    def document(self) -> dict[str, Any]:
        """A whole headrace/1 file that holds this topology."""
        return {"format": document.FORMAT, "topology": self.section()}

    def check(self) -> None:
        """Refuse what cannot be planned."""
        if not any(c.spout for c in self.components.values()):
            raise InvalidInput(
                f"topology `{self.name}`: there is no spout; a topology needs at least one"
            )
        for name, component in self.components.items():
            for source in component.inputs:
                self._check_known(source, f"an input of `{name}`")
            if not component.spout and not component.inputs:
                raise InvalidInput(f"`{name}`: a bolt needs inputs, and it has none")
        for output in self.outputs:
            self._check_known(output.component, "a sink")

    def check_runnable(self) -> None:
        """Refuse what cannot run: also a component without code, or with state it cannot keep."""
        self.check()
        for name, component in self.components.items():
            code = self.code[name]
            needed = "source" if component.spout else "function"
            if getattr(code, needed) is None:
                raise InvalidInput(
                    f"`{name}` has no {needed}, so the topology `{self.name}` can be planned "
                    "but not run",
                    fix=f"give the {needed} of `{name}`",
                )
            _check_fields(name, component)
            if code.state is not None:
                _check_state(name, component, code.state)
            self._check_time(name, component, code)

    def _check_time(self, name: str, component: document.Component, code: Code) -> None:
        """Refuse timers and a time to live where no event time is known, or no key."""
        wish = "timers" if code.on_timer is not None else "a time to live"
        if code.on_timer is None and (code.state is None or code.state.ttl is None):
            return
        if code.state is None or holding_of(component) != "keys":
            raise InvalidInput(f"`{name}`: {wish} need keyed state, and inputs grouped by fields")
        every = [one.grouping for inputs in component.inputs.values() for one in inputs]
        if code.state.ttl is not None and (code.state.whole or set(every) != {"fields"}):
            raise InvalidInput(
                f"`{name}`: state with a time to live is touched key by key: it cannot be `whole`, "
                "and all inputs must be grouped by fields"
            )
        if not self.times:
            raise InvalidInput(
                f"`{name}`: {wish} need event time, and the topology has none",
                fix="name its column with Topology.event_time(component, column, late=..)",
            )

    def _check_known(self, name: str, wanted_by: str) -> None:
        if name not in self.components:
            raise InvalidInput(
                f"{wanted_by} names the component `{name}`, which there is not"
                f"{nearest(name, list(self.components))}"
            )

    def _header(self) -> document.Topology:
        """The section without its components."""
        facts = {key: getattr(self, key) for key in FACTS}
        where = f"topology `{self.name}`"
        return _validate(document.Topology, {"name": self.name, **facts}, where)

    def _with(self, name: str, code: Code, facts: dict[str, Any]) -> Topology:
        if name in self.components:
            raise InvalidInput(f"topology `{self.name}`: the component `{name}` is given twice")
        if not name or "." in name or "/" in name:
            raise InvalidInput(
                f"component `{name}`: a name is not empty and holds no `.` and no `/`, "
                "since tasks are called component.N"
            )
        if code.form not in FORMS:
            raise InvalidInput(f"`{name}`: form {code.form!r} is not one of {', '.join(FORMS)}")
        component = _validate(document.Component, facts, f"`{name}`")
        return replace(
            self, components={**self.components, name: component}, code={**self.code, name: code}
        )


def _validate(kind: type[Section], facts: dict[str, Any], where: str) -> Section:
    try:
        return kind.model_validate(facts)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        raise InvalidInput(f"{where}: {path}: {first['msg']}") from None


def _check_fields(name: str, component: document.Component) -> None:
    for source, inputs in component.inputs.items():
        for one in inputs:
            if one.grouping == "fields" and not one.fields:
                raise InvalidInput(f"`{name}`: the fields grouping of `{source}` names no fields")
            if one.order and one.grouping != "fields":
                raise InvalidInput(
                    f"`{name}`: `order` sorts the rows of a fields grouping, "
                    f"and `{source}` is grouped by {one.grouping}"
                )


def _check_state(name: str, component: document.Component, state: Keyed) -> None:
    groupings = [one for inputs in component.inputs.values() for one in inputs]
    for one in groupings:
        if one.grouping not in KEYED_BY:
            raise InvalidInput(
                f"`{name}`: keyed state needs every input grouped by {', '.join(KEYED_BY)}, "
                f"and one is grouped by {one.grouping}"
            )
        if one.grouping == "fields" and len(one.fields) != len(state.key):
            raise InvalidInput(
                f"`{name}`: its state has {len(state.key)} key columns, "
                f"and an input is grouped by {len(one.fields)} fields"
            )
    if {one.grouping for one in groupings} >= {"fields", "global"}:
        raise InvalidInput(
            f"`{name}`: keyed state is either spread by fields or held by the first task "
            "(global), not both"
        )


def _shorten(inputs: Sequence[document.Input]) -> Any:
    """Inputs as a person would write them: `shuffle`, or one mapping, or a list."""
    short = [
        one.grouping
        if one == document.Input(grouping=one.grouping)
        else one.model_dump(mode="json", exclude_defaults=True)
        for one in inputs
    ]
    return short[0] if len(short) == 1 else short


def task_name(component: str, number: int) -> str:
    """`split.3`; numbers count from 1."""
    return f"{component}.{number}"


def subscriptions(
    components: Mapping[str, document.Component],
) -> Sequence[tuple[str, str, document.Input]]:
    """All edges as (from, to, how), in the order of the file."""
    return [
        (source, name, one)
        for name, c in components.items()
        for source, inputs in c.inputs.items()
        for one in inputs
    ]
