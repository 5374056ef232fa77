"""How exchanges are sent: by the route for them, or one by one where the server has none."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..async_client import AsyncClient
from ..errors import NO_ENGINE, EngineError
from ..models import TaskOutcome, WorkerTask

log = logging.getLogger("durable_workflow_engine.worker")

#: A result of an exchange, as it is sent.
Result = dict[str, Any]

#: Of one exchange, as the server takes them.
RESULTS_MAX = 1_000
#: The request as a whole is refused: one of its results is to blame.
REFUSED = frozenset({400, 413, 422})
#: What an answer says of a result itself. With any other one nobody knows yet what becomes of it.
JUDGED = frozenset({200, 400, 404, 409, 413, 422})
#: Between two rounds of polls that found nothing, in seconds: one that waits would keep the others
#: from theirs.
ROUND = 0.5


@dataclass(frozen=True)
class Answer:
    """What became of the results, in their order, and the tasks that were claimed."""

    outcomes: Sequence[TaskOutcome]
    tasks: Sequence[WorkerTask]


class Link:
    """The way of one worker to its server.

    Args:
        client: Repeats nothing by itself: the worker knows best what is said again, and when.
    """

    def __init__(
        self,
        client: AsyncClient,
        worker_id: str,
        version: str | None,
        handlers: Sequence[str],
        queues: Sequence[str] | None,
    ) -> None:
        self._client = client
        self._worker_id = worker_id
        self._version = version
        self._handlers = handlers
        self._queues = queues
        self._is_single = False

    async def exchange(self, results: Sequence[Result], limit: int, wait_ms: int) -> Answer:
        """Says results, and asks for tasks unless the limit is 0.

        Raises:
            EngineError: about all of it.
        """
        if not self._is_single:
            try:
                return await self._together(results, limit, wait_ms)
            except EngineError as error:
                if error.status not in (404, 405) or error.code == NO_ENGINE:
                    raise
            if not self._is_single:
                log.info("the server has no exchange: every result is a request")
            self._is_single = True
        return await self._one_by_one(results, limit, wait_ms)

    # ------------------------------------------------------------ one request

    async def _together(self, results: Sequence[Result], limit: int, wait_ms: int) -> Answer:
        poll: dict[str, Any] = {"handlers": self._handlers, "limit": limit, "wait_ms": wait_ms}
        if self._queues is not None:
            poll["queues"] = self._queues
        try:
            reply = await self._client.workers.exchange(
                worker_id=self._worker_id,
                version=self._version,
                results=results or None,
                poll=poll if limit > 0 else None,
            )
        except EngineError as error:
            if error.status not in REFUSED or not results:
                raise
            return Answer(await self._apart(results, error), [])
        return Answer(reply.outcomes, reply.tasks)

    async def _apart(self, results: Sequence[Result], error: EngineError) -> list[TaskOutcome]:
        """One of them is to blame, or all of them are too much for one request."""
        if len(results) == 1:
            return [_outcome(results[0], error)]
        half = len(results) // 2
        outcomes: list[TaskOutcome] = []
        for part in (results[:half], results[half:]):
            try:
                outcomes.extend((await self._together(part, 0, 0)).outcomes)
            except EngineError as raised:
                outcomes.extend(_outcome(result, raised) for result in part)
        return outcomes

    # ------------------------------------------------------------ many requests

    async def _one_by_one(self, results: Sequence[Result], limit: int, wait_ms: int) -> Answer:
        said = [self._report(result) for result in results]
        asked = self._poll(limit, wait_ms / 1000)
        tasks, *outcomes = await asyncio.gather(asked, *said, return_exceptions=True)
        told = [outcome for outcome in outcomes if isinstance(outcome, TaskOutcome)]
        if isinstance(tasks, EngineError) and told:
            # The poll after this one says so again.
            tasks = []
        for one in (tasks, *outcomes):
            if isinstance(one, BaseException):
                raise one
        assert isinstance(tasks, list)
        return Answer(told, tasks)

    async def _report(self, result: Result) -> TaskOutcome:
        members = {name: value for name, value in result.items() if name not in ("kind", "task_id")}
        operation = getattr(self._client.workers, result["kind"])
        task_id = result["task_id"]
        try:
            reply = await operation(task_id, worker_id=self._worker_id, **members)
        except EngineError as error:
            return _outcome(result, error)
        return TaskOutcome(task_id=task_id, status=200, checkpoint_seq=reply.checkpoint_seq)

    async def _poll(self, limit: int, wait: float) -> list[WorkerTask]:
        """Rounds of polls, one for each handler and queue, until one found something."""
        queues: Sequence[str | None] = self._queues or [None]
        places = list(itertools.product(self._handlers, queues))
        until = time.monotonic() + wait
        while limit > 0:
            tasks: list[WorkerTask] = []
            for handler, queue in places:
                left = max(0, until - time.monotonic()) if len(places) == 1 else 0
                try:
                    tasks += await self._poll_one(handler, queue, limit - len(tasks), left)
                except EngineError:
                    # What was claimed by the polls before is not thrown away for this one.
                    if not tasks:
                        raise
                if len(tasks) >= limit:
                    break
            if tasks or time.monotonic() >= until:
                return tasks
            await asyncio.sleep(ROUND)
        return []

    async def _poll_one(
        self, handler: str, queue: str | None, limit: int, wait: float
    ) -> list[WorkerTask]:
        workers = self._client.workers
        asked: dict[str, Any] = {
            "worker_id": self._worker_id,
            "version": self._version,
            "handler_name": handler,
            "limit": limit,
            "wait_ms": round(wait * 1000),
        }
        if queue is None:
            return await workers.poll(**asked)
        return await workers.poll_queue(queue_name=queue, **asked)


def _outcome(result: Result, error: EngineError) -> TaskOutcome:
    """A refusal of a request as the outcome of what it said."""
    is_known = error.code.startswith("ENG_")
    return TaskOutcome(
        task_id=result["task_id"],
        status=error.status if is_known else 503,
        error=error.message,
        code=error.code,
    )
