"""A worker: which handlers it serves, how many tasks at once, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from ..async_client import AsyncClient
from ..client import Client
from ..errors import EngineError
from ..models import WorkerTask
from .complaint import advised, refuse_builtins
from .context import Context, ThreadContext
from .events import TaskStarted, WorkerEvent
from .handlers import bind
from .job import Job
from .link import ExchangeLink
from .talk import WAIT_MAX, WAIT_MIN, Talk, is_open, pause

log = logging.getLogger("durable_workflow_engine.worker")

#: Of what is said after the grace is over, in seconds.
LAST_WORDS = 5.0


class Worker:
    """Serves handlers until it is stopped.

        worker = Worker(client, handlers={"charge": charge}, concurrency=50)
        worker.run()

    A handler is called with its params, or with its params and a `Context`; it gives the output of
    the step. What it takes and gives is checked where its annotations name a pydantic model.
    Asynchronous functions run as tasks, plain ones in threads. After `FatalError` the step has
    failed for good; after any other exception it is tried again, as its `retry` says.

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
        concurrency: int = 100,
        queues: Sequence[str] | None = None,
        worker_id: str | None = None,
        version: str | None = None,
        heartbeat: float = 15.0,
        lease: float = 60.0,
        poll_wait: float = 20.0,
        grace: float = 20.0,
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
        self._jobs: dict[asyncio.Task[None], Job] = {}
        self._beats: set[asyncio.Task[None]] = set()
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
        if self._is_stopped:
            return
        given = self._given
        client = AsyncClient.like(given) if isinstance(given, Client) else given
        self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="handler")
        try:
            await self._serve(client.with_options(retries=0))
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._loop = None
            if client is not given:
                await client.close()

    async def _serve(self, client: AsyncClient) -> None:
        await self._introduce(client)
        names = list(self._handlers)
        self._talk = Talk(
            ExchangeLink(client, self.worker_id, self._version, names, self._queues),
            poll_wait_ms=self._poll_wait_ms,
            room=self._room,
            take=self._take,
            tell=self._tell,
        )
        talking, beating = self._talk.run(), self._beat()
        background = [asyncio.create_task(talking), asyncio.create_task(beating)]
        stopping = asyncio.ensure_future(self._stopping.wait())
        refused = self._talk.refused
        try:
            ends: list[asyncio.Future[Any]] = [stopping, refused, *background]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in background:
                # It ends by itself only when it is broken.
                if task.done():
                    task.result()
            if refused.done():
                raise refused.result()
            await self._finish()
        finally:
            self._talk.close()
            for job in self._jobs.values():
                job.lose()
            left: list[asyncio.Future[Any]] = [stopping, *background, *self._beats, *self._jobs]
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
                if error.status != 0 and not is_open(error.status):
                    raise advised(error) from error
                log.warning("the server is not there yet: %s", error)
                await pause(self._stopping, max(wait, error.retry_after or 0))
                wait = min(wait * 2, WAIT_MAX)
            else:
                refuse_builtins(self._handlers, known.builtin)
                return

    async def _finish(self) -> None:
        """What is in hand is done and reported, as far as the grace allows."""
        self._talk.close()
        for job in self._jobs.values():
            job.hurry()
        if self._jobs:
            await asyncio.wait(self._jobs, timeout=self._grace)
        # A try that is cut off is no failure: somebody else gets it after a while of silence.
        for job in self._jobs.values():
            job.abandon()
        if self._jobs:
            await asyncio.wait(self._jobs, timeout=LAST_WORDS)

    # ------------------------------------------------------------ tasks

    def _room(self) -> int:
        """How many tasks more can be done. Results that are not taken yet are bounded as well."""
        if self._stopping.is_set():
            return 0
        running = sum(job.is_running for job in self._jobs.values())
        return min(self._concurrency - running, 2 * self._concurrency - len(self._jobs))

    def _take(self, task: WorkerTask) -> None:
        job = Job(task, self._handlers[task.handler_name], self._talk)
        doing = asyncio.create_task(self._do(job))
        self._jobs[doing] = job
        doing.add_done_callback(self._jobs.pop)
        self._tell(TaskStarted(task))

    async def _do(self, job: Job) -> None:
        self._tell(await job.run(self._threads, self._trace))
        self._talk.wake()

    async def _beat(self) -> None:
        """Says of all tasks in hand that they are worked on, in one request."""
        while True:
            await asyncio.sleep(self._heartbeat)
            for job in self._jobs.values():
                # The next round comes in time, whether or not this one is answered.
                beat = asyncio.create_task(job.beat(self._lease))
                self._beats.add(beat)
                beat.add_done_callback(self._beats.discard)

    def _tell(self, event: WorkerEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            log.exception("on_event failed")
