"""What can go wrong, as exceptions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ._seconds import Seconds, seconds_until

if TYPE_CHECKING:
    from .models import TaskInstance

#: Codes of an `EngineError` that no engine gave: no connection came about, so that nothing was
#: sent; no answer came; it came too late; or it came from something else.
UNREACHABLE, NETWORK = "CLIENT_UNREACHABLE", "CLIENT_NETWORK"
TIMEOUT, NO_ENGINE = "CLIENT_TIMEOUT", "CLIENT_NO_ENGINE"


class EngineError(Exception):
    """A request that was refused, or had no answer.

    Attributes:
        status: Of the answer; 0 when there was none.
        code: Does not change with the words: one of docs/reference/errors.md, or of those above.
        message: For people.
        field: The field of the request that is wrong, such as `blocks[0].id`, if it is one.
        request_id: By which the log of the server knows the request.
        retry_after: Seconds after which asking again makes sense, where the server told.
        body: Of the answer; that of a definition has the lists `errors` and `warnings`.
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
        instance: As it ended; `instance.failure` says why.
    """

    def __init__(self, instance: TaskInstance) -> None:
        why = f": {instance.failure.message}" if instance.failure else ""
        super().__init__(f"instance {instance.id} is {instance.state}{why}")
        self.instance = instance


class RunTimeout(TimeoutError):  # noqa: N818  (as TimeoutError)
    """`run` waited for long enough. The instance goes on.

    Attributes:
        instance_id: Of the instance.
    """

    def __init__(self, instance_id: str, seconds: float) -> None:
        super().__init__(f"instance {instance_id} has not ended within {seconds:g} s")
        self.instance_id = instance_id


class RetryableError(Exception):
    """Raised by a handler: the step is tried again, as its `retry` says.

    So it is after any exception that has no attribute `retryable` that is False.

    Args:
        retry_after: Seconds, a timedelta, or the time before which another try makes no sense. The
            worker keeps the claim until then, and not its place.
        details: Kept as a line of the step's logs, as JSON.

    Raises:
        TypeError: `retry_after` says no time.
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
    """Raised by a handler: the step has failed for good, since another try would not help.

    Args:
        details: Kept as a line of the step's logs, as JSON.
    """

    retryable = False

    def __init__(self, message: str, *, details: object = None) -> None:
        super().__init__(message)
        self.details = details
