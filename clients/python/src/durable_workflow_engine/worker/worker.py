"""The worker: its options, its start and its stop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import math
import os
import signal
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from .._seconds import Seconds, seconds
from ..async_client import AsyncClient
from ..client import Client
from ..errors import EngineError
from ..models import WorkerTask
from .advice import advice_for
from .context import Context, ThreadContext
from .events import WorkerEvent
from .exchanges import Exchanges
from .handlers import bind
from .link import Link
from .tasks import Settings, Tasks

log = logging.getLogger("durable_workflow_engine.worker")

#: The server's limit for a long poll, in seconds.
POLL_WAIT_MAX = 60.0
#: Maximum number of handler and queue pairs in a poll.
PAIRS_MAX = 100
#: How long cancelled handlers of a stopping worker may take to end, in seconds.
CANCELLED_MAX = 1.0
#: How long a stopping worker tries to send its last results, in seconds.
LAST_WORDS_MAX = 5.0


class Worker:
    """Serves handlers until it is stopped.

        worker = Worker(client, handlers={"charge": charge}, concurrency=50)
        worker.run()

    A handler is called with its params, or with its params and a `Context`, and returns the output
    of the step. Params and output are validated if their annotations are pydantic models.
    Asynchronous functions run as tasks, plain ones in threads. After a `FatalError` the step fails
    permanently; after any other exception it is retried according to its `retry`.

    Args:
        client: Of a `Client` only URL, key and tenant are used; pass an `AsyncClient` if the
            connections need more than these.
        handlers: Functions by the name that steps have as their `handler`.
        concurrency: Maximum number of concurrent tasks, over all handlers.
        queues: Only tasks of these queues; None: tasks of all queues and without a queue.
        worker_id: Unique among workers that run at the same time. Default: host name, process id
            and random characters.
        version: The version of your program, shown in the list of workers.
        lease: Seconds without a heartbeat after which the server gives a task to another worker:
            its ENGINE_WORKER_REAPER_STALE_SECS.
        heartbeat: Seconds between heartbeats. Default: a quarter of `lease`.
        poll_wait: Seconds that a poll waits for tasks.
        grace: Seconds that running tasks have to finish after `stop`.
        complain_after: Seconds after which handlers and queues without a task are checked; 0:
            never.
        on_event: Called with each event, such as for metrics. It must not block.
        trace: A context manager around each handler, such as a span.

    Times are seconds or a timedelta.

    Raises:
        TypeError: a handler or a time is invalid.
        ValueError: there is no handler, or a number is out of range.
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
        lease: Seconds = 60.0,
        heartbeat: Seconds | None = None,
        poll_wait: Seconds = 20.0,
        grace: Seconds = 20.0,
        complain_after: Seconds = 60.0,
        on_event: Callable[[WorkerEvent], object] | None = None,
        trace: Callable[[Context | ThreadContext], AbstractContextManager[Any]] | None = None,
    ) -> None:
        if isinstance(client, Client) and client.has_transport:
            raise ValueError("a client with its own transport must be an AsyncClient")
        self.worker_id = worker_id or _new_worker_id()
        self._given = client
        self._queues = queues
        self._version = version
        self._poll_wait = min(seconds("poll_wait", poll_wait), POLL_WAIT_MAX)
        self._grace = seconds("grace", grace)
        self._complain_after = seconds("complain_after", complain_after)
        self._on_event = on_event
        silence = seconds("lease", lease)
        self._settings = Settings(
            handlers={name: bind(name, function) for name, function in handlers.items()},
            concurrency=concurrency,
            heartbeat=silence / 4 if heartbeat is None else seconds("heartbeat", heartbeat),
            lease=silence,
            trace=trace or (lambda _: contextlib.nullcontext()),
            tell=self._tell,
        )
        _expect_sound(self._settings, queues)
        #: Handlers and queues that have received a task.
        self._fed: tuple[set[str], set[str | None]] = (set(), set())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._is_ending = False
        #: Asynchronous hooks that are still running.
        self._hooks: set[asyncio.Future[Any]] = set()

    def run(self) -> None:
        """Serves until SIGTERM, SIGINT or `stop`, and finishes the running tasks.

        A second signal ends the process.

        Raises:
            EngineError: the server rejects the worker; the message suggests the cause.
        """
        asyncio.run(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)

        def stop() -> None:
            for name in signals:
                loop.remove_signal_handler(name)
            self.stop()

        for name in signals:
            # Only in the main thread, and not on Windows.
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(name, stop)
        await self.serve()

    def stop(self) -> None:
        """Stops claiming tasks; `run` and `serve` return when the running ones are done and
        reported.

        Tasks that take longer than `grace` are cancelled; a handler that does not end within a
        second after that is given up, and its task is offered again when its lease expires.
        Thread-safe.
        """
        self._is_stopped = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self) -> None:
        """Like `run`, for programs with their own event loop, which handle signals themselves."""
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        if self._is_stopped:
            return
        client = _asynchronous(self._given)
        threads = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="handler")
        try:
            await self._serve(client, threads)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            self._loop = None
            if client is not self._given:
                await client.close()

    async def _serve(self, client: AsyncClient, threads: ThreadPoolExecutor) -> None:
        self._is_ending = False
        tasks = Tasks(self._settings, threads)
        own = client.with_options(retries=0)

        def take(task: WorkerTask) -> None:
            # An open poll might claim the tasks that were just released.
            if self._is_stopped or self._is_ending:
                tasks.decline(task, exchanges)
                return
            self._fed[0].add(task.handler_name)
            self._fed[1].add(task.queue_name)
            tasks.begin(task, exchanges)

        exchanges = Exchanges(
            Link(own),
            worker_id=self.worker_id,
            version=self._version,
            handlers=list(self._settings.handlers),
            queues=self._queues,
            poll_wait=self._poll_wait,
            room=lambda: tasks.free_places,
            take=take,
            vouch=tasks.vouch,
            tell=self._tell,
        )
        exchanges.schedule()
        stopping = asyncio.ensure_future(self._stopping.wait())
        beating = asyncio.ensure_future(self._beat(tasks))
        advising = asyncio.ensure_future(self._advise(client))
        try:
            ends: list[asyncio.Future[Any]] = [stopping, exchanges.broken]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if exchanges.broken.done():
                exchanges.broken.result()
            await self._finish(tasks, exchanges)
        finally:
            await self._hand_back(tasks, exchanges)
            await exchanges.close()
            await tasks.close()
            left: list[asyncio.Future[Any]] = [stopping, beating, advising]
            for one in left:
                one.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _finish(self, tasks: Tasks, exchanges: Exchanges) -> None:
        """Waits until the running tasks are reported, or the grace period has passed."""
        exchanges.stop_polling()

        async def done() -> None:
            await tasks.done()
            await exchanges.quiet()

        finished = asyncio.ensure_future(done())
        try:
            await asyncio.wait({finished}, timeout=self._grace)
            if not finished.done():
                tasks.cancel_all()
                await asyncio.wait({finished}, timeout=CANCELLED_MAX)
                tasks.give_up_all()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(exchanges.quiet(), LAST_WORDS_MAX)
        finally:
            finished.cancel()

    async def _hand_back(self, tasks: Tasks, exchanges: Exchanges) -> None:
        """Releases the tasks, so that other workers may claim them at once."""
        self._is_ending = True
        exchanges.stop_polling()
        if tasks.is_idle:
            return
        tasks.give_back_all()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(exchanges.quiet(), LAST_WORDS_MAX)

    async def _beat(self, tasks: Tasks) -> None:
        while True:
            await asyncio.sleep(self._settings.heartbeat / 4)
            tasks.beat()

    async def _advise(self, client: AsyncClient) -> None:
        """Checks once for handlers and queues without a task."""
        if self._complain_after <= 0:
            return
        await asyncio.sleep(self._complain_after)
        handlers, queues = self._fed
        idle = [name for name in self._settings.handlers if name not in handlers]
        empty = [name for name in self._queues or () if name not in queues]
        if not idle and not empty:
            return
        # Problems with the server are reported by the polls.
        with contextlib.suppress(EngineError):
            for sentence in await advice_for(client, idle, empty):
                log.warning("%s", sentence)

    def _tell(self, event: WorkerEvent) -> None:
        if self._on_event is None:
            return
        try:
            told: object = self._on_event(event)
        except (Exception, SystemExit):
            log.exception("on_event failed")
        else:
            if inspect.isawaitable(told):
                hook = asyncio.ensure_future(told)
                self._hooks.add(hook)
                hook.add_done_callback(self._hooked)

    def _hooked(self, hook: asyncio.Future[Any]) -> None:
        self._hooks.discard(hook)
        if not hook.cancelled() and (error := hook.exception()) is not None:
            log.error("on_event failed", exc_info=error)


def _new_worker_id() -> str:
    """Readable and unique: containers often share host name and process id."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def _asynchronous(client: Client | AsyncClient) -> AsyncClient:
    """The client itself, or an AsyncClient with the URL, key and tenant of a blocking client."""
    if isinstance(client, AsyncClient):
        return client
    it = client.settings
    return AsyncClient(url=it.url, namespace=it.namespace, timeout=it.timeout).with_options(
        api_key=it.api_key, tenant=it.tenant
    )


def _expect_sound(settings: Settings, queues: Sequence[str] | None) -> None:
    if not settings.handlers:
        raise ValueError("a worker needs at least one handler")
    if queues is not None and not queues:
        raise ValueError("queues is empty; omit it to serve all queues")
    if len(settings.handlers) * len(queues or [None]) > PAIRS_MAX:
        raise ValueError(f"more than {PAIRS_MAX} combinations of a handler and a queue")
    if settings.concurrency < 1:
        raise ValueError("concurrency must be 1 or more")
    if not 0 < settings.heartbeat <= settings.lease / 2 < math.inf:
        raise ValueError("heartbeat must be greater than 0 and at most half of lease")
