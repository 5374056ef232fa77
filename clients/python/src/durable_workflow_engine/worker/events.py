"""What a worker tells its hook, such as for metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..models import WorkerTask

#: `lost`: the server took no result that the worker knows of. The claim was lost, or the instance
#: has ended, or the worker has stopped.
Ending: TypeAlias = Literal["completed", "failed", "retried", "lost"]


@dataclass(frozen=True)
class TaskStarted:
    """A task was claimed, and its handler begins."""

    task: WorkerTask


@dataclass(frozen=True)
class TaskEnded:
    """The server has decided about the result of a task."""

    task: WorkerTask
    ending: Ending
    #: From the claim to the server's answer.
    seconds: float
    #: What the handler raised, if it did.
    error: BaseException | None = None


@dataclass(frozen=True)
class Exchanged:
    """The server was asked once."""

    #: What was reported, heartbeats among it.
    results: int
    #: What was claimed.
    tasks: int
    seconds: float
    #: Why there was no answer, or a refusal.
    error: Exception | None = None


WorkerEvent: TypeAlias = TaskStarted | TaskEnded | Exchanged
