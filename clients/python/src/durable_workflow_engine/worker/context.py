"""What a handler is given beside its parameters."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from .._model import encode
from ..models import WorkerTask

#: Of one try, and of one line, as the server takes them.
LINES_MAX, LINE_LENGTH_MAX = 1_000, 8_192

Save = Callable[[Mapping[str, Any]], Awaitable[None]]


class _Context:
    """What both kinds of handlers are given."""

    def __init__(self, task: WorkerTask, save: Save) -> None:
        #: The whole task. An effect that should happen once carries a key that is the same in each
        #: try, such as its `instance_id` and `block_id` outside of loops.
        self.task = task
        self._save = save
        self._lines: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        self._cancelled = threading.Event()

    @property
    def attempt(self) -> int:
        """The try of the step, from 0."""
        return self.task.attempt

    @property
    def resume(self) -> Any:
        """What an earlier claimer of the task saved with `checkpoint`; None: nothing."""
        return self.task.resume_checkpoint

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context that the work belongs to."""
        return self.task.traceparent

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more: stop working."""
        return self._cancelled.is_set()

    def log(self, message: str, level: str = "info") -> None:
        """A line of the instance's logs (`instances.logs`), sent with the result.

        The newest 1,000 lines are kept, of each the first 8,192 characters.
        """
        now = datetime.now(timezone.utc).isoformat()
        self._lines.append({"ts": now, "level": level, "message": message[:LINE_LENGTH_MAX]})

    def _logged(self) -> list[dict[str, Any]]:
        return list(self._lines)

    def _cancel(self) -> None:
        self._cancelled.set()


class Context(_Context):
    """Of an asynchronous handler, whose task is cancelled besides when nobody waits for it."""

    async def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Saves how far the work got, for whoever has to take it over; at most 256 KiB.

        Raises:
            EngineError: it was refused, such as for its size.
            TypeError, ValueError: it has no form in JSON.
        """
        await self._save(encode(state))


class ThreadContext(_Context):
    """Of a plain function, which runs in a thread and has to look at `cancelled` by itself."""

    def __init__(self, task: WorkerTask, save: Save) -> None:
        super().__init__(task, save)
        self._loop = asyncio.get_running_loop()

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Saves how far the work got, for whoever has to take it over; at most 256 KiB.

        Raises:
            EngineError: it was refused, such as for its size.
            TypeError, ValueError: it has no form in JSON.
        """

        encoded = encode(state)

        async def save() -> None:
            await self._save(encoded)

        asyncio.run_coroutine_threadsafe(save(), self._loop).result()

    def wait_cancelled(self, seconds: float) -> bool:
        """Waits for so long, but not longer than anybody waits for the result."""
        return self._cancelled.wait(seconds)
