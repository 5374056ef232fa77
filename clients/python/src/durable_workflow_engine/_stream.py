"""Parses event streams, without I/O, shared by both clients."""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
from pydantic import TypeAdapter

from ._request import Request, Settings, backoff, no_answer, path, refusal
from ._seconds import Seconds, limited, seconds
from .errors import EngineError
from .events import Change, Done, InstanceEvent, Output, StateChange
from .models import AuditEntry, BlockOutput

#: A comment arrives every 15 s: after this many seconds of silence the connection is dead.
SILENCE_MAX, COMMENTS_EVERY = 45.0, 15.0
#: A stream is reopened after a day at most, whatever wait the server asks for.
REOPEN_MAX = 86_400.0


@dataclass
class ServerSentEvent:
    """A server-sent event."""

    name: str = ""
    data: list[str] = field(default_factory=list)
    id: str | None = None


class Lines:
    """Converts bytes to events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    Lines are split as bytes, since data may contain Unicode line separators.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event = ServerSentEvent()

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """The events completed by this chunk; an event may have only an id."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line.removesuffix(b"\r").decode())
            if line in (b"", b"\r"):
                event, self._event = self._event, ServerSentEvent()
                if event.data or event.id is not None:
                    yield event

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event.name = value
        elif name == "data":
            self._event.data.append(value)
        elif name == "id":
            self._event.id = value


class Following:
    """A stream that is reopened when it breaks: what to request, and what was delivered."""

    def __init__(self) -> None:
        self.is_done = False
        self._breaks = 0

    def request(self) -> Request:
        """The request for the next connection."""
        raise NotImplementedError

    def take(self, event: ServerSentEvent) -> Iterator[Any]:
        """The new items in an event."""
        raise NotImplementedError

    def heard(self) -> None:
        """The server has sent data."""
        self._breaks = 0

    def after_break(self, error: httpx.RequestError | EngineError | None) -> float:
        """Seconds to wait before the stream is reopened.

        Raises:
            EngineError: it would be refused again.
        """
        told = no_answer(error) if isinstance(error, httpx.RequestError) else error
        if told is not None and told.status not in (0, 408, 429, 502, 503, 504):
            raise told
        self._breaks += 1
        wait = backoff(self._breaks - 1, told.retry_after if told else None)
        return limited(wait) or REOPEN_MAX


class Deadline:
    """The deadline of a wait.

    Args:
        timeout: From now; None: no limit.

    Raises:
        TypeError, ValueError: it is not a duration.
    """

    def __init__(self, timeout: Seconds | None = None) -> None:
        self.seconds = math.inf if timeout is None else seconds("timeout", timeout)
        self._at = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds; negative when it has passed."""
        return self._at - time.monotonic()

    def check(self) -> float:
        """The seconds left, always more than 0: none is not a limit that a request can have.

        Raises:
            TimeoutError: it has passed.
        """
        left = self.left
        if left <= 0:
            raise TimeoutError
        return left

    def outlasts(self, silence: float) -> bool:
        """Whether a connection that ends after this silence ends in time.

        Comments interrupt silence: a read that starts long before the deadline would outlast it.
        """
        return not self.left < COMMENTS_EVERY < silence


def stream_arguments(
    following: Following, settings: Settings, left: float, silence: float
) -> dict[str, Any]:
    """Arguments of `httpx.Client.stream`.

    Args:
        left: Seconds until the deadline of the client.
        silence: Seconds without data after which it ends.
    """
    request = following.request()
    return {
        "method": request.method,
        "url": settings.url + request.path,
        "params": request.params(),
        "headers": {**settings.headers(), "accept": "text/event-stream"},
        "timeout": httpx.Timeout(limited(min(settings.timeout, left)), read=silence),
    }


def check_stream(response: httpx.Response) -> None:
    """
    Raises:
        EngineError: the stream was refused; its body has been read.
    """
    if response.status_code != 200:
        raise refusal(response)


class InstanceFollowing(Following):
    """States and outputs of an instance until it ends. A reopened stream repeats all of them."""

    def __init__(self, instance_id: str) -> None:
        super().__init__()
        self._id = instance_id
        self._state: str | None = None
        self._outputs: set[str] = set()

    def request(self) -> Request:
        return Request("GET", path("/instances/{id}/stream", id=self._id), {"poll_ms": 100})

    def take(self, event: ServerSentEvent) -> Iterator[InstanceEvent]:
        data = "\n".join(event.data)
        if event.name == "state":
            change = _STATE.validate_json(data)
            if change.state != self._state:
                self._state = change.state
                yield change
        elif event.name == "output":
            output = BlockOutput.model_validate_json(data)
            if output.id not in self._outputs:
                self._outputs.add(output.id)
                yield Output(output)
        elif event.name == "done":
            self.is_done = True
            yield _DONE.validate_json(data)
        elif event.name == "error":
            message = f"instance {self._id} no longer exists"
            raise EngineError(message, status=404, code="ENG_NOT_FOUND")


_STATE = TypeAdapter(StateChange)
_DONE = TypeAdapter(Done)


class ChangeFollowing(Following):
    """All changes of the tenant's instances, from a cursor or from now on."""

    def __init__(self, since: str | datetime | None) -> None:
        super().__init__()
        if isinstance(since, str) and _TIME.fullmatch(since):
            since = datetime.fromisoformat(since.upper().replace("Z", "+00:00"))
        self._cursor = _cursor_at(since) if isinstance(since, datetime) else since

    def request(self) -> Request:
        return Request("GET", "/changes/stream", {"cursor": self._cursor})

    def take(self, event: ServerSentEvent) -> Iterator[Change]:
        self._cursor = event.id or self._cursor
        if event.name == "change" and self._cursor is not None:
            entry = AuditEntry.model_validate_json("\n".join(event.data))
            yield Change(self._cursor, entry)


#: Cursors do not have this form.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)", re.IGNORECASE)


def _cursor_at(time: datetime) -> str:
    """The cursor before everything at that time, in the server's format (docs/changes.md)."""
    before = time.astimezone(timezone.utc) - timedelta(milliseconds=1)
    at = before.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = json.dumps({"created_at": at, "id": "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12})
    return base64.b64encode(text.encode()).decode().rstrip("=")
