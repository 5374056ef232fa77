"""Client and worker for the durable workflow engine. Manual: docs/python.md."""

from ._model import NULL
from .async_client import AsyncClient
from .client import Client
from .errors import EngineError, FatalError, InstanceEnded, RetryableError, RunTimeout
from .events import Change, Done, InstanceEvent, Output, RunResult, StateChange
from .pages import AsyncPage, AsyncPages, Page
from .worker import Context, ThreadContext, Worker

__all__ = [
    "NULL",
    "AsyncClient",
    "AsyncPage",
    "AsyncPages",
    "Change",
    "Client",
    "Context",
    "Done",
    "EngineError",
    "FatalError",
    "InstanceEnded",
    "InstanceEvent",
    "Output",
    "Page",
    "RetryableError",
    "RunResult",
    "RunTimeout",
    "StateChange",
    "ThreadContext",
    "Worker",
]
