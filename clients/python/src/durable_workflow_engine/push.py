"""Receives the tasks of a worker endpoint: an ASGI application, for every server and platform that
runs one. Manual: docs/push-workers.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeAlias

from pydantic import ValidationError

from .async_client import AsyncClient
from .errors import FatalError, RetryableError
from .models import WorkerTask
from .worker.context import Context, Save, ThreadContext
from .worker.handlers import Handler, bind
from .worker.texts import member_of, storable, text_of

__all__ = ["Accepted", "Application", "create_handler"]

log = logging.getLogger("durable_workflow_engine.push")

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_PREFIX = "whsec_"
#: Of the time of a message, in seconds: a captured one is of no use later.
_TOLERANCE = 5 * 60
_MESSAGE_LENGTH_MAX = 500
#: Threads for handlers that are plain functions.
_THREADS = 32


class Accepted(Exception):  # noqa: N818  (it is an answer, not a defect)
    """Raised by a handler that reports its result later, by the API: the claim is kept, and needs
    heartbeats.
    """


def create_handler(
    handlers: Mapping[str, Callable[..., Any]],
    secret: str | Sequence[str],
    *,
    client: AsyncClient | None = None,
) -> Application:
    """
    Args:
        handlers: By their names, as for a `Worker`.
        secret: The secret of the endpoint; several while it is being replaced.
        client: For `context.checkpoint`, which is a call to the engine. Absent: it raises.

    Raises:
        TypeError: a handler cannot be called.
        ValueError: a secret has `whsec_` without base64.
    """
    bound = {name: bind(name, function) for name, function in handlers.items()}
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    return _Endpoint(bound, keys, client)


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(secret[len(_PREFIX) :], validate=True)
        except binascii.Error as error:
            raise ValueError(f"secret must have base64 after {_PREFIX}") from error
    if not key:
        raise ValueError("secret is empty")
    return key


class _Endpoint:
    def __init__(
        self, handlers: Mapping[str, Handler], keys: Sequence[bytes], client: AsyncClient | None
    ) -> None:
        self._handlers = handlers
        self._keys = keys
        self._client = client
        self._threads: Executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="push")

    # Servers recognise ASGI 3 by an object with this coroutine function, not by a bound method.
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            status, body = await self._answer(scope, receive)
            await _respond(send, status, body)
        else:
            raise ValueError(f"{scope['type']} is not served here")

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Mapping[str, Any] | None]:
        if scope["method"] != "POST":
            return 405, {"message": "send tasks by POST"}
        body = await _body(receive)
        refusal = _refusal(_headers(scope), body, self._keys)
        if refusal is not None:
            return 401, {"message": refusal}
        try:
            task = WorkerTask.model_validate_json(body)
        except ValidationError as error:
            return 400, {"message": f"the body is no task: {error.error_count()} errors"}
        handler = self._handlers.get(task.handler_name)
        if handler is None:
            return 404, {"message": f"no handler named {task.handler_name} is here"}
        return await self._run(handler, task)

    async def _run(
        self, handler: Handler, task: WorkerTask
    ) -> tuple[int, Mapping[str, Any] | None]:
        save = self._saving(task)
        context = _Context(task, save) if handler.is_async else _ThreadContext(task, save)
        try:
            return 200, await handler.run(task, context, self._threads)
        except Accepted:
            return 202, None
        except (Exception, SystemExit) as error:
            is_told = issubclass(type(error), (RetryableError, FatalError))
            text = text_of(error)
            message = text if is_told and text else f"{type(error).__name__}: {text}"
            told = {"message": storable(message, _MESSAGE_LENGTH_MAX)}
            if member_of(error, "retryable", True) is False:
                return 422, {**told, "retryable": False}
            if not is_told:
                log.error("the handler %s raised", handler.name, exc_info=error)
            return 500, told

    def _saving(self, task: WorkerTask) -> Save:
        seq = task.checkpoint_seq

        async def save(state: Mapping[str, Any]) -> None:
            nonlocal seq
            if self._client is None:
                raise RuntimeError("context.checkpoint needs a client")
            saved = await self._client.workers.heartbeat(
                task.id,
                worker_id=task.worker_id or "",
                claim_epoch=task.claim_epoch,
                checkpoint_seq=seq,
                checkpoint=dict(state),
            )
            seq = saved.checkpoint_seq

        return save


class _Context(Context):
    def log(self, message: object, level: str = "info") -> None:
        _tell(message, level)


class _ThreadContext(ThreadContext):
    def log(self, message: object, level: str = "info") -> None:
        _tell(message, level)


def _tell(message: object, level: str) -> None:
    """To the log of the process: the platform collects it."""
    number = logging.getLevelName(level.upper())
    log.log(number if isinstance(number, int) else logging.INFO, "%s", text_of(message))


def _headers(scope: Scope) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def _refusal(headers: Mapping[str, str], body: bytes, keys: Sequence[bytes]) -> str | None:
    """Why the message is refused; None: it is genuine. Any of the keys may have signed."""
    message, at = headers.get("webhook-id"), headers.get("webhook-timestamp")
    signatures = headers.get("webhook-signature")
    if not message or not at or not signatures:
        return "the request is not signed"
    if not (at.isascii() and at.isdigit()) or abs(time.time() - int(at)) > _TOLERANCE:
        return "the time of the signature is too far from now"
    signed = f"{message}.{at}.".encode("latin-1") + body
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    wanted = [b"v1," + base64.b64encode(digest) for digest in digests]
    for signature in signatures.encode("latin-1").split(b" "):
        if any(hmac.compare_digest(signature, one) for one in wanted):
            return None
    return "the signature is wrong"


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


async def _respond(send: Send, status: int, body: Mapping[str, Any] | None) -> None:
    headers = [] if body is None else [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    content = b"" if body is None else json.dumps(body).encode()
    await send({"type": "http.response.body", "body": content})


async def _live(receive: Receive, send: Send) -> None:
    """There is nothing to start or to stop."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
