"""The loop of a worker.

A claim is a lease: each result names its epoch, and when the server answers 404 or 409, somebody
else has the task by now. Results that are there at one moment are one request, which also asks for
as many tasks as there is room for. Only a worker that has nothing to say waits in a long poll.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from ..async_client import AsyncClient
from ..client import Client
from ..errors import EngineError, RetryableError
from ..models import TaskOutcome, WorkerTask
from .complaint import advised, refuse_builtins
from .context import Context, ThreadContext
from .events import Ending, Exchanged, TaskEnded, TaskStarted, WorkerEvent
from .handlers import Handler, bind
from .link import REFUSED, RESULTS_MAX, ExchangeLink, Link, Result, SingleLink, as_outcome

log = logging.getLogger("durable_workflow_engine.worker")

#: Of waits after a call that failed, in seconds.
WAIT_MIN, WAIT_MAX = 0.2, 5.0
#: Of what is said after the grace is over, in seconds.
LAST_WORDS = 5.0
#: Somebody else has the task.
GONE = frozenset({404, 409})
#: The key is no good: asking again does not help.
FORBIDDEN = frozenset({401, 403})
#: There are no exchanges here.
UNKNOWN_PATH = frozenset({404, 405})


@dataclass
class _Report:
    """A result that waits for its outcome."""

    result: Result
    outcome: asyncio.Future[TaskOutcome]


@dataclass(eq=False)
class _Job:
    """A task that this worker has claimed."""

    task: WorkerTask
    handler: Handler
    checkpoint_seq: int
    #: When the server last said that the claim holds, by `time.monotonic`.
    heard_at: float
    context: Context | ThreadContext = field(init=False)
    #: The handler at work; None once it has ended.
    running: asyncio.Task[Any] | None = None
    is_lost: bool = False
    is_reporting: bool = False
    saving: asyncio.Lock = field(default_factory=asyncio.Lock)

    def lose(self) -> None:
        """Nobody waits for the result: the handler is to stop."""
        if self.is_lost:
            return
        self.is_lost = True
        self.context._cancel()
        # A thread cannot be stopped, and keeps its place until it ends.
        if self.running is not None and self.handler.is_async:
            self.running.cancel()


class Worker:
    """Serves handlers until it is stopped.

        worker = Worker(client, handlers={"charge": charge}, concurrency=50)
        worker.run()

    A handler is called with its params, or with its params and a `Context`; it gives the output of
    the step. What it takes and gives is checked where its annotations name a pydantic model.
    Asynchronous functions run as tasks, plain ones in threads. `RetryableError` lets the step be
    tried again; any other exception fails it for good.

    Args:
        client: Whose address, key and tenant are used. A `Client` is only asked for these.
        handlers: Functions by the names that steps give as their `handler`.
        concurrency: How many tasks are done at once.
        queues: Only tasks of these queues; None: of every queue and of none.
        worker_id: Unique among the workers that run at the same time. Default: a new one.
        version: Of the worker, as the fleet shows it.
        heartbeat: Seconds between two signs of life; well below `lease`.
        lease: Seconds of silence after which the server gives a task to somebody else.
        poll_wait: Seconds that a poll waits for work.
        grace: Seconds that tasks in hand are given after `stop`.
        on_event: Told of what happens, such as for metrics. It must not block.
        trace: A context manager around each handler, such as a span.

    Raises:
        TypeError: a handler is none.
        ValueError: there is no handler, or a number makes no sense.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        *,
        handlers: Mapping[str, Callable[..., Any]],
        concurrency: int = 10,
        queues: Sequence[str] | None = None,
        worker_id: str | None = None,
        version: str | None = None,
        heartbeat: float = 15.0,
        lease: float = 60.0,
        poll_wait: float = 20.0,
        grace: float = 25.0,
        on_event: Callable[[WorkerEvent], None] | None = None,
        trace: Callable[[Context | ThreadContext], AbstractContextManager[Any]] | None = None,
    ) -> None:
        if not handlers:
            raise ValueError("a worker without handlers has nothing to do")
        if concurrency < 1:
            raise ValueError("concurrency must be 1 or more")
        if not 0 < heartbeat < lease:
            raise ValueError("heartbeat must be above 0 and below lease")
        self.worker_id = worker_id or f"worker-{uuid.uuid4()}"
        self._handlers = {name: bind(name, function) for name, function in handlers.items()}
        self._given = client
        self._concurrency = concurrency
        self._queues = queues
        self._version = version
        self._heartbeat = heartbeat
        self._lease = lease
        self._poll_wait_ms = round(poll_wait * 1000)
        self._grace = grace
        self._on_event = on_event
        self._trace = trace or (lambda _: contextlib.nullcontext())
        self._jobs: dict[asyncio.Task[None], _Job] = {}
        self._outbox: deque[_Report] = deque()
        self._beats: set[asyncio.Task[None]] = set()
        self._parked: asyncio.Task[None] | None = None
        #: Of the last exchange.
        self._trouble: EngineError | None = None
        #: Why this worker cannot go on.
        self._failure: EngineError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, or `stop`; finishes the tasks in hand.

        Raises:
            EngineError: the key or the tenant is refused.
            ValueError: a handler has the name of a built-in one.
        """
        asyncio.run(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            # Not in other threads than the first, and not on Windows.
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(name, self.stop)
        await self.serve()

    def stop(self) -> None:
        """Takes no more tasks; `run` and `serve` end when those in hand are done.

        May be called from any thread.
        """
        self._is_stopped = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self) -> None:
        """As `run`, for programs with a loop of their own, which care for signals themselves."""
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._wake = asyncio.Event()
        if self._is_stopped:
            return
        own = isinstance(self._given, Client)
        client = AsyncClient.like(self._given) if isinstance(self._given, Client) else self._given
        self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="handler")
        try:
            await self._serve(client.with_options(retries=0))
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._loop = None
            if own:
                await client.close()
        if self._failure is not None:
            raise self._failure

    async def _serve(self, client: AsyncClient) -> None:
        names = list(self._handlers)
        self._link: Link = ExchangeLink(client, self.worker_id, self._version, names, self._queues)
        await self._introduce(client)
        background = [asyncio.create_task(self._talk()), asyncio.create_task(self._beat())]
        self._wake.set()
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            # What runs in the background ends by itself only when it is broken.
            await asyncio.wait([stopping, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in background:
                if task.done():
                    task.result()
            await self._finish()
        finally:
            left: list[asyncio.Future[Any]] = [stopping, *background, *self._beats, *self._jobs]
            left += [self._parked] if self._parked is not None else []
            for job in self._jobs.values():
                job.lose()
            for one in left:
                one.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _introduce(self, client: AsyncClient) -> None:
        """Asks what is built in, which also shows whether key and tenant are right."""
        wait = WAIT_MIN
        while not self._stopping.is_set():
            try:
                known = await client.handlers()
            except EngineError as error:
                if not _is_passing(error):
                    raise advised(error) from error
                log.warning("the server is not there yet: %s", error)
                await self._pause(wait)
                wait = min(wait * 2, WAIT_MAX)
            else:
                refuse_builtins(self._handlers, known.builtin)
                return

    async def _finish(self) -> None:
        """What is in hand is done and reported, as far as the grace allows."""
        if self._parked is not None:
            self._parked.cancel()
        if self._jobs and self._failure is None:
            await asyncio.wait(self._jobs, timeout=self._grace)
        # A try that is cut off is no failure: somebody else gets it after a while of silence.
        for job in self._jobs.values():
            if not job.is_reporting:
                job.lose()
        if self._jobs and self._failure is None:
            await asyncio.wait(self._jobs, timeout=LAST_WORDS)

    # ------------------------------------------------------------ what is said

    @property
    def _room(self) -> int:
        """How many tasks more can be done."""
        if self._stopping.is_set() or self._parked is not None or self._failure is not None:
            return 0
        busy = sum(job.running is not None for job in self._jobs.values())
        return 0 if len(self._outbox) > RESULTS_MAX else max(0, self._concurrency - busy)

    async def _talk(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            # What ends in the same turn goes with the same request.
            await asyncio.sleep(0)
            while self._outbox or self._room > 0:
                if not self._outbox:
                    self._parked = asyncio.create_task(self._wait_for_tasks(self._room))
                    break
                reports = [self._outbox.popleft() for _ in range(self._next_count)]
                room = self._room
                tasks = await self._exchange(reports, room, 0)
                if room > 0 and len(tasks) < room:
                    # There is no more: what comes next is waited for beside what is said.
                    await asyncio.sleep(0)
                    if self._room > 0:
                        self._parked = asyncio.create_task(self._wait_for_tasks(self._room))

    @property
    def _next_count(self) -> int:
        return min(len(self._outbox), RESULTS_MAX)

    async def _wait_for_tasks(self, room: int) -> None:
        try:
            await self._exchange([], room, self._poll_wait_ms)
            await self._pause(self._patience())
        finally:
            self._parked = None
            self._wake.set()

    def _patience(self) -> float:
        """Seconds to leave the server alone after it was asked in vain."""
        if self._trouble is None:
            return 0
        return max(WAIT_MIN, self._trouble.retry_after or 0) * random.uniform(1, 4)

    async def _exchange(
        self, reports: Sequence[_Report], room: int, wait_ms: int
    ) -> Sequence[WorkerTask]:
        """Says and asks once. What was not answered has an outcome of its own."""
        results = [report.result for report in reports]
        began = time.monotonic()
        try:
            answer = await self._link.say(results, room, wait_ms)
        except EngineError as error:
            self._tell(Exchanged(len(results), 0, time.monotonic() - began, error))
            outcomes = self._outcomes_without_answer(results, error)
            _settle(reports, outcomes)
            return []
        if self._trouble is not None:
            log.info("the server answers again")
        self._trouble = None
        self._tell(Exchanged(len(results), len(answer.tasks), time.monotonic() - began))
        _settle(reports, answer.outcomes)
        for task in answer.tasks:
            self._take(task)
        return answer.tasks

    def _outcomes_without_answer(
        self, results: Sequence[Result], error: EngineError
    ) -> list[TaskOutcome]:
        if error.status in UNKNOWN_PATH and isinstance(self._link, ExchangeLink):
            log.warning("the server has no exchanges: everything is a call of its own")
            self._link = SingleLink(self._link)
            error = EngineError("not said yet")
        elif error.status in FORBIDDEN:
            self._failure = advised(error)
            self._stopping.set()
        elif self._trouble is None:
            log.warning("the server was asked in vain: %s", error)
        self._trouble = error
        return [as_outcome(result, error) for result in results]

    async def _say(self, job: _Job, result: Result) -> TaskOutcome:
        """Says one thing about a task, together with what else is to be said."""
        outcome: asyncio.Future[TaskOutcome] = asyncio.get_running_loop().create_future()
        named = {"task_id": job.task.id, "claim_epoch": job.task.claim_epoch, **result}
        self._outbox.append(_Report(named, outcome))
        self._wake.set()
        answer = await outcome
        if answer.status == 200:
            job.heard_at = time.monotonic()
        return answer

    async def _say_until_decided(self, job: _Job, result: Result) -> TaskOutcome:
        """The epoch makes a second delivery harmless."""
        wait = WAIT_MIN
        while True:
            outcome = await self._say(job, result)
            if not _is_open(outcome.status) or job.is_lost:
                return outcome
            await asyncio.sleep(wait * random.uniform(1, 1.25))
            wait = min(wait * 2, WAIT_MAX)

    # ------------------------------------------------------------ tasks

    def _take(self, task: WorkerTask) -> None:
        handler = self._handlers[task.handler_name]
        job = _Job(task, handler, task.checkpoint_seq, time.monotonic())
        save = self._saver(job)
        job.context = Context(task, save) if handler.is_async else ThreadContext(task, save)
        job.running = asyncio.create_task(self._run_handler(job))
        working = asyncio.create_task(self._work(job))
        self._jobs[working] = job
        working.add_done_callback(self._jobs.pop)
        self._tell(TaskStarted(task))

    async def _run_handler(self, job: _Job) -> Any:
        with self._trace(job.context):
            return await job.handler.run(job.task, job.context, self._threads)

    async def _work(self, job: _Job) -> None:
        began = time.monotonic()
        error: BaseException | None = None
        try:
            assert job.running is not None
            output = await job.running
            result: Result = {"kind": "complete", "output": output}
        except asyncio.CancelledError as cancelled:
            error = cancelled
            result = _failure("the handler was cancelled", True)
        except Exception as raised:
            error = raised
            result = self._failure_of(job, raised)
        finally:
            job.running = None
            self._wake.set()
        ending = await self._report(job, result)
        self._tell(TaskEnded(job.task, ending, time.monotonic() - began, error))

    def _failure_of(self, job: _Job, error: Exception) -> Result:
        if isinstance(error, RetryableError):
            return _failure(str(error), True)
        if type(error).__module__.startswith("durable_workflow_engine."):
            return _failure(str(error), False)
        job.context.log("".join(traceback.format_exception(error)).strip()[-8_000:], "error")
        return _failure(f"{type(error).__name__}: {error}", False)

    async def _report(self, job: _Job, result: Result) -> Ending:
        if job.is_lost:
            return "lost"
        job.is_reporting = True
        lines = job.context._logged()
        said = {**result, "logs": lines} if lines else result
        outcome = await self._say_until_decided(job, said)
        if outcome.status in REFUSED and result["kind"] == "complete":
            why = f"the output was refused: {outcome.error}"
            result = _failure(why, False)
            outcome = await self._say_until_decided(job, result)
        if outcome.status != 200:
            log.info("task %s: %s", job.task.id, outcome.error)
            return "lost"
        if result["kind"] == "complete":
            return "completed"
        return "retried" if result["retryable"] else "failed"

    def _saver(self, job: _Job) -> Callable[[Mapping[str, Any]], Any]:
        async def save(state: Mapping[str, Any]) -> None:
            async with job.saving:
                await self._save(job, state)

        return save

    async def _save(self, job: _Job, state: Mapping[str, Any]) -> None:
        was_open = False
        while True:
            seq = job.checkpoint_seq
            saved = {"kind": "heartbeat", "checkpoint_seq": seq, "checkpoint": state}
            outcome = await self._say(job, saved)
            if outcome.status == 409:
                # The claim is lost, or an earlier try was taken, whose answer was not heard.
                outcome = await self._say(job, {"kind": "heartbeat"})
                job.checkpoint_seq = outcome.checkpoint_seq or seq
                if outcome.status == 200 and not (was_open and job.checkpoint_seq == seq + 1):
                    continue
            if outcome.status in GONE:
                job.lose()
            if outcome.status == 200:
                job.checkpoint_seq = outcome.checkpoint_seq or job.checkpoint_seq
                return
            if job.is_lost or not _is_open(outcome.status):
                raise EngineError(
                    outcome.error or "the claim is lost",
                    status=outcome.status,
                    code=outcome.code or "",
                )
            was_open = True
            await asyncio.sleep(WAIT_MIN)

    async def _beat(self) -> None:
        """Says of all tasks in hand that they are worked on, in one request."""
        while True:
            await asyncio.sleep(self._heartbeat)
            beats = [self._beat_one(job) for job in self._jobs.values() if not job.is_reporting]
            # The next round comes in time, whether or not this one was answered.
            for beat in beats:
                task = asyncio.create_task(beat)
                self._beats.add(task)
                task.add_done_callback(self._beats.discard)

    async def _beat_one(self, job: _Job) -> None:
        outcome = await self._say(job, {"kind": "heartbeat"})
        is_over = time.monotonic() - job.heard_at > self._lease
        if outcome.status in GONE or (outcome.status != 200 and is_over):
            log.warning("task %s is lost: %s", job.task.id, outcome.error)
            job.lose()

    # ------------------------------------------------------------ small things

    def _tell(self, event: WorkerEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            log.exception("on_event failed")

    async def _pause(self, seconds: float) -> None:
        """Ends early when the worker stops."""
        if seconds > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)


def _settle(reports: Iterable[_Report], outcomes: Iterable[TaskOutcome]) -> None:
    for report, outcome in zip(reports, outcomes, strict=True):
        if not report.outcome.done():
            report.outcome.set_result(outcome)


def _failure(message: str, retryable: bool) -> Result:
    return {"kind": "fail", "message": message, "retryable": retryable}


def _is_open(status: int) -> bool:
    """Nobody knows yet what becomes of it."""
    return status >= 500 or status == 429


def _is_passing(error: EngineError) -> bool:
    return error.status == 0 or _is_open(error.status)
