"""Sends the exchanges of a worker: by their own route, or one by one if the server does not have
it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .._request import Request, path
from ..async_client import AsyncClient
from ..errors import NO_ENGINE, EngineError
from ..models import HeartbeatAccepted, TaskOutcome, TasksExchanged, WorkerTask

log = logging.getLogger("durable_workflow_engine.worker")

#: The report is invalid or too large: resending it would not help.
REFUSED = frozenset({400, 413, 422})
#: The claim is over.
LOSS = frozenset({404, 409})
#: Pause between rounds of polls that found nothing, in seconds: a poll that waits would delay the
#: others.
ROUND = 0.5


class Link:
    """The connection of a worker to its server.

    Args:
        client: Without retries: the worker decides itself what is resent, and when.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._is_single = False

    async def exchange(self, text: bytes, wait: float) -> TasksExchanged:
        """Sends an exchange once.

        Args:
            wait: Seconds for which its poll may wait.

        Raises:
            EngineError: the exchange as a whole failed.
        """
        if not self._is_single:
            path = "/workers/tasks/exchange"
            request = Request("POST", path, body=text, repeatable=True, parked=wait)
            try:
                answer: TasksExchanged = await self._client.call(request, TasksExchanged)
                return answer
            except EngineError as error:
                if error.status not in (404, 405) or error.code == NO_ENGINE:
                    raise
            if not self._is_single:
                log.info("the server has no exchange route: each result is sent in its own request")
            self._is_single = True
        return await self._one_by_one(json.loads(text))

    # ------------------------------------------------------------ many requests

    async def _one_by_one(self, exchange: Mapping[str, Any]) -> TasksExchanged:
        worker = {"worker_id": exchange["worker_id"]}
        said = [self._report(worker, result) for result in exchange.get("results", [])]
        asked = self._poll({**worker, "version": exchange.get("version")}, exchange.get("poll"))
        tasks, *outcomes = await asyncio.gather(asked, *said, return_exceptions=True)
        told = [outcome for outcome in outcomes if isinstance(outcome, TaskOutcome)]
        if isinstance(tasks, EngineError) and told:
            # The next poll reports it again.
            tasks = []
        for one in (tasks, *outcomes):
            if isinstance(one, BaseException):
                raise one
        assert isinstance(tasks, list)
        return TasksExchanged(outcomes=told, tasks=tasks)

    async def _report(self, worker: Mapping[str, Any], result: Mapping[str, Any]) -> TaskOutcome:
        members = {name: value for name, value in result.items() if name not in ("kind", "task_id")}
        task_id, kind = result["task_id"], result["kind"]
        request = Request(
            "POST",
            path("/workers/tasks/{id}/{kind}", id=task_id, kind=kind),
            body={**worker, **members},
            repeatable=kind != "heartbeat",
            prefer="return=minimal",
        )
        try:
            # The task of an older server, which ignores the preference, is not read.
            reply = await self._client.call(
                request, HeartbeatAccepted if kind == "heartbeat" else None
            )
        except EngineError as error:
            # A failure unrelated to the result may pass; only the server knows that a task is gone.
            is_loss = error.status in LOSS and error.code.startswith("ENG_")
            status = error.status if is_loss or error.status in REFUSED else 503
            return TaskOutcome(task_id=task_id, status=status, error=error.message, code=error.code)
        seq = None if reply is None else reply.checkpoint_seq
        return TaskOutcome(task_id=task_id, status=200, checkpoint_seq=seq)

    async def _poll(
        self, worker: Mapping[str, Any], poll: Mapping[str, Any] | None
    ) -> list[WorkerTask]:
        """Rounds of polls, one for each handler and queue, until one returns tasks."""
        if poll is None:
            return []
        queues: Sequence[str | None] = poll.get("queues") or [None]
        places = list(itertools.product(poll["handlers"], queues))
        until = time.monotonic() + poll["wait_ms"] / 1000
        while True:
            tasks: list[WorkerTask] = []
            for handler, queue in places:
                left = max(0, until - time.monotonic()) if len(places) == 1 else 0
                asked = {
                    **worker,
                    "handler_name": handler,
                    "limit": poll["limit"] - len(tasks),
                    "wait_ms": round(left * 1000),
                }
                try:
                    tasks += await self._poll_one(queue, asked)
                except EngineError:
                    # Tasks that earlier polls have claimed are kept if this one fails.
                    if not tasks:
                        raise
                if len(tasks) >= poll["limit"]:
                    break
            if tasks or time.monotonic() >= until:
                return tasks
            await asyncio.sleep(ROUND)

    async def _poll_one(self, queue: str | None, asked: dict[str, Any]) -> list[WorkerTask]:
        workers = self._client.workers
        if queue is None:
            return await workers.poll(**asked)
        return await workers.poll_queue(queue_name=queue, **asked)
