"""The conversation of a worker with its server: says what is to be said of tasks, and asks for new.

1. While nobody has work to give, one poll waits at the server, and what is to be said goes beside
   it at once.
2. While there is more work than places, results and the next poll are one request. What comes up
   while requests are under way goes with the next, so that batches grow with the load.
3. A poll never asks for more than the places that are free and that no other poll asks for.
4. A poll that waits carries no results: their outcomes would wait with it.
5. What was not answered is said again as it was, until it is. The epoch of the claim makes that
   harmless.
6. After a failure that a report may be to blame for, the reports of the request go apart, the
   smallest first, beside those that come up meanwhile: one that never arrives holds none of the
   others back.
7. No request is larger than what the server accepts, which its answers say.
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
from .complaints import DENIED, advised, complaint, is_refusal
from .events import Failed, Polled, Reported, WorkerEvent
from .link import REFUSED, Link
from .outbox import Outbox, Outcome, Report

log = logging.getLogger("durable_workflow_engine.worker")

#: Requests with results under way at once: the next batch is made while the server works on the one
#: before.
SENDING_MAX = 2
#: Of the results of one request: far below what a server takes. A larger one goes alone.
BATCH_BYTES_MAX = 2_000_000
#: Of a server that does not say what it accepts.
BODY_BYTES_MAX = 10_485_760
#: Of waits between tries, in seconds; and where asking again soon does not help, since somebody has
#: to act.
WAIT_MAX, DENIED_WAIT_MAX = 5.0, 30.0
#: How long the end of a poll that waits may take, in seconds.
POLL_END_MAX = 1.0
#: Nothing of the request was done.
UNDONE = frozenset({401, 403, 404, 405, 429})
#: Of an engine whose database is away.
AWAY = "ENG_DATABASE_DOWN"


class Exchanges:
    """
    Args:
        poll_wait: Seconds that a poll waits for work.
        room: Places for tasks that are free.
        take: Is given each task that was claimed.
        vouch: Is told that the database of the server was away for what was sent at that time, so
            that no claim was lost before it.
        tell: Is told of each request.
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
        #: A request without results, as it begins.
        named = {"worker_id": worker_id, **({} if version is None else {"version": version})}
        self._head = to_json(named)[:-1]
        #: What the server accepts of one result, logs included.
        self.result_bytes_max = 0
        self._accepted(BODY_BYTES_MAX)
        self._room_of_worker = room
        self._take = take
        self._vouch = vouch
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        #: Why the worker cannot go on: it was refused before it ever had an answer.
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._outbox = Outbox()
        self._under_way: set[asyncio.Task[Any]] = set()
        #: The poll that waits.
        self._waiting: asyncio.Task[Any] | None = None
        #: Requests with results under way, and places that polls under way ask for.
        self._sending = 0
        self._asked = 0
        self._is_polling = True
        self._is_closed = False
        #: An answer came. Before that no poll waits, so that a refusal is heard at once.
        self._has_met = False
        #: The last poll got all that it asked for: there may be more.
        self._is_busy = False
        self._is_scheduled = False
        #: Requests that failed in a row.
        self._failures = 0
        self._pause: asyncio.TimerHandle | None = None
        self._is_sending_aside = False
        #: Of those that have failed alone.
        self._aside_pause: asyncio.TimerHandle | None = None
        #: Who waits for all to be said.
        self._quiet: list[asyncio.Future[None]] = []

    def schedule(self) -> None:
        """Looks for what there is to do, behind what happens now: what ends together is said so."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._pump)

    def say(self, text: bytes, *, is_fleeting: bool = False) -> asyncio.Future[Outcome]:
        """Says one thing, which is JSON, together with what else is to be said."""
        report = Report(text, is_fleeting, self._loop.create_future())
        if self._is_closed:
            report.settle(0)
        elif len(text) > self.result_bytes_max:
            most = f"the {self.result_bytes_max} that the server accepts"
            report.settle(413, f"{len(text)} bytes are more than {most}")
        else:
            self._outbox.add(report)
            self.schedule()
        return report.outcome

    def _accepted(self, body_bytes_max: int) -> None:
        self.result_bytes_max = body_bytes_max - len(self._head + b',"results":[]}')

    def stop_polling(self) -> None:
        """Asks for no more.

        The server is asked to answer a poll that waits: one that is broken off may have been given
        tasks already. A server that does not do so soon takes back what it would have given.
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
            # A server that does not know how, or is away.
            pass
        waiting.cancel()

    async def quiet(self) -> None:
        """Returns when all is said and answered."""
        if not self._outbox.is_empty or self._under_way:
            waiting = self._loop.create_future()
            self._quiet.append(waiting)
            await waiting

    async def close(self) -> None:
        """Says nothing any more; whoever waits for an outcome is told that there is none."""
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
        # Whoever is interested has looked by now.
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
            # A report that leaves no room for a poll goes without one.
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
        """One request of those that are set aside, after the other."""
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
        """The places that nobody asks for; from now on somebody does."""
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
        """Whether it was answered."""
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
            # What was sent may be to blame, and what else is said goes on.
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
            log.info("the server answers again")
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
            # Others were judged: the server is well, and does not wait for these.
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
            # That it fails again says nothing about the server.
            if was_alone:
                return
        else:
            self._put_back(reports, may_have_arrived=meaning == "away")
        self._failures += 1
        if self._failures == 1:
            log.warning("%s", complaint(error))
            if meaning == "unclear" and is_alone:
                return
        longest = DENIED_WAIT_MAX if error.status in DENIED else WAIT_MAX
        self._pause_for(backoff(self._failures - 1, error.retry_after, longest))

    def _pause_for(self, wait: float) -> None:
        """Nothing is asked or said for a while."""
        if self._pause is not None:
            self._pause.cancel()
        if not self._is_closed:
            self._pause = self._loop.call_later(wait, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._pump()

    def _put_back(self, reports: Sequence[Report], *, may_have_arrived: bool) -> None:
        """They are said again, before all others."""
        self._outbox.put_back(self._lasting(reports, may_have_arrived))

    def _set_aside(self, reports: Sequence[Report]) -> None:
        """They are said again, apart."""
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
        """Those that are said again; the others are given up."""
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
    """What a failure says.

    Nothing was done, as the server says itself; the server is away, and nobody knows; or neither is
    clear, since nobody answered or somebody else did, so that a report may be to blame.
    """
    if error.code == UNREACHABLE or error.status == 429:
        return "undone"
    if not error.code.startswith("ENG_"):
        return "unclear"
    if error.status in UNDONE:
        return "undone"
    return "away" if error.status == 503 else "unclear"
