"""The claimed tasks: runs their handlers, keeps their claims alive and reports the results.

A slot is free as soon as the handler has ended, even if its result is not sent yet.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from .._seconds import seconds_until
from ..errors import EngineError, FatalError, RetryableError
from ..models import WorkerTask
from .claim import Claim, Result
from .context import Context, ThreadContext
from .events import Ending, Failed, TaskEnded, TaskStarted, WorkerEvent
from .exchanges import Exchanges
from .handlers import Handler
from .lines import LINE_LENGTH_MAX
from .link import LOSS
from .outbox import Outcome
from .texts import json_of, member_of, storable, text_of

log = logging.getLogger("durable_workflow_engine.worker")

#: The handler ended because the worker is stopping: another worker may claim the task at once.
GIVEN_BACK: Result = {"kind": "heartbeat", "release": True}
#: The code for a result that was already accepted.
TAKEN = "ENG_RESULT_REPEATED"

#: The server's limit for messages, in characters.
MESSAGE_LENGTH_MAX = 500

Trace = Callable[[Context | ThreadContext], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Settings:
    """Settings of a worker; times in seconds."""

    handlers: Mapping[str, Handler]
    concurrency: int
    heartbeat: float
    lease: float
    trace: Trace
    tell: Callable[[WorkerEvent], None]


@dataclass(frozen=True)
class _Ended:
    """How a handler ended, and the report; None: no report."""

    ending: Ending
    result: Result | None = None
    error: BaseException | None = None
    retry_after: float = 0

    @property
    def retryable(self) -> bool | None:
        """Set for a failure."""
        is_failure = self.result is not None and self.result["kind"] == "fail"
        return self.result["retryable"] if self.result and is_failure else None


class Tasks:
    """
    Args:
        threads: For handlers that are plain functions.
    """

    def __init__(self, settings: Settings, threads: Executor) -> None:
        self._settings = settings
        self._threads = threads
        #: Claims to keep alive: those of running handlers, and of delayed failures.
        self._claims: set[Claim] = set()
        #: Pending until everything about a claim is reported.
        self._work: set[asyncio.Task[None]] = set()
        #: Number of delayed failures.
        self._held = 0
        self._stopping = asyncio.Event()
        self._running = 0

    @property
    def free_places(self) -> int:
        return self._settings.concurrency - self._running

    @property
    def is_idle(self) -> bool:
        return not self._work

    def begin(self, task: WorkerTask, exchanges: Exchanges) -> None:
        """Runs the handler of a claimed task."""
        self._running += 1
        run = _Run(task, self._settings.handlers[task.handler_name], exchanges)
        self._claims.add(run.claim)
        work = asyncio.create_task(self._do(run, exchanges))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        work.add_done_callback(lambda _: self._claims.discard(run.claim))

    def decline(self, task: WorkerTask, exchanges: Exchanges) -> None:
        """Declines a task because the worker is stopping: others may claim it at once."""
        claim = Claim(task, exchanges, is_async=True, on_cancel=lambda: None)
        claim.end()
        claim.say(GIVEN_BACK)

    def beat(self) -> None:
        """Sends heartbeats that are due."""
        for claim in list(self._claims):
            claim.beat(self._settings.heartbeat, self._settings.lease)

    def vouch(self, at: float) -> None:
        """No claim was lost before this time: see `Claim.vouch`."""
        for claim in self._claims:
            claim.vouch(at)

    async def done(self) -> None:
        """Returns when all tasks are done and reported. From now on no failure is delayed."""
        self._stopping.set()
        while self._work:
            await asyncio.wait(self._work)

    def cancel_all(self) -> None:
        """Cancels the handlers because the worker is stopping."""
        for claim in list(self._claims):
            claim.cancel("stopping")

    def give_up_all(self) -> None:
        """Handlers may continue, but their results are ignored."""
        for claim in list(self._claims):
            self._end(claim, _Ended("given_up"))

    def give_back_all(self) -> None:
        """Like `give_up_all`, but other workers may claim the tasks at once."""
        for claim in list(self._claims):
            if not claim.is_lost:
                claim.say(GIVEN_BACK)
            self._end(claim, _Ended("given_up"))

    async def close(self) -> None:
        """Ends everything without further reports."""
        self.give_up_all()
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    # ------------------------------------------------------------ one task

    async def _do(self, run: _Run, exchanges: Exchanges) -> None:
        claim = run.claim
        self._settings.tell(TaskStarted(claim.task))
        try:
            ended = await run.ended(self._threads, self._settings.trace)
        finally:
            self._running -= 1
            exchanges.schedule()
        if ended.retry_after > 0:
            await self._hold_back(ended.retry_after)
        # It may have been given up in the meantime.
        if claim not in self._claims:
            return
        self._end(claim, ended)
        if ended.result is not None:
            await self._report(claim, ended.result)

    def _end(self, claim: Claim, ended: _Ended) -> None:
        claim.end()
        self._claims.discard(claim)
        self._settings.tell(
            TaskEnded(claim.task, ended.ending, claim.seconds, ended.error, ended.retryable)
        )

    async def _hold_back(self, seconds: float) -> None:
        """At most as many as it can run: otherwise it would hold claims that other workers could
        use.
        """
        if self._held >= self._settings.concurrency:
            return
        self._held += 1
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        finally:
            self._held -= 1

    async def _report(self, claim: Claim, result: Result, *, has_logs: bool = True) -> None:
        """A result rejected because its claim is lost is dropped, unless it was accepted before.

        A result rejected as invalid is sent again without its log, which matters less than the
        result; after that, an output is reported as a failure.
        """
        if claim.is_lost:
            return
        outcome = await _outcome(claim, result, has_logs)
        if outcome.status in (0, 200) or result["kind"] == "heartbeat":
            return
        if outcome.status in LOSS:
            if outcome.code != TAKEN:
                message = "the result of %s was dropped: its claim is lost (%d)"
                log.warning(message, claim.name, outcome.status)
            return
        log.warning("the result of %s was rejected: %s", claim.name, outcome.error)
        self._settings.tell(
            Failed(EngineError(outcome.error, status=outcome.status), task=claim.task)
        )
        if has_logs and len(claim.context._lines) > 0:
            await self._report(claim, result, has_logs=False)
        elif result["kind"] == "complete":
            refused = failure(f"the output was rejected: {outcome.error}", retryable=False)
            await self._report(claim, refused)


async def _outcome(claim: Claim, result: Result, has_logs: bool) -> Outcome:
    try:
        return await claim.say(result, has_logs=has_logs and result["kind"] != "heartbeat")
    except (TypeError, ValueError, RecursionError) as error:
        # Not valid JSON: too many digits, or too deep.
        return Outcome(400, is_repeated=False, error=text_of(error))


class _Run:
    """The handler of one task, while it runs."""

    def __init__(self, task: WorkerTask, handler: Handler, exchanges: Exchanges) -> None:
        self._handler = handler
        self._work: asyncio.Task[dict[str, Any]] | None = None
        self.claim = Claim(task, exchanges, is_async=handler.is_async, on_cancel=self._cancel)

    def _cancel(self) -> None:
        # A thread cannot be stopped, and keeps its slot until it ends.
        if self._work is not None and self._handler.is_async:
            self._work.cancel()

    async def ended(self, threads: Executor, trace: Trace) -> _Ended:
        """Waits until the handler has ended."""
        claim = self.claim
        self._work = asyncio.create_task(self._handle(threads, trace))
        try:
            await asyncio.wait({self._work})
        except asyncio.CancelledError:
            self._work.cancel()
            raise
        finally:
            claim.end()
        error = asyncio.CancelledError() if self._work.cancelled() else self._work.exception()
        if error is None:
            if claim.is_lost:
                return _Ended("dropped")
            return _Ended("completed", {"kind": "complete", "output": self._work.result()})
        reason = claim.context.cancel_reason
        if reason == "stopping":
            return _Ended("given_up", GIVEN_BACK, error)
        if claim.is_lost or reason == "silent":
            return _Ended("dropped", error=error)
        return self._failed(error)

    async def _handle(self, threads: Executor, trace: Trace) -> dict[str, Any]:
        # SystemExit ends only the handler. A KeyboardInterrupt is for the process, unless it was
        # raised in a thread, which receives no signals.
        exits = (SystemExit,) if self._handler.is_async else (SystemExit, KeyboardInterrupt)
        try:
            with trace(self.claim.context):
                return await self._handler.run(self.claim.task, self.claim.context, threads)
        except exits as error:
            raise RetryableError(_named(error)) from error

    def _failed(self, error: BaseException) -> _Ended:
        """Exceptions are retryable unless they say otherwise."""
        context = self.claim.context
        retryable = member_of(error, "retryable", True) is not False
        retry_after = member_of(error, "retry_after")
        # By its type: reading its class attribute may raise.
        if issubclass(type(error), (RetryableError, FatalError)):
            message = text_of(error) or type(error).__name__
            details = member_of(error, "details")
            if details is not None:
                context.log(json_of(details), "error")
        elif issubclass(type(error), asyncio.CancelledError):
            limit = context.task.timeout_ms
            is_late = context.cancel_reason == "timeout"
            why = f"the time limit of {limit} ms was exceeded" if is_late else "it was cancelled"
            message = f"the handler did not end: {why}"
        else:
            message = _named(error)
            context.log(_traceback(error), "error")
        wait = seconds_until(retry_after)
        if wait is None:
            context.log(f"retry_after is not a valid time: {text_of(retry_after)}", "error")
        told = failure(message, retryable=retryable)
        return _Ended("failed", told, error, wait if retryable and wait else 0)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error)).strip()[-LINE_LENGTH_MAX:]
    except Exception:
        # Formatting it may raise.
        return _named(error)


def failure(message: str, *, retryable: bool) -> Result:
    """The report of a failed attempt."""
    told = storable(message, MESSAGE_LENGTH_MAX)
    return {"kind": "fail", "message": told, "retryable": retryable}
