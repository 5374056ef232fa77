"""The lines that a handler logs, kept within what the contract takes of one try and of one body."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timezone

from .._model import to_json
from .texts import storable, text_of

#: Of one try, and of one line, as the server takes them.
LINES_MAX, LINE_LENGTH_MAX, LEVEL_LENGTH_MAX = 1_000, 8_192, 32
#: What the line takes that says how many are missing, brackets included.
NOTE_BYTES = 128


class Lines:
    """Handlers may log from any thread."""

    def __init__(self) -> None:
        self._lines: deque[dict[str, str]] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, level: object, message: object) -> None:
        line = {
            "ts": datetime.now(timezone.utc).isoformat(),
            "level": storable(text_of(level), LEVEL_LENGTH_MAX),
            "message": storable(text_of(message), LINE_LENGTH_MAX),
        }
        self._lines.append(line)
        # One place is for the line that says how many are missing.
        if len(self._lines) == LINES_MAX:
            self._lines.popleft()
            self._dropped += 1

    def json(self, bytes_max: int) -> bytes:
        """As a list of JSON, of so many bytes at most; empty without lines.

        The oldest are dropped: the end tells more than the beginning.
        """
        lines = list(self._lines)
        kept: list[bytes] = []
        total = NOTE_BYTES
        for line in reversed(lines):
            text = to_json(line)
            total += len(text) + 1
            if total > bytes_max:
                break
            kept.append(text)
        dropped = self._dropped + len(lines) - len(kept)
        if dropped > 0 and bytes_max >= NOTE_BYTES:
            told = f"{dropped} earlier lines were left out"
            ts = lines[-len(kept)]["ts"]
            kept.append(to_json({"ts": ts, "level": "warn", "message": told}))
        return b"[" + b",".join(reversed(kept)) + b"]" if kept else b""
