"""A topology in Python: the components of a `topology:` section, and the code that each of them runs.

    Topology("word-count")
        .spout("sentence", sentences, tasks=2) .bolt("split", split, inputs={"sentence": "shuffle"},
        tasks=4) .bolt("count", count, inputs={"split": {"grouping": "fields", "fields": ["word"]}},
        tasks=4, state=COUNTS) .sink("count", Parquet("counts"))

Every call gives a new topology. `inputs` and all further keys of a component are those of the file
format, so that the same topology can be planned (`section()`) and run.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pydantic import ValidationError

from headrace.errors import InvalidInput
from headrace.model import document
from headrace.model.nearest import nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.run.sinks import Sink

Source = Callable[["SparkSession"], "DataFrame"]
Form = Literal["arrow", "pandas", "tuple"]
Function = Callable[..., Any]

KEYED_BY = ("fields", "global", "all")  # groupings that bring a key to the same task every time


@dataclass(frozen=True, slots=True)
class Keyed:
    """State of a bolt: a table with one row or more per key, kept from batch to batch.

    `key` names the columns that hold the key, in the order of the fields that the inputs are
    grouped by.
    """

    schema: pa.Schema
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        for column in self.key:
            if column not in self.schema.names:
                raise InvalidInput(
                    f"keyed state: no column `{column}`; the schema has {', '.join(self.schema.names)}"
                )
        if not self.key:
            raise InvalidInput("keyed state: at least one key column is needed")


@dataclass(frozen=True, slots=True)
class Work:
    """What a component does: a spout has a source and perhaps a function, a bolt has a function."""

    function: Function | None
    form: Form = "arrow"
    source: Source | None = None
    state: Keyed | None = None
    schema: pa.Schema | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A stream that leaves the topology."""

    component: str
    stream: str
    sink: Sink


@dataclass(frozen=True, slots=True)
class Topology:
    """Components with their code, and where results go."""

    name: str
    components: Mapping[str, document.Component] = field(
        default_factory=dict[str, document.Component]
    )
    work: Mapping[str, Work] = field(default_factory=dict[str, Work])
    outputs: tuple[Output, ...] = ()

    def spout(
        self, name: str, source: Source, function: Function | None = None, *, form: Form = "arrow", schema: pa.Schema | None = None, **facts: Any
    ) -> Topology:  # fmt: skip
        """With a spout: `source` makes a streaming DataFrame; `function`, if any, turns its rows into tuples."""
        return self._with(
            name, Work(function, form, source=source, schema=schema), {**facts, "spout": True}
        )

    def bolt(
        self,
        name: str,
        function: Function,
        *,
        inputs: Mapping[str, Any],
        form: Form = "arrow",
        state: Keyed | None = None,
        schema: pa.Schema | None = None,
        **facts: Any,
    ) -> Topology:
        """With a bolt: `function` over Arrow tables, pandas frames or single tuples (`form`)."""
        return self._with(
            name,
            Work(function, form, state=state, schema=schema),
            {**facts, "inputs": dict(inputs)},
        )

    def sink(self, component: str, sink: Sink, *, stream: str = "default") -> Topology:
        """With the output of a component sent to a sink."""
        return replace(self, outputs=(*self.outputs, Output(component, stream, sink)))

    def with_tasks(self, tasks: Mapping[str, int]) -> Topology:
        """With other task counts, such as those of a plan."""
        for name in tasks:
            self._known(name, "a task count")
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
                    source: _short(inputs) for source, inputs in component.inputs.items()
                }
        return {"name": self.name, "components": components}

    def document(self) -> dict[str, Any]:
        """A whole headrace/1 file that holds this topology."""
        return {"format": document.FORMAT, "topology": self.section()}

    def check(self) -> None:
        """Refuse what cannot run."""
        if not any(c.spout for c in self.components.values()):
            raise InvalidInput(
                f"topology `{self.name}`: there is no spout; a topology needs at least one"
            )
        for name, component in self.components.items():
            for source, inputs in component.inputs.items():
                self._known(source, f"an input of `{name}`")
                for one in inputs:
                    if one.grouping == "fields" and not one.fields:
                        raise InvalidInput(
                            f"`{name}`: the fields grouping of `{source}` names no fields"
                        )
            if not component.spout and not component.inputs:
                raise InvalidInput(f"`{name}`: a bolt needs inputs, and it has none")
            if (state := self.work[name].state) is not None:
                _check_state(name, component, state)
        for output in self.outputs:
            self._known(output.component, "a sink")

    def _known(self, name: str, wanted_by: str) -> None:
        if name not in self.components:
            raise InvalidInput(
                f"{wanted_by} names the component `{name}`, which there is not{nearest(name, list(self.components))}"
            )

    def _with(self, name: str, work: Work, facts: dict[str, Any]) -> Topology:
        if name in self.components:
            raise InvalidInput(f"topology `{self.name}`: the component `{name}` is given twice")
        if not name or "." in name or "/" in name:
            raise InvalidInput(
                f"component `{name}`: a name is not empty and holds no `.` and no `/`, since tasks are called component.N"
            )
        if work.form not in ("arrow", "pandas", "tuple"):
            raise InvalidInput(f"`{name}`: form {work.form!r} is not one of arrow, pandas, tuple")
        try:
            component = document.Component.model_validate(facts)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InvalidInput(
                f"`{name}`: {'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
            ) from None
        return replace(
            self, components={**self.components, name: component}, work={**self.work, name: work}
        )


def _check_state(name: str, component: document.Component, state: Keyed) -> None:
    groupings = [one for inputs in component.inputs.values() for one in inputs]
    for one in groupings:
        if one.grouping not in KEYED_BY:
            raise InvalidInput(
                f"`{name}`: keyed state needs every input grouped by {', '.join(KEYED_BY)}, and one is grouped by {one.grouping}"
            )
        if one.grouping == "fields" and len(one.fields) != len(state.key):
            raise InvalidInput(
                f"`{name}`: its state has {len(state.key)} key columns, and an input is grouped by {len(one.fields)} fields"
            )
    if {one.grouping for one in groupings} >= {"fields", "global"}:
        raise InvalidInput(
            f"`{name}`: keyed state is either spread by fields or held by the first task (global), not both"
        )


def _short(inputs: Sequence[document.Input]) -> Any:
    """Inputs as a person would write them: `shuffle`, or one mapping, or a list."""
    written = [
        one.grouping
        if one == document.Input(grouping=one.grouping)
        else one.model_dump(mode="json", exclude_defaults=True)
        for one in inputs
    ]
    return written[0] if len(written) == 1 else written


def held_by_first(component: document.Component) -> bool:
    """Whether the first task holds all keyed state, since all tuples go there."""
    return any(one.grouping == "global" for inputs in component.inputs.values() for one in inputs)


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
