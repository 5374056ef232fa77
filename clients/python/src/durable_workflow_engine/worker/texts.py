"""Converts whatever a handler logs or raises into text for the server: handles methods that raise,
bytes, and characters that cannot be stored. Never raises.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Characters that the server cannot store: U+0000 and lone surrogates.
_NOT_KEPT = re.compile("[\0\ud800-\udfff]")


def storable(text: str, characters_max: int) -> str:
    """At most this many characters; those that cannot be stored are replaced by U+FFFD."""
    return _NOT_KEPT.sub("\ufffd", text[:characters_max])


def text_of(value: Any) -> str:
    """Strings as they are, bytes as UTF-8, and everything else by its `str`."""
    try:
        if isinstance(value, str):
            return value
        if isinstance(value, (bytes, bytearray)):
            return value.decode(errors="replace")
        return str(value)
    except (Exception, SystemExit):
        return f"a {type(value).__name__} without a text form"


def json_of(value: Any) -> str:
    """As JSON, if possible."""
    try:
        return json.dumps(value, default=text_of, ensure_ascii=False)
    except (Exception, SystemExit):
        # It is cyclic, or has keys that are not strings.
        return text_of(value)


def member_of(value: Any, name: str, default: Any = None) -> Any:
    """Like `getattr`, but also if reading raises."""
    try:
        return getattr(value, name, default)
    except (Exception, SystemExit):
        return default
