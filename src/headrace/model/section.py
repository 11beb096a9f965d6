"""What every section of a file is made of: numbers with their range, and no unknown keys."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


def no_switch(value: Any) -> Any:
    """Refuse true and false, which would count as 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "a number is needed")
    return value


# Beyond these, products and quotients of a few numbers leave what a float can hold. No machine has
# as much, and nothing measured is as little.
LARGEST, LEAST = 1e15, 1e-15


def amount(value: Any) -> Any:
    """A number as it is, 0 in place of one that is as good as 0."""
    value = no_switch(value)
    return 0.0 if isinstance(value, float) and 0 < value < LEAST else value


# The range comes before the check, or the JSON Schema would lose it.
NotNegative = Annotated[
    float, Field(ge=0, le=LARGEST, allow_inf_nan=False), BeforeValidator(amount)
]
Positive = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False), BeforeValidator(amount)]
Share = Annotated[
    float, Field(ge=0, lt=1, allow_inf_nan=False), BeforeValidator(no_switch)
]  # of a whole, which itself is never meant
Count = Annotated[int, Field(ge=1, le=100_000_000), BeforeValidator(no_switch)]
Index = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(no_switch)]
Scalar = bool | int | float | str | None
Headroom = Share | dict[str, Share]  # of every resource, or resource -> share
Key = str | int  # one step of a path in a file: a name in a mapping, or a position in a list


class Section(BaseModel):
    """A mapping of the file; keys it does not know are errors."""

    # Built on first use: a command that reads no file does not wait for it.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
