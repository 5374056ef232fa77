"""One task that a worker has claimed: its handler, its claim, and what is said about it."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

from ..errors import EngineError, FatalError, RetryableError
from ..models import TaskOutcome, WorkerTask
from .context import LINE_LENGTH_MAX, Context, ThreadContext
from .events import Ending, TaskEnded
from .handlers import Handler
from .link import REFUSED, Result
from .talk import WAIT_MAX, WAIT_MIN, Talk, is_open, pause

log = logging.getLogger("durable_workflow_engine.worker")

#: Somebody else has the task.
GONE = frozenset({404, 409})

Trace = Callable[[Context | ThreadContext], AbstractContextManager[Any]]


class Job:
    """Does one task, and reports what came of it."""

    def __init__(self, task: WorkerTask, handler: Handler, talk: Talk) -> None:
        self.task = task
        self.is_running = True
        self._handler = handler
        self._talk = talk
        self._checkpoint_seq = task.checkpoint_seq
        self._saving = asyncio.Lock()
        #: When the server last said that the claim holds.
        self._heard_at = time.monotonic()
        self._is_lost = False
        self._is_reporting = False
        #: A failure that is held back is to be reported now.
        self._hurry = asyncio.Event()
        self._work: asyncio.Task[Any] | None = None
        kind = Context if handler.is_async else ThreadContext
        self._context = kind(task, self._save)

    async def run(self, threads: Executor, trace: Trace) -> TaskEnded:
        """Returns when the server has decided about the result, or somebody else has the task."""
        began = time.monotonic()
        error: BaseException | None = None
        self._work = asyncio.create_task(self._handle(threads, trace))
        try:
            result: Result = {"kind": "complete", "output": await self._work}
        except asyncio.CancelledError as cancelled:
            # By us, because nobody waits for it any more, or by the handler itself.
            error = cancelled
            result = _failure("the handler was cancelled", True)
        except Exception as raised:
            error = raised
            result = self._failure_of(raised)
        self.is_running = False
        self._talk.wake()
        if isinstance(error, RetryableError):
            await pause(self._hurry, error.retry_after)
        ending = await self._report(result)
        return TaskEnded(self.task, ending, time.monotonic() - began, error)

    def lose(self) -> None:
        """Somebody else has the task: nothing is reported."""
        self._is_lost = True
        self.abandon()

    def abandon(self) -> None:
        """The handler is to stop. If it has an output all the same, the server judges it."""
        if self._is_reporting:
            return
        self._context._cancel()
        self._hurry.set()
        # A thread cannot be stopped, and keeps its place until it ends.
        if self._work is not None and self._handler.is_async:
            self._work.cancel()

    def hurry(self) -> None:
        """Reports at once what is held back."""
        self._hurry.set()

    async def beat(self, lease: float) -> None:
        """Says that the task is worked on, and hears whether the claim holds.

        Args:
            lease: Seconds of silence after which it does not.
        """
        if self._is_reporting or self._is_lost:
            return
        outcome = await self._say({"kind": "heartbeat"})
        if outcome.status in GONE:
            log.warning("task %s is lost: %s", self.task.id, outcome.error)
            self.lose()
        elif outcome.status != 200 and time.monotonic() - self._heard_at > lease:
            log.warning("task %s may be lost: %s", self.task.id, outcome.error)
            self.abandon()

    # ------------------------------------------------------------ the handler

    async def _handle(self, threads: Executor, trace: Trace) -> dict[str, Any]:
        with trace(self._context):
            return await self._handler.run(self.task, self._context, threads)

    def _failure_of(self, error: Exception) -> Result:
        if isinstance(error, (RetryableError, FatalError)):
            return _failure(str(error), isinstance(error, RetryableError))
        lines = "".join(traceback.format_exception(error)).strip()
        self._context.log(lines[-LINE_LENGTH_MAX:], "error")
        return _failure(f"{type(error).__name__}: {error}", True)

    # ------------------------------------------------------------ the claim

    async def _say(self, result: Result) -> TaskOutcome:
        named = {"task_id": self.task.id, "claim_epoch": self.task.claim_epoch, **result}
        outcome = await self._talk.say(named)
        if outcome.status == 200:
            self._heard_at = time.monotonic()
        return outcome

    async def _report(self, result: Result) -> Ending:
        if self._is_lost or (self._context.cancelled and result["kind"] == "fail"):
            return "lost"
        self._is_reporting = True
        lines = self._context._logged()
        outcome = await self._say_until_decided({**result, "logs": lines} if lines else result)
        if outcome.status in REFUSED and result["kind"] == "complete":
            result = _failure(f"the output was refused: {outcome.error}", False)
            outcome = await self._say_until_decided(result)
        if outcome.status != 200:
            log.info("the result of task %s was not taken: %s", self.task.id, outcome.error)
            return "lost"
        if result["kind"] == "complete":
            return "completed"
        return "retried" if result["retryable"] else "failed"

    async def _say_until_decided(self, result: Result) -> TaskOutcome:
        """The epoch makes a second delivery harmless."""
        wait = WAIT_MIN
        while True:
            outcome = await self._say(result)
            if not is_open(outcome.status) or self._is_lost:
                return outcome
            await asyncio.sleep(wait * random.uniform(1, 1.25))
            wait = min(wait * 2, WAIT_MAX)

    async def _save(self, state: Mapping[str, Any]) -> None:
        """One after the other, since each names the number of the one before."""
        async with self._saving:
            outcome = await self._saved(state)
        if outcome.status in GONE:
            self.lose()
        if outcome.status != 200:
            raise EngineError(
                outcome.error or "the claim is lost",
                status=outcome.status,
                code=outcome.code or "",
            )

    async def _saved(self, state: Mapping[str, Any]) -> TaskOutcome:
        """What the server has decided about a checkpoint."""
        may_be_there = False
        while True:
            seq = self._checkpoint_seq
            said = {"kind": "heartbeat", "checkpoint_seq": seq, "checkpoint": state}
            outcome = await self._say(said)
            if outcome.status == 409:
                # The claim is lost; or the number is another one, since an earlier try was taken
                # and its answer was not heard.
                outcome = await self._say({"kind": "heartbeat"})
                if outcome.status == 200:
                    self._checkpoint_seq = outcome.checkpoint_seq or 0
                    if not (may_be_there and self._checkpoint_seq == seq + 1):
                        continue
            if not is_open(outcome.status) or self._is_lost:
                self._checkpoint_seq = outcome.checkpoint_seq or self._checkpoint_seq
                return outcome
            may_be_there = True
            await asyncio.sleep(WAIT_MIN)


def _failure(message: str, retryable: bool) -> Result:
    return {"kind": "fail", "message": message, "retryable": retryable}
