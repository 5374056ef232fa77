"""What comes at its worst: one table, for all ways into the server in TypeScript, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOSTILE = json.loads((Path(__file__).parent / "hostile.json").read_text())


def whole(text: list[Any]) -> str:
    """Its parts one behind the other; a pair is a text and how often it comes."""
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in text)
