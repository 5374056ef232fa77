"""The worker against the real server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from networks import Between
from pydantic import BaseModel

from durable_workflow_engine import (
    AsyncClient,
    Client,
    Context,
    EngineError,
    FatalError,
    InstanceEnded,
    RetryableError,
    ThreadContext,
    Worker,
    models,
)
from durable_workflow_engine.worker import (
    Failed,
    Polled,
    Reported,
    TaskEnded,
    TaskStarted,
    WorkerEvent,
)
from durable_workflow_engine.worker.exchanges import Exchanges

#: Only a hang takes so many seconds.
LONG = 120


class Charge(BaseModel):
    order: str
    amount: int


class Charged(BaseModel):
    charge: str


def step(handler: str, **more: Any) -> models.StepBlock:
    return models.StepBlock(id=handler, handler=handler, **more)


@contextlib.contextmanager
def serving(
    client: Client | AsyncClient, handlers: dict[str, Callable[..., Any]], **options: Any
) -> Iterator[Worker]:
    """A worker in a thread of its own."""
    worker = Worker(client, handlers=handlers, **options)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(LONG)
    assert not thread.is_alive()


def run(client: Client, *blocks: models.StepBlock, **data: Any) -> dict[str, Any]:
    """The outputs of an instance of these steps."""
    client.sequences.create(name="test", version=1, blocks=blocks)
    return client.instances.run("test", data, timeout=LONG).outputs


def until_ended(client: Client) -> None:
    """Returns when no instance of the tenant is under way."""
    while client.instances.list(state=["running", "scheduled", "waiting"], limit=1).items:
        time.sleep(0.05)


# ---------------------------------------------------------------- handlers


def test_handlers_are_given_and_give_what_their_annotations_name(client: Client) -> None:
    async def charge(params: Charge, ctx: Context) -> Charged:
        ctx.log(f"charging {params.amount}")
        return Charged(charge=f"ch-{params.order}-{params.amount + 1}")

    def pick(params: dict[str, Any], ctx: ThreadContext) -> dict[str, Any]:
        ctx.log("picking", level="warn")
        return {"picked": params["item"], "thread": threading.current_thread().name}

    async def whole(task: models.WorkerTask) -> None:
        assert task.context.data["order"] == "A-1"

    params = {"order": "{{data.order}}", "amount": "{{data.amount}}"}
    steps = [step("charge", params=params), step("pick", params={"item": "lamp"}), step("whole")]
    with serving(client, {"charge": charge, "pick": pick, "whole": whole}):
        outputs = run(client, *steps, order="A-1", amount=41)
    assert outputs["charge"] == {"charge": "ch-A-1-42"}
    assert outputs["pick"]["picked"] == "lamp"
    assert outputs["pick"]["thread"].startswith("handler")
    assert outputs["whole"] == {}
    [instance] = client.instances.list()
    lines = [(line.level, line.message) for line in client.instances.logs(instance.id)]
    assert lines == [("info", "charging 41"), ("warn", "picking")]


async def _charge(params: Charge) -> Charged:
    return Charged(charge=params.order)


async def _list(_: Any) -> Any:
    return [1]


async def _other(_: Any) -> Charged:
    return {"carge": 1}  # type: ignore[return-value]


async def _object(_: Any) -> Any:
    return {"what": object()}


async def _nan(_: Any) -> Any:
    return {"number": float("nan")}


async def _large(_: Any) -> Any:
    return {"text": "x" * 2_000_000}


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (_charge, "params of the handler it are not valid: order: Field required; amount: Field"),
        (_list, "the output of the handler it must be an object, not a list"),
        (_other, "the output of the handler it is not valid: charge: Field required"),
        (_object, "object has no JSON form"),
        (_nan, "nan is not accepted"),
        (_large, "the output was rejected"),
    ],
)
def test_a_step_fails_for_good_by_what_no_other_try_would_mend(
    client: Client, handler: Callable[..., Any], why: str
) -> None:
    with serving(client, {"it": handler}), pytest.raises(InstanceEnded) as raised:
        run(client, step("it", retry={"max_attempts": 3, "initial_backoff": 1}))
    failure = raised.value.instance.failure
    assert failure is not None
    assert why in failure.message
    assert failure.attempt == 0


def test_a_retryable_error_is_tried_again_from_the_checkpoint(client: Client) -> None:
    seen = []
    keys = set()

    async def count(_: Any, ctx: Context) -> dict[str, Any]:
        seen.append((ctx.attempt, ctx.resume))
        keys.add(ctx.task.idempotency_key)
        await ctx.checkpoint({"at": 1})
        await ctx.checkpoint({"at": 2})
        if ctx.attempt == 0:
            raise RetryableError("not yet")
        return {"tries": ctx.attempt + 1}

    def in_thread(_: Any, ctx: ThreadContext) -> dict[str, Any]:
        ctx.checkpoint({"at": 3})
        if ctx.attempt == 0:
            raise RetryableError("not yet")
        return {"resumed": ctx.resume}

    retry = {"max_attempts": 2, "initial_backoff": 1}
    with serving(client, {"count": count, "thread": in_thread}):
        outputs = run(client, step("count", retry=retry), step("thread", retry=retry))
    assert seen == [(0, None), (1, {"at": 2})]
    assert len(keys) == 1
    assert outputs == {"count": {"tries": 2}, "thread": {"resumed": {"at": 3}}}


def test_any_exception_but_a_fatal_one_is_tried_again_and_leaves_its_trace_in_the_logs(
    client: Client,
) -> None:
    tries = []

    async def pick(params: dict[str, Any], ctx: Context) -> None:
        tries.append((params["kind"], ctx.attempt))
        if params["kind"] == "fatal":
            raise FatalError("sold out")
        if params["kind"] == "checkpoint":
            await ctx.checkpoint({"what": object()})
        raise KeyError("nowhere")

    kinds = {
        "fatal": "sold out",
        "checkpoint": "TypeError: object has no JSON form",
        "other": "KeyError: 'nowhere'",
    }
    retry = {"max_attempts": 2, "initial_backoff": 1}
    with serving(client, {"pick": pick}):
        for kind, message in kinds.items():
            block = step("pick", params={"kind": kind}, retry=retry)
            client.sequences.create(name=kind, version=1, blocks=[block])
            with pytest.raises(InstanceEnded, match=message):
                client.instances.run(kind, timeout=LONG)
    assert tries == [("fatal", 0), *itertools.product(["checkpoint", "other"], [0, 1])]
    [newest, *_] = client.instances.list()
    for line in client.instances.logs(newest.id):
        assert line.level == "error"
        assert 'raise KeyError("nowhere")' in line.message


def test_a_wait_is_as_long_as_it_says_or_is_refused(client: Client) -> None:
    day = timedelta(days=1)
    assert RetryableError("later", retry_after=30 * day).retry_after == 30 * 86_400
    assert RetryableError("later", retry_after=float("inf")).retry_after == float("inf")
    left = RetryableError("later", retry_after=datetime.now() + day).retry_after
    assert 86_300 < left <= 86_400
    for odd in ("5", float("nan"), True, object()):
        with pytest.raises(TypeError, match="retry_after must be seconds or a time"):
            RetryableError("later", retry_after=odd)  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError), match="timeout must be"):
            Client(timeout=odd)  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError), match="timeout must be"):
            client.instances.run("test", timeout=odd)  # type: ignore[arg-type]
    with Client(timeout=float("inf")) as patient:
        assert patient.with_options(timeout=day).settings.timeout == 86_400
        assert patient.info().version

    class LaterError(Exception):
        retry_after = "soon"

    async def later(_: Any, ctx: Context) -> None:
        if ctx.attempt == 0:
            raise LaterError

    with serving(client, {"later": later}):
        run(client, step("later", retry={"max_attempts": 2, "initial_backoff": 1}))
    [instance] = client.instances.list()
    lines = [line.message for line in client.instances.logs(instance.id)]
    assert "retry_after is not a valid time: soon" in lines


def test_a_failure_is_held_back_for_as_long_as_it_says_or_until_the_worker_stops(
    client: Client,
) -> None:
    failed: list[float] = []

    async def later(_: Any, ctx: Context) -> dict[str, Any]:
        if ctx.attempt == 2:
            return {"waited": time.monotonic() - failed[0]}
        failed.append(time.monotonic())
        raise RetryableError("later", retry_after=[0.3, LONG * 10][ctx.attempt])

    retry = {"max_attempts": 3, "initial_backoff": 1}
    client.sequences.create(name="test", version=1, blocks=[step("later", retry=retry)])
    instance = client.instances.create(sequence="test").id
    with serving(client, {"later": later}):
        while len(failed) < 2:
            time.sleep(0.05)
    assert failed[1] - failed[0] >= 0.3
    with serving(client, {"later": later}):
        until_ended(client)
    assert client.instances.get(instance).state == "completed"


def test_an_error_of_ones_own_says_whether_another_try_makes_sense(client: Client) -> None:
    class SoldOutError(Exception):
        retryable = False

    async def pick(_: Any, ctx: Context) -> None:
        for n in range(1_200):
            ctx.log(f"line {n}")
        raise (
            FatalError("broken", details={"part": 7})
            if ctx.task.block_id == "a"
            else (SoldOutError("sold out"))
        )

    with serving(client, {"pick": pick}):
        for id, message in [("a", "broken"), ("b", "SoldOutError: sold out")]:
            block = models.StepBlock(id=id, handler="pick", retry=models.Retry(max_attempts=3))
            client.sequences.create(name=id, version=1, blocks=[block])
            with pytest.raises(InstanceEnded, match=message) as raised:
                client.instances.run(id, timeout=LONG)
            failure = raised.value.instance.failure
            assert failure is not None
            assert failure.attempt == 0
            if id == "a":
                lines = [it.message for it in client.instances.logs(raised.value.instance.id)]
                assert len(lines) == 1_000
                assert {"202 earlier lines were dropped", '{"part": 7}'} < set(lines)


# ---------------------------------------------------------------- claims


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_hears_that_the_time_of_its_step_is_over(client: Client, is_async: bool) -> None:
    reasons: list[str | None] = []

    async def in_loop(_: Any, ctx: Context) -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            reasons.append(ctx.cancel_reason)

    def in_thread(_: Any, ctx: ThreadContext) -> None:
        ctx.wait_cancelled(LONG)
        reasons.append(ctx.cancel_reason)

    with serving(client, {"slow": in_loop if is_async else in_thread}):
        with pytest.raises(InstanceEnded):
            run(client, step("slow", timeout=100))
        while not reasons:
            time.sleep(0.01)
    assert reasons == ["timeout"]


def test_a_claim_is_given_back_whose_handler_the_stop_has_ended(client: Client) -> None:
    began = threading.Event()
    reasons: list[str | None] = []

    async def slow(_: Any, ctx: Context) -> None:
        began.set()
        try:
            await asyncio.sleep(LONG)
        finally:
            reasons.append(ctx.cancel_reason)

    client.sequences.create(name="test", version=1, blocks=[step("slow")])
    id = client.instances.create(sequence="test").id
    events: list[WorkerEvent] = []
    with serving(client, {"slow": slow}, grace=0.1, on_event=events.append):
        assert began.wait(LONG)
    assert reasons == ["stopping"]
    assert [it.ending for it in events if isinstance(it, TaskEnded)] == ["given_up"]
    [task] = client.workers.tasks().items
    assert (client.instances.get(id).state, task.state) == ("waiting", "pending")
    assert task.lost_claims == 0


def test_a_server_whose_database_is_away_vouches_for_the_claims_it_cannot_hear_of() -> None:
    class Away:
        async def exchange(self, *_: Any) -> Any:
            raise EngineError("the database is away", status=503, code="ENG_DATABASE_DOWN")

    async def talk() -> list[float]:
        sent: list[float] = []
        link: Any = Away()
        exchanges = Exchanges(
            link,
            worker_id="w",
            version=None,
            handlers=["a"],
            queues=None,
            poll_wait=0,
            room=lambda: 0,
            take=lambda _: None,
            vouch=sent.append,
            tell=lambda _: None,
        )
        await exchanges.say(b'{"kind":"heartbeat","task_id":"t"}', is_fleeting=True)
        await exchanges.close()
        return sent

    assert len(asyncio.run(talk())) == 1


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_hears_that_its_instance_is_cancelled(client: Client, is_async: bool) -> None:
    began, ended = threading.Event(), threading.Event()

    async def in_loop(_: Any, ctx: Context) -> None:
        began.set()
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            if ctx.cancelled:
                ended.set()
            raise

    def in_thread(_: Any, ctx: ThreadContext) -> None:
        began.set()
        if ctx.wait_cancelled(LONG):
            ended.set()

    client.sequences.create(name="test", version=1, blocks=[step("slow")])
    events: list[WorkerEvent] = []
    handlers = {"slow": in_loop if is_async else in_thread}
    with serving(client, handlers, heartbeat=0.1, on_event=events.append):
        id = client.instances.create(sequence="test").id
        assert began.wait(LONG)
        client.instances.signal(id, signal_type="cancel")
        assert ended.wait(LONG)
    assert [it.ending for it in events if isinstance(it, TaskEnded)] == ["dropped"]


def test_many_tasks_are_done_at_once_and_each_once(client: Client) -> None:
    atonce, most, done = 0, 0, []

    async def count(params: dict[str, Any]) -> None:
        nonlocal atonce, most
        atonce += 1
        most = max(most, atonce)
        await asyncio.sleep(0.01)
        atonce -= 1
        done.append(params["n"])

    client.sequences.create(
        name="test", version=1, blocks=[step("count", params={"n": "{{data.n}}"})]
    )
    client.instances.create_batch(
        instances=[{"sequence": "test", "context": {"data": {"n": n}}} for n in range(300)]
    )
    events: list[WorkerEvent] = []
    with serving(client, {"count": count}, concurrency=20, on_event=events.append):
        client.sequences.create(name="last", version=1, blocks=[step("count", params={"n": -1})])
        client.instances.run("last", timeout=LONG)
        until_ended(client)
    assert sorted(done) == list(range(-1, 300))
    assert 1 < most <= 20
    assert max(it.results for it in events if isinstance(it, Reported)) > 1
    assert max(it.tasks for it in events if isinstance(it, Polled)) > 1


def test_a_result_is_reported_until_the_server_has_decided(client: Client) -> None:
    lost = 0

    def refuse(request: httpx.Request) -> httpx.Response | None:
        nonlocal lost
        if b'"complete"' not in request.content or lost == 3:
            return None
        lost += 1
        return httpx.Response(502)

    async def greet(_: Any) -> dict[str, Any]:
        return {"hello": "world"}

    way = AsyncClient(tenant=client.settings.tenant, transport=Between(refuse))
    with serving(way, {"greet": greet}):
        assert run(client, step("greet")) == {"greet": {"hello": "world"}}
    assert lost == 3


def test_a_worker_serves_a_server_without_exchanges(client: Client) -> None:
    preferences = {}

    def no_exchange(request: httpx.Request) -> httpx.Response | None:
        if not request.url.path.endswith("/exchange"):
            kind = request.url.path.rsplit("/", 1)[1]
            preferences[kind] = request.headers.get("prefer")
            if kind == "complete":
                # An old server ignores the preference, and answers with the task.
                request.headers.pop("prefer")
            return None
        headers = {"x-error-code": "ENG_NOT_FOUND", "x-request-id": "1"}
        return httpx.Response(404, headers=headers, json={"error": "no such path"})

    async def first(_: Any, ctx: Context) -> dict[str, Any]:
        await ctx.checkpoint({"at": 1})
        if ctx.attempt == 0:
            raise RetryableError("not yet")
        return {"resumed": ctx.resume}

    def second(_: Any) -> dict[str, Any]:
        return {"done": True}

    retry = {"max_attempts": 2, "initial_backoff": 1}
    way = AsyncClient(tenant=client.settings.tenant, transport=Between(no_exchange))
    with serving(way, {"first": first, "second": second}, poll_wait=1):
        outputs = run(client, step("first", retry=retry), step("second"))
    assert outputs == {"first": {"resumed": {"at": 1}}, "second": {"done": True}}
    assert preferences["fail"] == preferences["complete"] == "return=minimal"


def test_results_that_are_too_much_for_one_request_are_said_apart(client: Client) -> None:
    waiting = 0
    are_all_there = asyncio.Event()

    async def large(_: Any) -> dict[str, Any]:
        nonlocal waiting
        waiting += 1
        if waiting == 12:
            are_all_there.set()
        # All of them end in the same turn.
        await are_all_there.wait()
        return {"text": "x" * 1_000_000}

    client.sequences.create(name="test", version=1, blocks=[step("large", merge_output=False)])
    client.instances.create_batch(instances=[{"sequence": "test"}] * 12)
    events: list[WorkerEvent] = []
    with serving(client, {"large": large}, concurrency=12, on_event=events.append):
        until_ended(client)
    assert [it.state for it in client.instances.list()] == ["completed"] * 12
    endings = [it.ending for it in events if isinstance(it, TaskEnded)]
    assert endings == ["completed"] * 12


def test_only_the_queues_that_are_named_are_served(client: Client) -> None:
    async def greet(_: Any, ctx: Context) -> dict[str, Any]:
        return {"queue": ctx.task.queue_name}

    client.sequences.create(name="other", version=1, blocks=[step("greet", queue_name="slow")])
    other = client.instances.create(sequence="other").id
    with serving(client, {"greet": greet}, queues=["fast"]):
        assert run(client, step("greet", queue_name="fast")) == {"greet": {"queue": "fast"}}
    assert client.instances.get(other).state == "waiting"


# ---------------------------------------------------------------- life


def test_a_worker_that_stops_takes_no_task_with_it_that_its_last_poll_was_given(
    client: Client,
) -> None:
    class Stops(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response = await super().handle_async_request(request)
            await response.aread()
            # The task is claimed, and its answer on the way, when the worker is told to stop.
            if b'"poll"' in request.content and b'"claim_epoch"' in response.content:
                worker.stop()
                await asyncio.sleep(0.05)
            return response

    client.sequences.create(name="test", version=1, blocks=[step("a")])
    worker = Worker(
        AsyncClient(tenant=client.settings.tenant, transport=Stops()), handlers={"a": _nothing}
    )
    thread = threading.Thread(target=worker.run)
    thread.start()
    client.instances.create(sequence="test")
    thread.join(LONG)
    [task] = client.workers.tasks().items
    assert (task.state, task.claim_epoch, task.lost_claims) == ("pending", 1, 0)


SCRIPT = """
import asyncio, os, sys
from durable_workflow_engine import Client, Worker

async def slow(params):
    print("began", flush=True)
    await asyncio.sleep(1)
    return {"finished": True}

Worker(Client(), handlers={"slow": slow}).run()
print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_worker_that_is_told_to_stop_finishes_what_it_has_in_hand(
    client: Client, tmp_path: Path
) -> None:
    client.sequences.create(name="test", version=1, blocks=[step("slow")])
    instance = client.instances.create(sequence="test").id
    script = tmp_path / "serve.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "ENGINE_TENANT": client.settings.tenant or ""}
    worker = subprocess.Popen([sys.executable, script], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "began\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.communicate(timeout=LONG)[0] == "stopped\n"
        assert worker.returncode == 0
    finally:
        worker.kill()
    assert client.instances.get(instance).state == "completed"


async def _nothing(_: Any) -> None:
    return None


def test_a_worker_complains_about_key_tenant_and_handlers(client: Client) -> None:
    wrong = Worker(client.with_options(api_key="wrong"), handlers={"a": _nothing})
    with pytest.raises(EngineError, match="check that api_key is correct and not revoked"):
        wrong.run()
    reader = client.api_keys.mint(
        tenant_id=client.settings.tenant, name="reader", capabilities=["auditor"]
    )
    with pytest.raises(EngineError, match="the key needs the capability worker"):
        Worker(client.with_options(api_key=reader.secret), handlers={"a": _nothing}).run()
    with pytest.raises(EngineError, match="set the tenant of the client"):
        Worker(client.with_options(tenant=None), handlers={"a": _nothing}).run()
    wrong_options: dict[str, dict[str, Any]] = {
        "at least one handler": {"handlers": {}},
        "queues is empty": {"queues": []},
        "combinations of a handler and a queue": {"queues": [f"queue-{n}" for n in range(101)]},
        "concurrency": {"concurrency": 0},
        "at most half of lease": {"heartbeat": 6, "lease": 10},
    }
    for match, options in wrong_options.items():
        with pytest.raises(ValueError, match=match):
            Worker(client, **{"handlers": {"a": _nothing}, **options})
    for name in ("lease", "heartbeat", "poll_wait", "grace", "complain_after"):
        odds: list[Any] = ["5", float("nan"), -1, True, datetime.now()]
        for odd in odds:
            with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
                Worker(client, handlers={"a": _nothing}, **{name: odd})
    Worker(client, handlers={"a": _nothing}, lease=timedelta(minutes=1), grace=float("inf"))
    own = Client(transport=httpx.HTTPTransport()).with_options(tenant="t")
    with pytest.raises(ValueError, match="must be an AsyncClient"):
        Worker(own, handlers={"a": _nothing})
    for wrong_handler in (lambda: None, lambda a, b, c: None, "charge"):
        with pytest.raises(TypeError, match="the handler a"):
            Worker(client, handlers={"a": wrong_handler})  # type: ignore[dict-item]


def test_a_worker_whose_key_is_revoked_says_so_and_goes_on(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    key = client.api_keys.mint(
        tenant_id=client.settings.tenant, name="worker", capabilities=["worker"]
    )
    polled, failed = threading.Event(), threading.Event()

    def see(event: WorkerEvent) -> None:
        if isinstance(event, Polled):
            polled.set()
        if isinstance(event, Failed):
            failed.set()

    own = client.with_options(api_key=key.secret)
    with serving(own, {"a": _nothing}, poll_wait=0.1, on_event=see):
        assert polled.wait(LONG)
        client.api_keys.revoke(key.id)
        assert failed.wait(LONG)
    [complaint] = [it.getMessage() for it in caplog.records if it.levelname == "WARNING"]
    assert "check that api_key is correct and not revoked" in complaint


def test_names_that_nobody_knows_are_told_after_a_while(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.sequences.create(name="test", version=1, blocks=[step("sorts"), step("known")])
    client.instances.create(sequence="test")
    names = ["sort", "known", "log"]
    with serving(client, dict.fromkeys(names, _nothing), complain_after=0.2, queues=["fast"]):
        while len(caplog.records) < 3:
            time.sleep(0.05)
    assert [it.getMessage() for it in caplog.records] == [
        'no sequence or task of the tenant uses the handler "sort"; '
        'tasks are waiting for "sorts" (1)',
        '"log" is a built-in handler, which workers cannot serve',
        'no sequence or task of the tenant uses the queue "fast"',
    ]


def test_hooks_see_each_task_and_surround_its_handler(client: Client) -> None:
    spans: list[str] = []
    events: list[WorkerEvent] = []

    @contextlib.contextmanager
    def span(context: Context | ThreadContext) -> Iterator[None]:
        spans.append(f"begin {context.task.handler_name}")
        yield
        spans.append("end")

    def greet(_: Any) -> dict[str, Any]:
        spans.append("handler")
        return {}

    with serving(client, {"greet": greet}, trace=span, on_event=events.append):
        run(client, step("greet"))
    assert spans == ["begin greet", "handler", "end"]
    [started] = [it for it in events if isinstance(it, TaskStarted)]
    [ended] = [it for it in events if isinstance(it, TaskEnded)]
    assert started.task.id == ended.task.id
    assert (ended.ending, ended.error) == ("completed", None)
