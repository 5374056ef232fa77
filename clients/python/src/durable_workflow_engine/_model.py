"""What the generated models have in common, and how requests become JSON.

Reading is lenient, so that a newer server breaks no older client: members that are not known are
kept, and so are words that are none of those listed.
"""

from __future__ import annotations

import json
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
        ValueError: so has a number that is not finite, or a name that comes twice.
    """
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError("nan is not accepted")
        what = f"the number {value}, which is beyond the range of a double"
        raise ValueError(f"{what} is not accepted")
    if value is NULL:
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, BaseModel):
        return {name: encode(inner) for name, inner in _members(value).items()}
    if isinstance(value, Mapping):
        members = {_name(name): encode(inner) for name, inner in value.items()}
        if len(members) < len(value):
            names = [_name(name) for name in value]
            twice = next(name for name in names if names.count(name) > 1)
            what = f"the name {json.dumps(twice)} for a second member of one object"
            raise ValueError(f"{what} is not accepted")
        return members
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(inner) for inner in value]
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.astimezone()).isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _name(value: Any) -> str:
    if isinstance(value, Enum):
        return _name(value.value)
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON as the name of a member")


def to_json(encoded: Any) -> bytes:
    """The text of what `encode` gave."""
    try:
        return _dumps(encoded, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Halves of characters, which have no bytes: the server says where they are.
        return _dumps(encoded, ensure_ascii=True).encode()


def _dumps(encoded: Any, *, ensure_ascii: bool) -> str:
    return json.dumps(encoded, allow_nan=False, ensure_ascii=ensure_ascii, separators=(",", ":"))


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
