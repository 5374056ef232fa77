"""What a handler is given beside its parameters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from .._model import encode
from .._seconds import Seconds, limited, seconds
from ..models import WorkerTask
from .lines import Lines

#: Why nobody waits for a result any more.
#:
#: - `lost`: the server said that the claim is over: the instance was cancelled, or another worker
#:   has the task
#: - `silent`: no heartbeat was answered for as long as the lease lasts, so that another worker may
#:   have the task
#: - `timeout`: the `timeout` of the step has passed
#: - `stopping`: the worker stops, and the task took longer than its `grace`
CancelReason: TypeAlias = Literal["lost", "silent", "timeout", "stopping"]

Save = Callable[[Mapping[str, Any]], Awaitable[None]]


class _Context:
    """What both kinds of handlers are given."""

    def __init__(self, task: WorkerTask, save: Save) -> None:
        #: The whole task. An effect that should happen once carries its `idempotency_key`, which is
        #: the same in each try.
        self.task = task
        #: Why it is cancelled; None: it is not.
        self.cancel_reason: CancelReason | None = None
        self._save = save
        self._lines = Lines()
        self._cancelled = threading.Event()

    @property
    def attempt(self) -> int:
        """The try of the step, from 0."""
        return self.task.attempt

    @property
    def resume(self) -> Any:
        """What the last try, or an earlier claim, saved with `checkpoint`; None: nothing."""
        return self.task.resume_checkpoint

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context that the work belongs to."""
        return self.task.traceparent

    @property
    def cancelled(self) -> bool:
        """Whether going on is of no use: stop working."""
        return self._cancelled.is_set()

    def log(self, message: object, level: str = "info") -> None:
        """A line of the instance's logs (`instances.logs`), sent with the result.

        The newest 1,000 lines are kept, of each the first 8,192 characters.
        """
        self._lines.add(level, message)

    def _cancel(self, reason: CancelReason) -> None:
        self.cancel_reason = reason
        self._cancelled.set()


class Context(_Context):
    """Of an asynchronous handler, whose task is cancelled besides when nobody waits for it."""

    async def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Saves how far the work got, for whoever has to take it over; at most 256 KiB.

        Raises:
            EngineError: it was refused, such as for its size; or the claim is lost.
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
            EngineError: it was refused, such as for its size; or the claim is lost.
            TypeError, ValueError: it has no form in JSON.
        """

        encoded = encode(state)

        async def save() -> None:
            await self._save(encoded)

        asyncio.run_coroutine_threadsafe(save(), self._loop).result()

    def wait_cancelled(self, wait: Seconds) -> bool:
        """Waits for so long, but no longer than going on is of use; whether it is of none."""
        return self._cancelled.wait(limited(seconds("wait", wait)))
