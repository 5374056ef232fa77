"""The context that handlers receive in addition to their params."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from .._model import encode
from .._seconds import Seconds, limited, seconds
from ..models import WorkerTask
from .lines import Lines

#: Why a task was cancelled.
#:
#: - `lost`: the server reports that the claim is over: the instance was cancelled, or another
#: worker has the task
#: - `silent`: no heartbeat was acknowledged for the length of the lease, so another worker may have
#: the task
#: - `timeout`: the `timeout` of the step was exceeded
#: - `stopping`: the worker is stopping, and the task took longer than its `grace`
CancelReason: TypeAlias = Literal["lost", "silent", "timeout", "stopping"]

Save = Callable[[Mapping[str, Any]], Awaitable[None]]


class _Context:
    """The part that both kinds of context share."""

    def __init__(self, task: WorkerTask, save: Save) -> None:
        #: The task. Use its `idempotency_key`, which is the same in each attempt, for effects that
        #: should happen only once.
        self.task = task
        #: Why the task was cancelled; None if it was not.
        self.cancel_reason: CancelReason | None = None
        self._save = save
        self._lines = Lines()
        self._cancelled = threading.Event()

    @property
    def attempt(self) -> int:
        """The attempt of the step, from 0."""
        return self.task.attempt

    @property
    def resume(self) -> Any:
        """The value that the last attempt, or an earlier claim, saved with `checkpoint`; None if
        there is none.
        """
        return self.task.resume_checkpoint

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context of the task."""
        return self.task.traceparent

    @property
    def cancelled(self) -> bool:
        """Whether to stop, since the result is no longer needed."""
        return self._cancelled.is_set()

    def log(self, message: object, level: str = "info") -> None:
        """Writes a line to the log of the instance (`instances.logs`), sent with the result.

        The newest 1,000 lines are kept, with at most 8,192 characters each.
        """
        self._lines.add(level, message)

    def _cancel(self, reason: CancelReason) -> None:
        self.cancel_reason = reason
        self._cancelled.set()


class Context(_Context):
    """The context of an asynchronous handler, whose asyncio task is cancelled, too."""

    async def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Saves progress for a later claim or attempt; at most 256 KiB.

        Raises:
            EngineError: it was rejected, such as for its size, or the claim was lost.
            TypeError, ValueError: it has no JSON form.
        """
        await self._save(encode(state))


class ThreadContext(_Context):
    """The context of a plain function, which runs in a thread and must check `cancelled` itself."""

    def __init__(self, task: WorkerTask, save: Save) -> None:
        super().__init__(task, save)
        self._loop = asyncio.get_running_loop()

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Saves progress for a later claim or attempt; at most 256 KiB.

        Raises:
            EngineError: it was rejected, such as for its size, or the claim was lost.
            TypeError, ValueError: it has no JSON form.
        """

        encoded = encode(state)

        async def save() -> None:
            await self._save(encoded)

        asyncio.run_coroutine_threadsafe(save(), self._loop).result()

    def wait_cancelled(self, wait: Seconds) -> bool:
        """Waits at most this long for a cancellation; returns whether the task was cancelled."""
        return self._cancelled.wait(limited(seconds("wait", wait)))
