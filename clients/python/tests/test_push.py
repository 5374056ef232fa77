"""The ASGI application of worker endpoints, called by the real server and by hand."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from pydantic import BaseModel

from durable_workflow_engine import Client, Context, FatalError, InstanceEnded, models
from durable_workflow_engine.push import Accepted, Application, create_handler

KEY = b"a key of thirty-two random bytes"
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"

Headers = list[tuple[bytes, bytes]]


class Charge(BaseModel):
    amount: int


async def call(app: Application, method: str, headers: Headers, body: bytes) -> tuple[int, bytes]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": "/", "headers": headers}
    await app(scope, receive, send)
    start, content = sent
    return start["status"], content["body"]


def host(app: Application) -> tuple[uvicorn.Server, str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, f"http://127.0.0.1:{port}/tasks"


Serve = Callable[[Application, str], None]


@pytest.fixture
def serve(client: Client) -> Iterator[Serve]:
    servers: list[uvicorn.Server] = []

    def begin(app: Application, handler: str) -> None:
        server, url = host(app)
        servers.append(server)
        client.worker_endpoints.put(handler, handlers=[handler], url=url, secret=SECRET)

    yield begin
    for server in servers:
        server.should_exit = True


def run(client: Client, handler: str, params: dict[str, Any]) -> Any:
    name = f"s-{uuid.uuid4()}"
    block = models.StepBlock(id="a", handler=handler, params=params)
    client.sequences.create(name=name, version=1, blocks=[block])
    return client.instances.run(name, timeout=60).outputs["a"]


def test_a_task_is_run_by_its_handler(client: Client, serve: Serve) -> None:
    name = f"charge-{uuid.uuid4()}"

    async def charge(params: Charge, context: Context) -> dict[str, Any]:
        context.log("charged")
        return {"charged": params.amount, "attempt": context.attempt}

    serve(create_handler({name: charge}, SECRET), name)
    assert run(client, name, {"amount": 7}) == {"charged": 7, "attempt": 0}


def test_a_plain_function_runs_in_a_thread(client: Client, serve: Serve) -> None:
    name = f"plain-{uuid.uuid4()}"
    serve(create_handler({name: lambda params: {"n": params["n"] + 1}}, SECRET), name)
    assert run(client, name, {"n": 1}) == {"n": 2}


def test_a_fatal_error_fails_the_step_for_good(client: Client, serve: Serve) -> None:
    name = f"fatal-{uuid.uuid4()}"

    def refuse(_: dict[str, Any]) -> None:
        raise FatalError("declined")

    serve(create_handler({name: refuse}, SECRET), name)
    with pytest.raises(InstanceEnded, match="answered 422: declined"):
        run(client, name, {})


def signed(body: bytes, *, key: bytes = KEY, at: float | None = None) -> Headers:
    stamp = str(int(time.time() if at is None else at)).encode()
    digest = hmac.new(key, b"m1." + stamp + b"." + body, hashlib.sha256).digest()
    return [
        (b"webhook-id", b"m1"),
        (b"webhook-timestamp", stamp),
        (b"webhook-signature", b"v1," + base64.b64encode(digest)),
    ]


def task(handler: str) -> bytes:
    return json.dumps(
        {
            "id": str(uuid.uuid4()),
            "instance_id": str(uuid.uuid4()),
            "block_id": "a",
            "handler_name": handler,
            "params": {},
            "context": {"data": {}, "config": {}},
            "attempt": 0,
            "idempotency_key": str(uuid.uuid4()),
            "timeout_ms": None,
            "state": "claimed",
            "worker_id": "endpoint:e",
            "claim_epoch": 1,
            "lost_claims": 0,
            "claimed_at": None,
            "heartbeat_at": None,
            "completed_at": None,
            "output": None,
            "error_message": None,
            "error_retryable": None,
            "checkpoint_seq": 0,
            "created_at": "2026-01-01T00:00:00Z",
        }
    ).encode()


def accept(_: dict[str, Any]) -> None:
    raise Accepted


def test_only_what_the_engine_signed_lately_is_run() -> None:
    app = create_handler({"accept": accept}, [SECRET, "another secret"])
    body = task("accept")

    def status(headers: Headers, content: bytes = body) -> int:
        return asyncio.run(call(app, "POST", headers, content))[0]

    assert status(signed(body)) == 202
    assert status(signed(body, key=b"another secret")) == 202
    assert status(signed(body, key=b"a wrong key")) == 401
    assert status(signed(body), body + b" ") == 401
    assert status(signed(body, at=time.time() - 600)) == 401
    assert status([]) == 401
    assert status(signed(b"{}"), b"{}") == 400
    other = task("unknown")
    assert status(signed(other), other) == 404
    assert asyncio.run(call(app, "GET", [], b""))[0] == 405


def test_a_secret_that_is_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="base64"):
        create_handler({}, "whsec_?")
