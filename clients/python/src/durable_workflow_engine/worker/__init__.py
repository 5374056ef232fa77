"""The worker: takes tasks of the handlers that it knows, does them, and reports."""

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
