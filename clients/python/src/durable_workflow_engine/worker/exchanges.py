"""The conversation of a worker with its server: says what is to be said of tasks, and asks for new.

1. While nobody has work to give, one poll waits at the server, and what is to be said goes beside
   it at once.
2. While there is more work than places, results and the next poll are one request. What comes up
   while requests are under way goes with the next, so that batches grow with the load.
3. A poll never asks for more than the places that are free and that no other poll asks for.
4. A poll that waits carries no results: their outcomes would wait with it.
5. What was not answered is said again as it was, until it is. The epoch of the claim makes that
   harmless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from .._request import backoff
from ..errors import EngineError
from ..models import WorkerTask
from .complaints import DENIED, advised, complaint, is_refusal
from .events import Failed, Polled, Reported, WorkerEvent
from .link import JUDGED, RESULTS_MAX, Answer, Link, Result

log = logging.getLogger("durable_workflow_engine.worker")

#: Requests with results under way at once: the next batch is made while the server works on the one
#: before.
SENDING_MAX = 2
#: Of waits between tries, in seconds; and where asking again soon does not help, since somebody has
#: to act.
WAIT_MAX, DENIED_WAIT_MAX = 5.0, 30.0
#: Nothing of the request was done.
UNDONE = frozenset({401, 403, 404, 405, 429})
#: Of an engine whose database is away.
AWAY = "ENG_DATABASE_DOWN"


@dataclass(frozen=True)
class Outcome:
    """What became of a result."""

    #: That of the request for one task; 0: nobody answered, and it is not said again.
    status: int
    #: It was said before, and may have arrived: a 409 then says nothing about the claim.
    is_repeated: bool
    error: str = ""
    #: Of a refusal.
    code: str = ""
    #: Of a heartbeat.
    checkpoint_seq: int | None = None


@dataclass
class _Report:
    """A result that waits for its outcome."""

    result: Result
    #: Not said again when nobody answers: the next one says the same.
    is_fleeting: bool
    outcome: asyncio.Future[Outcome]
    is_repeated: bool = False

    def settle(
        self, status: int, error: str = "", code: str = "", checkpoint_seq: int | None = None
    ) -> None:
        # Whoever waited may have gone.
        if not self.outcome.done():
            told = Outcome(status, self.is_repeated, error, code, checkpoint_seq)
            self.outcome.set_result(told)


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
        poll_wait: float,
        room: Callable[[], int],
        take: Callable[[WorkerTask], None],
        vouch: Callable[[float], None],
        tell: Callable[[WorkerEvent], None],
    ) -> None:
        self._link = link
        self._poll_wait_ms = round(poll_wait * 1000)
        self._room_of_worker = room
        self._take = take
        self._vouch = vouch
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        #: Why the worker cannot go on: it was refused before it ever had an answer.
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._outbox: deque[_Report] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        #: The poll that waits.
        self._waiting: asyncio.Task[None] | None = None
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
        #: Who waits for all to be said.
        self._quiet: list[asyncio.Future[None]] = []

    def schedule(self) -> None:
        """Looks for what there is to do, behind what happens now: what ends together is said so."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._pump)

    def say(self, result: Result, *, is_fleeting: bool = False) -> asyncio.Future[Outcome]:
        """Says one thing, together with what else is to be said."""
        report = _Report(result, is_fleeting, self._loop.create_future())
        if self._is_closed:
            report.settle(0)
        else:
            self._outbox.append(report)
            self.schedule()
        return report.outcome

    def stop_polling(self) -> None:
        """Asks for no more. What a poll that waits would have got, the server takes back."""
        self._is_polling = False
        if self._waiting is not None:
            self._waiting.cancel()

    async def quiet(self) -> None:
        """Returns when all is said and answered."""
        if self._outbox or self._under_way:
            waiting = self._loop.create_future()
            self._quiet.append(waiting)
            await waiting

    async def close(self) -> None:
        """Says nothing any more; whoever waits for an outcome is told that there is none."""
        self._is_closed = True
        self.stop_polling()
        if self._pause is not None:
            self._pause.cancel()
        while self._outbox:
            self._outbox.popleft().settle(0)
        for task in self._under_way:
            task.cancel()
        await self.quiet()
        # Whoever is interested has looked by now.
        if self.broken.done():
            self.broken.exception()

    # ------------------------------------------------------------ requests

    def _pump(self) -> None:
        self._is_scheduled = False
        if not self._outbox and not self._under_way:
            for waiting in self._quiet:
                if not waiting.done():
                    waiting.set_result(None)
            self._quiet.clear()
        if self._is_closed or self._pause is not None:
            return
        while self._outbox and self._sending < SENDING_MAX:
            count = min(len(self._outbox), RESULTS_MAX)
            reports = [self._outbox.popleft() for _ in range(count)]
            self._sending += 1
            self._start(self._exchange(reports, self._ask() if self._is_busy else 0, 0))
        if self._waiting is None and (limit := self._ask()) > 0:
            wait_ms = self._poll_wait_ms if self._has_met else 0
            self._waiting = self._start(self._exchange([], limit, wait_ms))

    def _ask(self) -> int:
        """The places that nobody asks for; from now on somebody does."""
        room = max(0, self._room_of_worker() - self._asked) if self._is_polling else 0
        self._asked += room
        return room

    def _start(self, exchange: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(exchange)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if task is self._waiting:
            self._waiting = None
        if not task.cancelled() and (defect := task.exception()) is not None:
            self._break(defect)
        self.schedule()

    async def _exchange(self, reports: Sequence[_Report], limit: int, wait_ms: int) -> None:
        began = time.monotonic()
        try:
            answer = await self._link.exchange([it.result for it in reports], limit, wait_ms)
        except EngineError as error:
            self._failed(error, reports, began)
        except asyncio.CancelledError:
            for report in reports:
                report.settle(0)
            raise
        else:
            self._answered(answer, reports, limit, began)
        finally:
            self._sending -= bool(reports)
            self._asked -= limit

    def _answered(
        self, answer: Answer, reports: Sequence[_Report], limit: int, began: float
    ) -> None:
        seconds = time.monotonic() - began
        if self._failures > 0:
            log.info("the server answers again")
        self._failures = 0
        self._has_met = True
        refused = 0
        unknown: list[_Report] = []
        for report, outcome in zip(reports, answer.outcomes, strict=True):
            if outcome.status in JUDGED:
                refused += outcome.status != 200
                told = (outcome.error or "", outcome.code or "", outcome.checkpoint_seq)
                report.settle(outcome.status, *told)
            else:
                unknown.append(report)
                if outcome.code == AWAY:
                    self._vouch(began)
        if reports:
            self._tell(Reported(len(reports), refused, seconds))
        if unknown:
            self._again(unknown, backoff(0), may_have_arrived=True)
        if limit > 0:
            self._is_busy = len(answer.tasks) >= limit
            self._tell(Polled(limit, len(answer.tasks), seconds))
        for task in answer.tasks:
            self._take(task)

    def _failed(self, error: EngineError, reports: Sequence[_Report], began: float) -> None:
        self._failures += 1
        if error.code == AWAY:
            self._vouch(began)
        self._tell(Failed(error))
        if is_refusal(error) and not self._has_met:
            self._break(advised(error))
            return
        if self._failures == 1:
            log.warning("%s", complaint(error))
        longest = DENIED_WAIT_MAX if error.status in DENIED else WAIT_MAX
        wait = backoff(self._failures - 1, error.retry_after, longest)
        self._again(reports, wait, may_have_arrived=error.status not in UNDONE)

    def _again(self, reports: Sequence[_Report], wait: float, *, may_have_arrived: bool) -> None:
        """Nothing is asked or said for a while; then what was not answered goes first."""
        for report in reversed(reports):
            if report.is_fleeting or self._is_closed:
                report.settle(0)
            else:
                report.is_repeated |= may_have_arrived
                self._outbox.appendleft(report)
        if self._pause is not None:
            self._pause.cancel()
        if not self._is_closed:
            self._pause = self._loop.call_later(wait, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._pump()

    def _break(self, error: BaseException) -> None:
        if not self.broken.done():
            self.broken.set_exception(error)
