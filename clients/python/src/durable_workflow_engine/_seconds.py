"""Waits, as callers give them: seconds, or what says so by its type."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

#: What is taken for a wait.
Seconds: TypeAlias = "float | timedelta"

#: Sockets and threads cannot wait for longer, and so wait for ever: eleven days.
_LIMIT = 1e6


def seconds(name: str, value: object) -> float:
    """The wait in seconds, which may be infinite.

    Raises:
        TypeError: it is none.
        ValueError: it is below 0, or no number.
    """
    number = _number(value)
    if number is None:
        raise TypeError(f"{name} must be seconds or a timedelta, not {value!r}")
    if not number >= 0:
        raise ValueError(f"{name} must be 0 or more, not {value!r}")
    return number


def seconds_until(value: object) -> float | None:
    """The same, or the time until then; below 0 is none at all. None: it says no time."""
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
    """For what cannot wait as long as that; None: for ever."""
    return wait if wait <= _LIMIT else None
