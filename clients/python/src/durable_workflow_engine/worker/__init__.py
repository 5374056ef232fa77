"""The worker: takes tasks of the handlers that it knows, does them, and reports."""

from .context import Context, ThreadContext
from .events import Exchanged, TaskEnded, TaskStarted, WorkerEvent
from .worker import Worker

__all__ = [
    "Context",
    "Exchanged",
    "TaskEnded",
    "TaskStarted",
    "ThreadContext",
    "Worker",
    "WorkerEvent",
]
