"""The exceptions of the client and the worker."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ._seconds import Seconds, seconds_until

if TYPE_CHECKING:
    from .models import TaskInstance

#: Codes of an `EngineError` that is not from an engine: no connection was made, so nothing was
#: sent; no response arrived; it arrived too late; or something else answered.
UNREACHABLE, NETWORK = "CLIENT_UNREACHABLE", "CLIENT_NETWORK"
TIMEOUT, NO_ENGINE = "CLIENT_TIMEOUT", "CLIENT_NO_ENGINE"


class EngineError(Exception):
    """A request that was refused or not answered.

    Attributes:
        status: Status of the response; 0 if there was none.
        code: Stable: one of docs/reference/errors.md, or of those above.
        message: For people; may change.
        field: The invalid field of the request, such as `blocks[0].id`, if there is one.
        request_id: The id of the request in the server log.
        retry_after: Seconds after which the server asks to retry.
        body: The body of the response; for a definition it has the lists `errors` and `warnings`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = NETWORK,
        field: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        body: object = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.field = field
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body

    def __str__(self) -> str:
        if self.status == 0:
            return f"{self.message} ({self.code})"
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.message} ({self.status} {self.code}{request})"


class InstanceEnded(Exception):  # noqa: N818  (it is an end, not a defect)
    """The instance that `run` waited for failed or was cancelled.

    Attributes:
        instance: The ended instance; `instance.failure` has the reason.
    """

    def __init__(self, instance: TaskInstance) -> None:
        why = f": {instance.failure.message}" if instance.failure else ""
        super().__init__(f"instance {instance.id} is {instance.state}{why}")
        self.instance = instance


class RunTimeout(TimeoutError):  # noqa: N818  (as TimeoutError)
    """`run` timed out. The instance continues.

    Attributes:
        instance_id: The id of the instance.
    """

    def __init__(self, instance_id: str, seconds: float) -> None:
        super().__init__(f"instance {instance_id} did not end within {seconds:g} s")
        self.instance_id = instance_id


class RetryableError(Exception):
    """Raised by a handler: the step is retried according to its `retry`.

    The same applies to any exception whose attribute `retryable` is not False.

    Args:
        retry_after: The earliest time of the next attempt: seconds, a timedelta or a datetime. The
            worker keeps the claim until then, but not the slot.
        details: Stored as a line of the step's log, as JSON.

    Raises:
        TypeError: `retry_after` is not a valid time.
    """

    retryable = True

    def __init__(
        self, message: str, *, retry_after: Seconds | datetime = 0, details: object = None
    ) -> None:
        super().__init__(message)
        wait = seconds_until(retry_after)
        if wait is None:
            raise TypeError(f"retry_after must be seconds or a time, not {retry_after!r}")
        self.retry_after = wait
        self.details = details


class FatalError(Exception):
    """Raised by a handler: the step fails permanently, since a retry would not help.

    Args:
        details: Stored as a line of the step's log, as JSON.
    """

    retryable = False

    def __init__(self, message: str, *, details: object = None) -> None:
        super().__init__(message)
        self.details = details
