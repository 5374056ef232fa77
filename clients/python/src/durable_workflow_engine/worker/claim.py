"""One claimed task: heartbeats, checkpoints, and reasons to cancel it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from .._model import to_json
from ..errors import EngineError
from ..models import WorkerTask
from .context import CancelReason, Context, ThreadContext
from .exchanges import Exchanges
from .link import LOSS
from .outbox import Outcome

LOGS_NAME = b',"logs":'

log = logging.getLogger("durable_workflow_engine.worker")

#: A report without the members that the claim adds.
Result = dict[str, Any]


class Claim:
    """
    Args:
        on_cancel: Called once, when continuing is pointless.
    """

    def __init__(
        self,
        task: WorkerTask,
        exchanges: Exchanges,
        *,
        is_async: bool,
        on_cancel: Callable[[], None],
    ) -> None:
        self.task = task
        self.name = f'task {task.id} of "{task.handler_name}"'
        kind = Context if is_async else ThreadContext
        self.context = kind(task, self._save)
        #: The server has reported it; the handler may have been cancelled earlier for another
        #: reason.
        self.is_lost = False
        self._exchanges = exchanges
        self._on_cancel = on_cancel
        self._checkpoint_seq = task.checkpoint_seq
        self._saving = asyncio.Lock()
        self._claimed_at = time.monotonic()
        #: Times of the latest accepted heartbeat and the latest heartbeat sent.
        self._heard_at = self._beat_at = self._claimed_at
        self._time_limit: asyncio.TimerHandle | None = None
        if task.timeout_ms is not None:
            loop = asyncio.get_running_loop()
            self._time_limit = loop.call_later(task.timeout_ms / 1000, self.cancel, "timeout")

    @property
    def seconds(self) -> float:
        """Seconds since the claim."""
        return time.monotonic() - self._claimed_at

    def end(self) -> None:
        """The handler has ended: its time limit no longer applies."""
        if self._time_limit is not None:
            self._time_limit.cancel()

    def cancel(self, reason: CancelReason) -> None:
        """Tells the handler to stop. If it returns an output anyway, the server judges it."""
        if self.context.cancelled:
            return
        if reason != "stopping":
            log.warning("%s was cancelled: %s", self.name, reason)
        self.context._cancel(reason)
        self._on_cancel()

    def say(
        self, result: Result, *, is_fleeting: bool = False, has_logs: bool = False
    ) -> asyncio.Future[Outcome]:
        """Reports something about the task, with the epoch of the claim.

        Args:
            has_logs: Includes the lines that the handler logged, as far as they fit.

        Raises:
            TypeError, ValueError: it has no JSON form.
        """
        named = {"task_id": self.task.id, "claim_epoch": self.task.claim_epoch, **result}
        text = to_json(named)
        if has_logs:
            room = self._exchanges.result_bytes_max - len(text) - len(LOGS_NAME)
            if logs := self.context._lines.json(room):
                text = text[:-1] + LOGS_NAME + logs + b"}"
        return self._exchanges.say(text, is_fleeting=is_fleeting)

    def vouch(self, at: float) -> None:
        """The claim cannot have been lost before this time: after an outage, silence counts from
        here.
        """
        self._heard_at = max(self._heard_at, at)

    def beat(self, heartbeat: float, lease: float) -> None:
        """Sends a heartbeat if it is due, and cancels the handler if the lease may have expired."""
        now = time.monotonic()
        if now - self._heard_at >= lease:
            self.cancel("silent")
        if self.is_lost or now - self._beat_at < heartbeat:
            return
        self._beat_at = now

        def heard(outcome: asyncio.Future[Outcome]) -> None:
            if outcome.cancelled():
                return
            if outcome.result().status == 200:
                self._heard_at = max(self._heard_at, now)
            elif outcome.result().status in LOSS:
                self._lose()

        self.say({"kind": "heartbeat"}, is_fleeting=True).add_done_callback(heard)

    def _lose(self) -> None:
        self.is_lost = True
        self.cancel("lost")

    # ------------------------------------------------------------ checkpoints

    async def _save(self, state: Mapping[str, Any]) -> None:
        """One after the other, since each is numbered by the answer to the previous one."""
        async with self._saving:
            while not await self._is_saved(state):
                pass

    async def _is_saved(self, state: Mapping[str, Any]) -> bool:
        """
        Returns:
            Whether the checkpoint is stored. If not, it has a new number now.

        Raises:
            EngineError: it was rejected for good.
        """
        seq = self._checkpoint_seq
        said: Result = {"kind": "heartbeat", "checkpoint_seq": seq, "checkpoint": state}
        outcome = await self._say_of_claim(said)
        if outcome.status == 200:
            self._checkpoint_seq = outcome.checkpoint_seq or seq + 1
            return True
        if outcome.status not in LOSS:
            raise _refused(outcome)
        # Either the claim is lost, or an answer was and the checkpoint is stored: a plain heartbeat
        # tells which.
        plain = await self._say_of_claim({"kind": "heartbeat"})
        stored = seq if plain.checkpoint_seq is None else plain.checkpoint_seq
        if plain.status != 200 or stored == seq:
            self._lose()
            raise _refused(outcome)
        self._checkpoint_seq = stored
        return outcome.is_repeated and stored == seq + 1

    async def _say_of_claim(self, result: Result) -> Outcome:
        if self.is_lost:
            raise EngineError("the claim was lost", status=409, code="ENG_CONFLICT")
        return await self.say(result)


def _refused(outcome: Outcome) -> EngineError:
    why = outcome.error or "the worker has stopped"
    return EngineError(f"the checkpoint was rejected: {why}", status=outcome.status)
