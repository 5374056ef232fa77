"""The events that a worker passes to its hook, such as for metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..models import WorkerTask

#: The outcome of a handler. `dropped`: nothing is reported, because the claim is lost. `given_up`:
#: it did not end while the worker stopped, and the task is offered again when its lease expires.
Ending: TypeAlias = Literal["completed", "failed", "dropped", "given_up"]


@dataclass(frozen=True)
class TaskStarted:
    """A task was claimed, and its handler starts."""

    task: WorkerTask


@dataclass(frozen=True)
class TaskEnded:
    """A handler has ended, and its result is about to be reported."""

    task: WorkerTask
    ending: Ending
    #: Seconds since the claim.
    seconds: float
    #: The exception of the handler, if it raised one.
    error: BaseException | None = None
    #: Set for a failure.
    retryable: bool | None = None


@dataclass(frozen=True)
class Polled:
    """A poll was answered."""

    #: The number of tasks asked for.
    limit: int
    #: The number of tasks received.
    tasks: int
    seconds: float


@dataclass(frozen=True)
class Reported:
    """Results and heartbeats were answered, in one request."""

    results: int
    #: Reports that were rejected: their claims are lost, or they are invalid.
    refused: int
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A request failed and will be retried, or the result of a task was rejected."""

    error: Exception
    task: WorkerTask | None = None


WorkerEvent: TypeAlias = TaskStarted | TaskEnded | Polled | Reported | Failed
