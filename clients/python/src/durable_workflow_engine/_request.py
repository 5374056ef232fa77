"""Requests, responses and retries, without I/O, shared by both clients."""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from ._model import encode, to_json
from ._repeats import (
    GATEWAY_STATUSES,
    LASTING_CODES,
    UNDONE_STATUSES,
    UNKNOWN_CODES,
    UNKNOWN_WORDS,
)
from ._seconds import limited
from .errors import NETWORK, NO_ENGINE, TIMEOUT, UNREACHABLE, EngineError

PREFIX = "/api/v1"

#: Limits of the backoff between attempts, in seconds.
WAIT_FIRST, WAIT_MAX = 0.2, 10.0
#: A server that asks for a longer wait is not waited for.
RETRY_AFTER_MAX = 60.0

#: The start of a message about a single field.
_FIELD = re.compile(r"^invalid argument: (?!the\b)([a-z_]\w*(?:\.\w+|\[\d+\])*):? (?!it\b)")


_TENANT = re.compile("[!-~](?:[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]*[!-~])?")


@dataclass(frozen=True)
class Settings:
    """Settings that all requests of a client share."""

    url: str
    api_key: str | None = field(repr=False)
    tenant: str | None
    namespace: str
    #: Seconds without data from the server.
    timeout: float
    #: Maximum number of retries of a repeatable request.
    retries: int

    def headers(self) -> dict[str, str | bytes]:
        """The headers of every request."""
        headers: dict[str, str | bytes] = {"accept": "application/json"}
        if self.api_key is not None:
            headers["x-api-key"] = self.api_key
        if self.tenant is not None:
            headers["x-tenant-id"] = self.tenant.encode()
        return headers

    def __post_init__(self) -> None:
        """Rejects values that would arrive changed.

        Servers strip whitespace, and some of them all non-ASCII characters, from both ends of a
        header.
        """
        if self.api_key is not None and not re.fullmatch("[ -~]*", self.api_key):
            raise ValueError("api_key must be printable ASCII")
        if self.tenant and not _TENANT.fullmatch(self.tenant):
            ends = "it must begin and end with printable ASCII, and have no control characters"
            raise ValueError(f"the tenant {json.dumps(self.tenant)} cannot be sent: {ends}")


@dataclass(frozen=True)
class Request:
    """One request. `path` excludes the prefix."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    #: None: no body. Bytes are sent as they are.
    body: Any = None
    #: Repeating it has no further effect.
    repeatable: bool = False
    #: Preferences about the response; None: none.
    prefer: str | None = None
    #: Seconds for which the server may delay the response; None: as the body says.
    parked: float | None = None

    @property
    def wait(self) -> float:
        """Seconds for which the server may delay the response."""
        if self.parked is not None:
            return self.parked
        poll = self.body.get("poll", self.body) if isinstance(self.body, Mapping) else {}
        asked = poll.get("wait_ms") if isinstance(poll, Mapping) else None
        return (self.query.get("wait_ms") or asked or 0) / 1000

    def with_query(self, query: Mapping[str, Any]) -> Request:
        return replace(self, query=query)

    def arguments(self, settings: Settings, left: float) -> dict[str, Any]:
        """Arguments of `httpx.Client.request`.

        Args:
            left: Seconds until the deadline of the client.
        """
        headers = settings.headers()
        if self.body is not None:
            headers["content-type"] = "application/json"
        if self.prefer is not None:
            headers["prefer"] = self.prefer
        return {
            "method": self.method,
            "url": settings.url + self.path,
            "params": self.params(),
            "headers": headers,
            "content": self.content(),
            "timeout": limited(min(settings.timeout + self.wait, left)),
        }

    def params(self) -> list[tuple[str, str]]:
        """The query as sent, without None values."""
        return [pair for name, value in self.query.items() for pair in _pairs(name, value)]

    def content(self) -> bytes | None:
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return to_json(encode(self.body))


def _pairs(name: str, value: Any) -> list[tuple[str, str]]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [(f"{name}.{key}", str(inner)) for key, inner in value.items()]
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    if isinstance(value, datetime):
        return [(name, str(encode(value)))]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(name, ",".join(map(str, value)))] if value else []
    return [(name, str(value))]


def path(template: str, **names: str) -> str:
    """The path with its parameters filled in.

    Raises:
        ValueError: a parameter is empty, which would address another operation.
    """
    for name, value in names.items():
        if not value:
            raise ValueError(f"{name} is empty")
    return template.format_map({name: quote(value, safe="") for name, value in names.items()})


@dataclass(frozen=True)
class Keyed:
    """The member by which the server recognises a repetition."""

    key: str
    #: The member of the body whose items have the key; None: the body itself.
    each: str | None = None
    #: Settings of the client that are added to each item.
    fills: tuple[str, ...] = ()

    def filled(self, body: Mapping[str, Any], settings: Settings) -> tuple[dict[str, Any], bool]:
        """The body with missing keys added, and whether all items have one now.

        An instance with a `cohort_key` gets no generated key, since a release would use that key to
        choose its side (docs/releases.md).
        """
        if self.each is None:
            items = [self._with_key(body)]
            whole = items[0]
        else:
            own = {"tenant_id": settings.tenant, "namespace": settings.namespace}
            known = {name: own[name] for name in self.fills}
            items = [self._with_key({**known, **encode(item)}) for item in body[self.each]]
            whole = {**body, self.each: items}
        return whole, all(item.get(self.key) for item in items)

    def _with_key(self, item: Mapping[str, Any]) -> dict[str, Any]:
        metadata = encode(item.get("metadata")) or {}
        if item.get(self.key) or "cohort_key" in metadata:
            return dict(item)
        return {**item, self.key: str(uuid.uuid4())}


def base_url(url: str) -> str:
    """The URL including the prefix, which may be omitted.

    Raises:
        ValueError: it is not an HTTP URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"{url!r} is not a URL that starts with http:// or https://")
    return url.rstrip("/").removesuffix(PREFIX) + PREFIX


# ---------------------------------------------------------------- responses


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read(kind: Any, response: httpx.Response) -> Any:
    """The parsed body of a success.

    Raises:
        EngineError: this client does not understand it.
    """
    if "x-request-id" not in response.headers:
        raise _foreign(response)
    if kind is None or response.status_code == 204:
        return None
    if kind is str:
        return response.text
    if kind is bytes:
        return response.content
    try:
        return _adapter(kind).validate_json(response.content)
    except ValidationError as error:
        raise EngineError(
            f"this client does not understand the response: {error}",
            status=response.status_code,
            code=NO_ENGINE,
            request_id=response.headers.get("x-request-id"),
        ) from error


def refusal(response: httpx.Response) -> EngineError:
    """The error of an unsuccessful response, whose body has been read."""
    headers = response.headers
    if "x-error-code" not in headers and "x-request-id" not in headers:
        return _foreign(response)
    try:
        body = response.json()
    except ValueError:
        body = None
    told = body if isinstance(body, dict) else {}
    message = str(told.get("error") or f"the server answered {response.status_code}")
    return EngineError(
        message,
        status=response.status_code,
        code=headers.get("x-error-code", f"HTTP_{response.status_code}"),
        field=_field_of(told, message),
        request_id=headers.get("x-request-id"),
        retry_after=_retry_after(response),
        body=body,
    )


def _foreign(response: httpx.Response) -> EngineError:
    status = response.status_code
    kind = response.headers.get("content-type", "nothing").split(";")[0]
    if status in (408, 429) or status in GATEWAY_STATUSES:
        message, code = f"a gateway in front of the engine answered {status}", f"HTTP_{status}"
    else:
        message = f"{response.url} answered, but is not an engine: {status} with {kind}"
        code = NO_ENGINE
    return EngineError(message, status=status, code=code, retry_after=_retry_after(response))


def _field_of(body: Mapping[str, Any], message: str) -> str | None:
    errors = body.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return str(errors[0].get("path"))
    found = _FIELD.match(message)
    return found[1] if found else None


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def next_query(response: httpx.Response) -> dict[str, str] | None:
    """The query of the next page, from the header `link`."""
    link = response.links.get("next", {}).get("url")
    return None if link is None else dict(parse_qsl(urlsplit(link).query))


# ---------------------------------------------------------------- attempts


def backoff(tries: int, at_least: float | None = None, longest: float = WAIT_MAX) -> float:
    """Seconds to wait before the next attempt, with jitter, so that clients that failed together do
    not retry together.

    Args:
        tries: Failed attempts before the latest one.
        at_least: The wait that the server asks for.
    """
    # Twenty doublings exceed any limit, and floats are finite.
    growing = min(WAIT_FIRST * 2.0 ** min(tries, 20), longest)
    return (at_least or 0) + growing * random.uniform(0.5, 1)


class Tries:
    """Counts the attempts of a request and decides whether to retry it."""

    def __init__(self, request: Request, retries: int) -> None:
        self._repeatable = request.repeatable
        self._retries = retries
        self._tries = 0

    def after_answer(self, response: httpx.Response) -> float:
        """Seconds to wait before the next attempt.

        Raises:
            EngineError: there is no further attempt.
        """
        error = refusal(response)
        if not self._may_help(error):
            raise error
        return self._next(error)

    def after_silence(self, error: httpx.RequestError) -> float:
        """Like `after_answer`, without a response."""
        told = no_answer(error)
        if not (self._repeatable or isinstance(error, _NEVER_SENT)):
            raise told from error
        return self._next(told)

    def _may_help(self, error: EngineError) -> bool:
        if error.code in LASTING_CODES:
            return False
        if error.status in UNDONE_STATUSES:
            return True
        is_unknown = error.code in UNKNOWN_CODES or UNKNOWN_WORDS in error.message
        if error.status == 503 and error.code.startswith("ENG_") and not is_unknown:
            return True
        return self._repeatable and error.status in GATEWAY_STATUSES

    def _next(self, error: EngineError) -> float:
        if self._tries == self._retries or (error.retry_after or 0) > RETRY_AFTER_MAX:
            raise error
        self._tries += 1
        return backoff(self._tries - 1, error.retry_after)


#: Errors of requests that never reached the server.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def no_answer(error: httpx.RequestError) -> EngineError:
    """The error as an EngineError."""
    if isinstance(error, _NEVER_SENT):
        told = EngineError(f"could not connect to the server: {error}", code=UNREACHABLE)
    elif isinstance(error, httpx.TimeoutException):
        told = EngineError("the server did not answer in time", code=TIMEOUT)
    else:
        told = EngineError(f"no response from the server: {error}", code=NETWORK)
    told.__cause__ = error
    return told
