"""Text for the server, made of whatever a handler logs or raises: methods that raise, bytes,
characters that no row can hold. Nothing in here raises.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: What no text of the server holds: U+0000, and halves of characters.
_NOT_KEPT = re.compile("[\0\ud800-\udfff]")


def storable(text: str, characters_max: int) -> str:
    """Of so many characters at most; what the server cannot store is replaced by U+FFFD."""
    return _NOT_KEPT.sub("\ufffd", text[:characters_max])


def text_of(value: Any) -> str:
    """A text as it is, bytes as UTF-8, and all else by its `str`."""
    try:
        if isinstance(value, str):
            return value
        if isinstance(value, (bytes, bytearray)):
            return value.decode(errors="replace")
        return str(value)
    except (Exception, SystemExit):
        return f"a {type(value).__name__} that has no text"


def json_of(value: Any) -> str:
    """As JSON, as far as it has a form in it."""
    try:
        return json.dumps(value, default=text_of, ensure_ascii=False)
    except (Exception, SystemExit):
        # It contains itself, or has members that are named by something else than a text.
        return text_of(value)


def member_of(value: Any, name: str, default: Any = None) -> Any:
    """As `getattr`, also where reading it raises."""
    try:
        return getattr(value, name, default)
    except (Exception, SystemExit):
        return default
