"""What a worker says and asks.

Results that are there at one moment are one request, which also asks for as many tasks as there is
room for. Only a worker that has nothing to say, or was told that there is no more, waits in a long
poll; what is to be said meanwhile goes beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import EngineError
from ..models import TaskOutcome, WorkerTask
from .complaint import advised
from .events import Exchanged
from .link import REFUSED, RESULTS_MAX, ExchangeLink, Link, Result, SingleLink, as_outcome

log = logging.getLogger("durable_workflow_engine.worker")

#: Of waits after a call that failed, in seconds.
WAIT_MIN, WAIT_MAX = 0.2, 5.0
#: The key is no good: asking again does not help.
FORBIDDEN = frozenset({"ENG_UNAUTHENTICATED", "ENG_FORBIDDEN"})
#: There are no exchanges here.
UNKNOWN_PATH = frozenset({404, 405})


@dataclass
class _Report:
    """A result that waits for its outcome."""

    result: Result
    outcome: asyncio.Future[TaskOutcome]


class Talk:
    """
    Args:
        room: How many tasks more can be done now.
        take: Is given each task that was claimed.
        tell: Is told of each request.
    """

    def __init__(
        self,
        link: Link,
        *,
        poll_wait_ms: int,
        room: Callable[[], int],
        take: Callable[[WorkerTask], None],
        tell: Callable[[Exchanged], None],
    ) -> None:
        self._link = link
        self._poll_wait_ms = poll_wait_ms
        self._room_of_worker = room
        self._take = take
        self._tell = tell
        self._outbox: deque[_Report] = deque()
        self._wake = asyncio.Event()
        self._parked: asyncio.Task[None] | None = None
        #: Of the last request.
        self._trouble: EngineError | None = None
        #: Why it makes no sense to go on, once that is so.
        self.refused: asyncio.Future[EngineError] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        """There is more room."""
        self._wake.set()

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            # What ends in the same turn goes with the same request.
            await asyncio.sleep(0)
            while self._outbox or self._room() > 0:
                if not self._outbox:
                    self._park()
                    break
                room = self._room()
                count = min(len(self._outbox), RESULTS_MAX)
                tasks = await self._exchange(
                    [self._outbox.popleft() for _ in range(count)], room, 0
                )
                if len(tasks) < room:
                    # There is no more: the next one is waited for.
                    self._park()

    def close(self) -> None:
        """Asks for no more tasks. What is left to say can still be said."""
        if self._parked is not None:
            self._parked.cancel()

    async def say(self, result: Result) -> TaskOutcome:
        """Says one thing, together with what else is to be said."""
        outcome: asyncio.Future[TaskOutcome] = asyncio.get_running_loop().create_future()
        self._outbox.append(_Report(result, outcome))
        self._wake.set()
        return await outcome

    def _room(self) -> int:
        if self._parked is not None or self.refused.done() or len(self._outbox) > RESULTS_MAX:
            return 0
        return self._room_of_worker()

    def _park(self) -> None:
        room = self._room()
        if room > 0:
            self._parked = asyncio.create_task(self._wait_for_tasks(room))

    async def _wait_for_tasks(self, room: int) -> None:
        try:
            await self._exchange([], room, self._poll_wait_ms)
            if self._trouble is not None:
                least = max(WAIT_MIN, self._trouble.retry_after or 0)
                await asyncio.sleep(least * random.uniform(1, 4))
        finally:
            self._parked = None
            self._wake.set()

    async def _exchange(
        self, reports: Sequence[_Report], room: int, wait_ms: int
    ) -> Sequence[WorkerTask]:
        """Says and asks once. Without an answer, each result has an outcome that says so."""
        results = [report.result for report in reports]
        tasks: Sequence[WorkerTask] = []
        began = time.monotonic()
        error: EngineError | None = None
        try:
            answer = await self._link.say(results, room, wait_ms)
            outcomes, tasks = answer.outcomes, answer.tasks
        except EngineError as raised:
            error = self._judged(raised, len(results))
            outcomes = [as_outcome(result, error) for result in results]
        if error is None and self._trouble is not None:
            log.info("the server answers again")
        self._trouble = error
        self._tell(Exchanged(len(results), len(tasks), time.monotonic() - began, error))
        for report, outcome in zip(reports, outcomes, strict=True):
            # Whoever waited may have gone.
            if not report.outcome.done():
                report.outcome.set_result(outcome)
        for task in tasks:
            self._take(task)
        return tasks

    def _judged(self, error: EngineError, results: int) -> EngineError:
        """What the error of a request means for what it said."""
        if error.status in UNKNOWN_PATH and isinstance(self._link, ExchangeLink):
            log.warning("the server has no exchanges: everything is a call of its own")
            self._link = SingleLink(self._link)
            return EngineError("not said yet")
        # Without results it is the poll that is wrong, which stays so.
        if error.code in FORBIDDEN or (error.status in REFUSED and results == 0):
            if not self.refused.done():
                self.refused.set_result(advised(error))
        elif self._trouble is None:
            log.warning("the server was asked in vain: %s", error)
        return error


def is_open(status: int) -> bool:
    """Nobody knows yet what becomes of it."""
    return status >= 500 or status == 429


async def pause(event: asyncio.Event, seconds: float) -> None:
    """Ends early when the event comes."""
    if seconds <= 0:
        return
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
