"""What a worker tells its hook, such as for metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..models import WorkerTask

#: What became of a run of a handler. `dropped`: nothing is reported, because the claim is lost.
#: `given_up`: it did not end while the worker stopped, and is offered again when its lease is over.
Ending: TypeAlias = Literal["completed", "failed", "dropped", "given_up"]


@dataclass(frozen=True)
class TaskStarted:
    """A task was claimed, and its handler begins."""

    task: WorkerTask


@dataclass(frozen=True)
class TaskEnded:
    """A handler has ended; its result is about to be reported."""

    task: WorkerTask
    ending: Ending
    #: Since the claim.
    seconds: float
    #: What the handler raised, if it did.
    error: BaseException | None = None
    #: Of a failure.
    retryable: bool | None = None


@dataclass(frozen=True)
class Polled:
    """A poll was answered."""

    #: How many tasks were asked for.
    limit: int
    #: How many came.
    tasks: int
    seconds: float


@dataclass(frozen=True)
class Reported:
    """Results and heartbeats were answered, in one request."""

    results: int
    #: Those that were not taken: their claims are lost, or what they say is wrong.
    refused: int
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A request failed, and is sent again; or the result of a task was refused."""

    error: Exception
    task: WorkerTask | None = None


WorkerEvent: TypeAlias = TaskStarted | TaskEnded | Polled | Reported | Failed
