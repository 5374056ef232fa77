"""Durations as callers pass them: seconds or a timedelta."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

#: The types of a duration.
Seconds: TypeAlias = "float | timedelta"

#: Sockets and threads cannot wait longer than eleven days, so longer waits are unlimited.
_LIMIT = 1e6


def seconds(name: str, value: object) -> float:
    """The duration in seconds, which may be infinite.

    Raises:
        TypeError: it is not a duration.
        ValueError: it is negative or not a number.
    """
    number = _number(value)
    if number is None:
        raise TypeError(f"{name} must be seconds or a timedelta, not {value!r}")
    if not number >= 0:
        raise ValueError(f"{name} must be 0 or more, not {value!r}")
    return number


def seconds_until(value: object) -> float | None:
    """Like `seconds`, or the time until a datetime; at least 0. None if it is not a valid time."""
    if value is None:
        return 0
    if isinstance(value, datetime):
        value = value.astimezone(timezone.utc) - datetime.now(timezone.utc)
    number = _number(value)
    return None if number is None or math.isnan(number) else max(0.0, number)


def _number(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def limited(wait: float) -> float | None:
    """For functions with a limited timeout; None: unlimited."""
    return wait if wait <= _LIMIT else None
