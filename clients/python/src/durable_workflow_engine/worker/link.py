"""How a worker talks to the server: by exchanges, or where there are none by single calls."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..async_client import AsyncClient
from ..errors import EngineError
from ..models import TaskOutcome, WorkerTask

#: A result of an exchange, and what the server has to say.
Result = dict[str, Any]

#: Of one exchange, as the server takes them.
RESULTS_MAX = 1_000
#: The request as a whole is refused: one of its results is to blame.
REFUSED = frozenset({400, 413, 422})


@dataclass(frozen=True)
class Answer:
    """What became of the results, in their order, and the tasks that were claimed."""

    outcomes: Sequence[TaskOutcome]
    tasks: Sequence[WorkerTask]


class Link(Protocol):
    """Says results and asks for tasks. What it raises is an `EngineError` about all of it."""

    async def say(self, results: Sequence[Result], room: int, wait_ms: int) -> Answer: ...


@dataclass(frozen=True)
class ExchangeLink:
    """One request for everything."""

    client: AsyncClient
    worker_id: str
    version: str | None
    handlers: Sequence[str]
    queues: Sequence[str] | None

    async def say(self, results: Sequence[Result], room: int, wait_ms: int) -> Answer:
        poll = {"handlers": self.handlers, "limit": room, "wait_ms": wait_ms}
        if self.queues is not None:
            poll["queues"] = self.queues
        try:
            reply = await self.client.workers.exchange(
                worker_id=self.worker_id,
                version=self.version,
                results=results or None,
                poll=poll if room > 0 else None,
            )
        except EngineError as error:
            if error.status not in REFUSED or not results:
                raise
            return Answer(await self._apart(results, error), [])
        return Answer(reply.outcomes, reply.tasks)

    async def _apart(self, results: Sequence[Result], error: EngineError) -> list[TaskOutcome]:
        """One of them is to blame, or all of them are too much for one request."""
        if len(results) == 1:
            return [as_outcome(results[0], error)]
        half = len(results) // 2
        outcomes: list[TaskOutcome] = []
        for part in (results[:half], results[half:]):
            try:
                outcomes.extend((await self.say(part, 0, 0)).outcomes)
            except EngineError as raised:
                outcomes.extend(as_outcome(result, raised) for result in part)
        return outcomes


def as_outcome(result: Result, error: EngineError) -> TaskOutcome:
    """A refusal of a request as the outcome of what it said."""
    is_known = error.code.startswith("ENG_")
    return TaskOutcome(
        task_id=result["task_id"],
        status=error.status if is_known else 503,
        error=error.message,
        code=error.code,
    )


class SingleLink:
    """For servers without exchanges: one request for each result, and polls of one handler."""

    def __init__(self, link: ExchangeLink) -> None:
        self._client = link.client
        self._worker_id = link.worker_id
        self._version = link.version
        queues: Sequence[str | None] = link.queues or [None]
        self._places = list(itertools.product(link.handlers, queues))
        #: Polls of single handlers begin with another one each time.
        self._turn = 0

    async def say(self, results: Sequence[Result], room: int, wait_ms: int) -> Answer:
        outcomes = await asyncio.gather(*map(self._report, results))
        return Answer(outcomes, await self._poll(room, wait_ms) if room > 0 else [])

    async def _report(self, result: Result) -> TaskOutcome:
        members = {name: value for name, value in result.items() if name not in ("kind", "task_id")}
        operation = getattr(self._client.workers, result["kind"])
        task_id = result["task_id"]
        try:
            reply = await operation(task_id, worker_id=self._worker_id, **members)
        except EngineError as error:
            return as_outcome(result, error)
        return TaskOutcome(task_id=task_id, status=200, checkpoint_seq=reply.checkpoint_seq)

    async def _poll(self, room: int, wait_ms: int) -> list[WorkerTask]:
        """All handlers in turn; each is waited for a part of the time."""
        self._turn += 1
        tasks: list[WorkerTask] = []
        for at in range(len(self._places)):
            handler, queue = self._places[(self._turn + at) % len(self._places)]
            asked: dict[str, Any] = {
                "handler_name": handler,
                "worker_id": self._worker_id,
                "version": self._version,
                "limit": room - len(tasks),
                "wait_ms": 0 if tasks else wait_ms // len(self._places),
            }
            workers = self._client.workers
            if queue is None:
                found = await workers.poll(**asked)
            else:
                found = await workers.poll_queue(queue_name=queue, **asked)
            tasks.extend(found)
            if len(tasks) >= room:
                break
        return tasks
