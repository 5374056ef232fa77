"""The exchange of a worker with its server: sends reports and polls for tasks.

1. While no tasks are waiting, one long poll is open, and reports are sent beside it at once.
2. Under load, results and the next poll share a request. Reports made while requests are in flight
   go with the next one, so batches grow with the load.
3. A poll asks for no more than the free slots that no other poll asks for.
4. A long poll carries no results, since their outcomes would wait with it.
5. Unanswered reports are resent unchanged until they are answered. The epoch of the claim makes
   that harmless.
6. After a failure that a report may have caused, the reports of that request are sent apart, the
   smallest first, beside newer ones: one that never arrives does not block the others.
7. No request exceeds the limit that the server announces in its responses.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal

from .._model import to_json
from .._request import backoff
from ..errors import UNREACHABLE, EngineError
from ..models import TasksExchanged, WorkerTask
from .events import Failed, Polled, Reported, WorkerEvent
from .failure_messages import DENIED, advised, failure_message, is_refusal
from .link import REFUSED, Link
from .outbox import Outbox, Outcome, Report

log = logging.getLogger("durable_workflow_engine.worker")

#: Concurrent requests with results: the next batch is built while the server handles the previous
#: one.
SENDING_MAX = 2
#: Size limit for the results of one request, far below the server's. A larger result is sent alone.
BATCH_BYTES_MAX = 2_000_000
#: Default for servers that do not announce their limit.
BODY_BYTES_MAX = 10_485_760
#: Limits of the backoff, in seconds: in general, and for errors that the operator has to fix.
WAIT_MAX, DENIED_WAIT_MAX = 5.0, 30.0
#: How long ending a long poll may take, in seconds.
POLL_END_MAX = 1.0
#: Nothing in the request took effect.
UNDONE = frozenset({401, 403, 404, 405, 429})
#: The code of an engine whose database is unavailable.
AWAY = "ENG_DATABASE_DOWN"


class Exchanges:
    """
    Args:
        poll_wait: Seconds that a poll waits for tasks.
        room: Returns the number of free slots.
        take: Called with each claimed task.
        vouch: Called when the database of the server was unavailable for a request sent at that
            time, so that no claim was lost before it.
        tell: Called with the event of each request.
    """

    def __init__(
        self,
        link: Link,
        *,
        worker_id: str,
        version: str | None,
        handlers: Sequence[str],
        queues: Sequence[str] | None,
        poll_wait: float,
        room: Callable[[], int],
        take: Callable[[WorkerTask], None],
        vouch: Callable[[float], None],
        tell: Callable[[WorkerEvent], None],
    ) -> None:
        self._link = link
        self._asking = {"handlers": handlers, **({} if queues is None else {"queues": queues})}
        self._poll_wait = poll_wait
        #: The beginning of a request without results.
        named = {"worker_id": worker_id, **({} if version is None else {"version": version})}
        self._head = to_json(named)[:-1]
        #: The server's limit for one result, including its log.
        self.result_bytes_max = 0
        self._accepted(BODY_BYTES_MAX)
        self._room_of_worker = room
        self._take = take
        self._vouch = vouch
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        #: Fails if the worker was rejected before any response.
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._outbox = Outbox()
        self._under_way: set[asyncio.Task[Any]] = set()
        #: The long poll.
        self._waiting: asyncio.Task[Any] | None = None
        #: Requests with results in flight, and slots that polls in flight ask for.
        self._sending = 0
        self._asked = 0
        self._is_polling = True
        self._is_closed = False
        #: A response has arrived. Before that polls do not wait, so that a rejection is noticed at
        #: once.
        self._has_met = False
        #: The latest poll returned as many tasks as it asked for: there may be more.
        self._is_busy = False
        self._is_scheduled = False
        #: Consecutive failed requests.
        self._failures = 0
        self._pause: asyncio.TimerHandle | None = None
        self._is_sending_aside = False
        #: Delays reports that have failed alone.
        self._aside_pause: asyncio.TimerHandle | None = None
        #: Those that wait until all reports are answered.
        self._quiet: list[asyncio.Future[None]] = []

    def schedule(self) -> None:
        """Sends what is due after the current events are handled, so that results that finish
        together are sent together.
        """
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._pump)

    def say(self, text: bytes, *, is_fleeting: bool = False) -> asyncio.Future[Outcome]:
        """Queues a report, which is JSON, to be sent with others."""
        report = Report(text, is_fleeting, self._loop.create_future())
        if self._is_closed:
            report.settle(0)
        elif len(text) > self.result_bytes_max:
            most = f"the server's limit of {self.result_bytes_max}"
            report.settle(413, f"{len(text)} bytes exceed {most}")
        else:
            self._outbox.add(report)
            self.schedule()
        return report.outcome

    def _accepted(self, body_bytes_max: int) -> None:
        self.result_bytes_max = body_bytes_max - len(self._head + b',"results":[]}')

    def stop_polling(self) -> None:
        """Stops polling.

        Asks the server to answer the long poll, since a poll that is aborted may already have been
        given tasks. If the server does not answer soon, the poll is aborted and the server reclaims
        the tasks.
        """
        self._is_polling = False
        if self._waiting is not None:
            self._start(self._end_poll(self._waiting))

    async def _end_poll(self, waiting: asyncio.Task[Any]) -> None:
        try:
            text = self._head + b',"end_polls":true}'
            await asyncio.wait_for(self._link.exchange(text, 0), POLL_END_MAX)
            await asyncio.wait({waiting}, timeout=POLL_END_MAX)
        except (EngineError, asyncio.TimeoutError):
            # The server does not support it, or is unavailable.
            pass
        waiting.cancel()

    async def quiet(self) -> None:
        """Returns when all reports are answered."""
        if not self._outbox.is_empty or self._under_way:
            waiting = self._loop.create_future()
            self._quiet.append(waiting)
            await waiting

    async def close(self) -> None:
        """Sends nothing more; pending outcomes are resolved as unanswered."""
        self._is_closed = True
        self._is_polling = False
        for pause in (self._pause, self._aside_pause):
            if pause is not None:
                pause.cancel()
        for report in self._outbox.empty():
            report.settle(0)
        for task in self._under_way:
            task.cancel()
        await self.quiet()
        # Whoever needs it has read it by now.
        if self.broken.done():
            self.broken.exception()

    # ------------------------------------------------------------ requests

    def _pump(self) -> None:
        self._is_scheduled = False
        outbox = self._outbox
        if outbox.is_empty and not self._under_way:
            for waiting in self._quiet:
                if not waiting.done():
                    waiting.set_result(None)
            self._quiet.clear()
        if self._is_closed or self._pause is not None:
            return
        while outbox.has_next and self._sending < SENDING_MAX:
            # A report that leaves no room for a poll is sent without one.
            limit = self._ask() if self._is_busy else 0
            room = self._batch_bytes(limit)
            reports = outbox.take(room)
            if limit > 0 and sum(len(it.text) + 1 for it in reports) > room:
                self._asked -= limit
                limit = 0
            self._sending += 1
            self._start(self._exchange(reports, limit, 0))
        is_paused = self._aside_pause is not None
        if not self._is_sending_aside and outbox.has_aside(is_paused=is_paused):
            self._is_sending_aside = True
            self._sending += 1
            self._start(self._exchange_aside(outbox.take_aside(self._batch_bytes(0))))
        if self._waiting is None and (limit := self._ask()) > 0:
            wait = self._poll_wait if self._has_met else 0
            self._waiting = self._start(self._exchange([], limit, wait))

    async def _exchange_aside(self, reports: Sequence[Report]) -> None:
        """Sends the requests with reports that were set aside, one at a time."""
        try:
            if await self._exchange(reports, 0, 0):
                self._outbox.received()
        finally:
            self._is_sending_aside = False

    def _batch_bytes(self, limit: int) -> int:
        return min(BATCH_BYTES_MAX, self.result_bytes_max - len(self._poll_text(limit, 0)))

    def _poll_text(self, limit: int, wait: float) -> bytes:
        if limit == 0:
            return b""
        asked = {**self._asking, "limit": limit, "wait_ms": round(wait * 1000)}
        return b',"poll":' + to_json(asked)

    def _ask(self) -> int:
        """Reserves the free slots that no poll asks for."""
        room = max(0, self._room_of_worker() - self._asked) if self._is_polling else 0
        self._asked += room
        return room

    def _start(self, exchange: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(exchange)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if task is self._waiting:
            self._waiting = None
        if not task.cancelled() and (defect := task.exception()) is not None:
            self._break(defect)
        self.schedule()

    async def _exchange(self, reports: Sequence[Report], limit: int, wait: float) -> bool:
        """Returns whether it was answered."""
        began = time.monotonic()
        listed = b',"results":[' + b",".join(it.text for it in reports) + b"]" if reports else b""
        text = self._head + self._poll_text(limit, wait) + listed + b"}"
        try:
            answer = await self._link.exchange(text, wait)
        except EngineError as error:
            self._failed(error, reports, limit, began)
        except asyncio.CancelledError:
            for report in reports:
                report.settle(0)
            raise
        except Exception as defect:
            if not self._has_met:
                raise
            # What was sent may be the cause; other reports are still sent.
            failed = EngineError(f"the exchange failed: {type(defect).__name__}: {defect}")
            failed.__cause__ = defect
            self._failed(failed, reports, limit, began)
        else:
            self._answered(answer, reports, limit, began)
            return True
        finally:
            self._sending -= bool(reports)
            self._asked -= limit
        return False

    def _answered(
        self, answer: TasksExchanged, reports: Sequence[Report], limit: int, began: float
    ) -> None:
        seconds = time.monotonic() - began
        if self._failures > 0:
            log.info("the server is reachable again")
        self._failures = 0
        self._has_met = True
        if answer.max_body_bytes is not None:
            self._accepted(answer.max_body_bytes)
        refused = 0
        unknown: list[Report] = []
        for report, outcome in zip(reports, answer.outcomes, strict=True):
            if outcome.status >= 500 or outcome.status == 429:
                unknown.append(report)
                if outcome.code == AWAY:
                    self._vouch(began)
            else:
                refused += outcome.status != 200
                told = (outcome.error or "", outcome.code or "", outcome.checkpoint_seq)
                report.settle(outcome.status, *told)
        if reports:
            self._tell(Reported(len(reports), refused, seconds))
        if unknown and len(unknown) == len(reports):
            self._put_back(unknown, may_have_arrived=True)
            self._pause_for(backoff(0))
        else:
            # If other reports were judged, the server is healthy, and only these are delayed.
            for report in unknown:
                self._set_aside([report])
        if limit > 0:
            self._is_busy = len(answer.tasks) >= limit
            self._tell(Polled(limit, len(answer.tasks), seconds))
        for task in answer.tasks:
            self._take(task)

    def _failed(
        self, error: EngineError, reports: Sequence[Report], limit: int, began: float
    ) -> None:
        if error.code == AWAY:
            self._vouch(began)
        is_alone = len(reports) == 1
        if reports and error.status in REFUSED:
            if is_alone and limit == 0:
                reports[0].settle(error.status, error.message, error.code)
            else:
                self._outbox.set_aside(reports, is_alone=is_alone)
            return
        self._tell(Failed(error))
        if is_refusal(error) and not self._has_met:
            self._break(advised(error))
            return
        meaning = _meaning(error)
        was_alone = is_alone and reports[0].failed_alone > 0
        if meaning == "unclear":
            self._set_aside(reports)
            # A repeated failure of this report says nothing about the server.
            if was_alone:
                return
        else:
            self._put_back(reports, may_have_arrived=meaning == "away")
        self._failures += 1
        if self._failures == 1:
            log.warning("%s", failure_message(error))
            if meaning == "unclear" and is_alone:
                return
        longest = DENIED_WAIT_MAX if error.status in DENIED else WAIT_MAX
        self._pause_for(backoff(self._failures - 1, error.retry_after, longest))

    def _pause_for(self, wait: float) -> None:
        """Sends nothing for a while."""
        if self._pause is not None:
            self._pause.cancel()
        if not self._is_closed:
            self._pause = self._loop.call_later(wait, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._pump()

    def _put_back(self, reports: Sequence[Report], *, may_have_arrived: bool) -> None:
        """They are resent before all others."""
        self._outbox.put_back(self._lasting(reports, may_have_arrived))

    def _set_aside(self, reports: Sequence[Report]) -> None:
        """They are resent apart."""
        lasting = self._lasting(reports, True)
        is_alone = len(reports) == 1
        self._outbox.set_aside(lasting, is_alone=is_alone)
        if not is_alone or not lasting:
            return
        if self._aside_pause is not None:
            self._aside_pause.cancel()
        wait = backoff(lasting[0].failed_alone - 1, longest=WAIT_MAX)
        self._aside_pause = self._loop.call_later(wait, self._resume_aside)

    def _resume_aside(self) -> None:
        self._aside_pause = None
        self._pump()

    def _lasting(self, reports: Sequence[Report], may_have_arrived: bool) -> list[Report]:
        """The reports to resend; the others are given up."""
        lasting: list[Report] = []
        for report in reports:
            if report.is_fleeting or self._is_closed:
                report.settle(0)
            else:
                report.is_repeated |= may_have_arrived
                lasting.append(report)
        return lasting

    def _break(self, error: BaseException) -> None:
        if not self.broken.done():
            self.broken.set_exception(error)


def _meaning(error: EngineError) -> Literal["undone", "away", "unclear"]:
    """What a failure means.

    `undone`: the server reports that nothing took effect. `away`: the server is unavailable, and
    the outcome is unknown. `unclear`: there was no response or a foreign one, and a report may be
    the cause.
    """
    if error.code == UNREACHABLE or error.status == 429:
        return "undone"
    if not error.code.startswith("ENG_"):
        return "unclear"
    if error.status in UNDONE:
        return "undone"
    return "away" if error.status == 503 else "unclear"
