"""What the generated models have in common, and how requests become JSON.

Reading is lenient, so that a newer server breaks no older client: members that are not known are
kept, and so are words that are none of those listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler
from pydantic import WrapValidator as _WrapValidator


class Null(Enum):
    """The type of `NULL`."""

    NULL = "null"


#: Takes a value away where a change is given it; None is what was not given.
NULL: Final = Null.NULL


class Model(BaseModel):
    """A shape of the API. Members that are not known stand in `model_extra`."""

    # Most programs use a few of them: each is made ready when it is used first.
    model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What was given, since most members are often absent."""
        given = self.model_fields_set
        return (pair for pair in super().__repr_args__() if pair[0] in given)


def _known_or_new(value: Any, known: ValidatorFunctionWrapHandler) -> Any:
    try:
        return known(value)
    except ValidationError:
        if isinstance(value, str):
            return value
        raise


#: Marks words of which a newer server may know more.
Open = _WrapValidator(_known_or_new)


def encode(value: Any) -> Any:
    """The value as the `json` module takes it; of models, the members that were given.

    A time without a zone is one of this machine, since the API wants an offset.

    Raises:
        TypeError: something in it has no form in JSON.
        ValueError: so has a number that is not finite.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no form in JSON")
    if value is NULL:
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, BaseModel):
        return {name: encode(inner) for name, inner in _members(value).items()}
    if isinstance(value, Mapping):
        return {str(name): encode(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(inner) for inner in value]
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.astimezone()).isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON: {value!r}")


def _members(model: BaseModel) -> dict[str, Any]:
    """By their names in the API. A default that is not None is the tag of a union."""
    fields = type(model).model_fields
    members = {
        field.alias or name: getattr(model, name)
        for name, field in fields.items()
        if name in model.model_fields_set or field.default not in (None, ...)
        if not (field.is_required() and name not in model.model_fields_set)
    }
    return {**members, **(model.model_extra or {})}
