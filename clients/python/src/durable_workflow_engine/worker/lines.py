"""The log lines of a handler, within the limits of an attempt and of a request body."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timezone

from .._model import to_json
from .texts import storable, text_of

#: The server's limits for an attempt and for a line.
LINES_MAX, LINE_LENGTH_MAX, LEVEL_LENGTH_MAX = 1_000, 8_192, 32
#: Bytes reserved for the line about dropped lines, including brackets.
NOTE_BYTES = 128


class Lines:
    """Thread-safe, since handlers may log from any thread."""

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
        # One line is reserved for the note about dropped lines.
        if len(self._lines) == LINES_MAX:
            self._lines.popleft()
            self._dropped += 1

    def json(self, bytes_max: int) -> bytes:
        """As a JSON list of limited size; empty without lines.

        The oldest lines are dropped, since the last ones are more informative.
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
            told = f"{dropped} earlier lines were dropped"
            ts = lines[-len(kept)]["ts"]
            kept.append(to_json({"ts": ts, "level": "warn", "message": told}))
        return b"[" + b",".join(reversed(kept)) + b"]" if kept else b""
