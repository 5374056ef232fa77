"""The worker: claims tasks of its handlers, runs them and reports the results."""

from .context import CancelReason, Context, ThreadContext
from .events import Ending, Failed, Polled, Reported, TaskEnded, TaskStarted, WorkerEvent
from .worker import Worker

__all__ = [
    "CancelReason",
    "Context",
    "Ending",
    "Failed",
    "Polled",
    "Reported",
    "TaskEnded",
    "TaskStarted",
    "ThreadContext",
    "Worker",
    "WorkerEvent",
]
