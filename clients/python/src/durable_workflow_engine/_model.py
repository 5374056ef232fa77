"""The base of the generated models, and the conversion of requests to JSON.

Reading is lenient, so that a newer server does not break an older client: unknown members and
unknown enum values are kept.
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


#: Clears a value in a change; None means not given.
NULL: Final = Null.NULL


class Model(BaseModel):
    """A type of the API. Unknown members are in `model_extra`."""

    # Most programs use few models: each is built on first use.
    model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Only members that were given, since most are often absent."""
        given = self.model_fields_set
        return (pair for pair in super().__repr_args__() if pair[0] in given)


def _known_or_new(value: Any, known: ValidatorFunctionWrapHandler) -> Any:
    try:
        return known(value)
    except ValidationError:
        if isinstance(value, str):
            return value
        raise


#: Marks enums to which a newer server may add values.
Open = _WrapValidator(_known_or_new)


class UnkeptError(ValueError):
    """A value that JSON cannot represent, with its position as the server reports it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._place = ""

    def within(self, step: str) -> UnkeptError:
        self._place = step + self._place
        return self

    def __str__(self) -> str:
        place = self._place.removeprefix(".") or "the top level"
        return f"{self.args[0]} is not accepted, at {place}"


def encode(value: Any) -> Any:
    """The value in the form that the `json` module accepts; for models, the members that were
    given.

    A time without a zone is taken as local time, since the API requires an offset.

    Raises:
        TypeError: a value has no JSON form.
        ValueError: a number is not finite, or a member name occurs twice.
    """
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise UnkeptError("nan")
        raise UnkeptError(f"the number {value}, which is beyond the range of a double")
    if value is NULL:
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, BaseModel):
        return _encode_members(_members(value))
    if isinstance(value, Mapping):
        members = _encode_members(value)
        if len(members) < len(value):
            names = [_name(name) for name in value]
            twice = next(name for name in names if names.count(name) > 1)
            raise UnkeptError(f"the name {json.dumps(twice)} for a second member of one object")
        return members
    if isinstance(value, (list, tuple, set, frozenset)):
        items = []
        for at, inner in enumerate(value):
            try:
                items.append(encode(inner))
            except UnkeptError as error:
                raise error.within(f"[{at}]") from None
        return items
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.astimezone()).isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _encode_members(members: Mapping[Any, Any]) -> dict[str, Any]:
    encoded = {}
    for name, inner in members.items():
        try:
            encoded[_name(name)] = encode(inner)
        except UnkeptError as error:
            raise error.within(f".{_name(name)}") from None
    return encoded


def _name(value: Any) -> str:
    if isinstance(value, Enum):
        return _name(value.value)
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be the name of a JSON member")


def to_json(encoded: Any) -> bytes:
    """The JSON text of a value returned by `encode`."""
    try:
        return _dumps(encoded, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Lone surrogates have no UTF-8 form: escaped, the server can report where they are.
        return _dumps(encoded, ensure_ascii=True).encode()


def _dumps(encoded: Any, *, ensure_ascii: bool) -> str:
    return json.dumps(encoded, allow_nan=False, ensure_ascii=ensure_ascii, separators=(",", ":"))


def _members(model: BaseModel) -> dict[str, Any]:
    """By their names in the API. A default other than None is the tag of a union."""
    fields = type(model).model_fields
    members = {
        field.alias or name: getattr(model, name)
        for name, field in fields.items()
        if name in model.model_fields_set or field.default not in (None, ...)
        if not (field.is_required() and name not in model.model_fields_set)
    }
    return {**members, **(model.model_extra or {})}
