"""What handlers log, raise and return at their worst: nothing of it loses a result, or holds others
back. The table, hostile.json, is that of the client for TypeScript and of all other ways in, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hostile import HOSTILE, whole
from networks import Between
from test_worker import LONG, serving, step, until_ended

from durable_workflow_engine import (
    AsyncClient,
    Client,
    Context,
    EngineError,
    FatalError,
    InstanceEnded,
    Worker,
    models,
)
from durable_workflow_engine.worker import WorkerEvent


def run_each(
    client: Client,
    rows: list[Any],
    work: Callable[[Any, Context], Any],
    way: AsyncClient | None = None,
) -> list[models.TaskInstance]:
    """One instance for each row, all of them by one worker whose handler is given the row."""

    async def handle(params: dict[str, Any], ctx: Context) -> Any:
        return work(rows[params["row"]], ctx)

    block = step("it", params={"row": "{{data.row}}"})
    client.sequences.create(name="test", version=1, blocks=[block])
    create = client.instances.create
    ids = [create(sequence="test", context={"data": {"row": n}}).id for n in range(len(rows))]
    with serving(way or client, {"it": handle}):
        until_ended(client)
    return [client.instances.get(id) for id in ids]


def lines_of(client: Client, id: str) -> list[str]:
    return [line.message for line in client.instances.logs(id, limit=20)]


def test_no_line_of_a_log_loses_the_output_whatever_is_in_it(client: Client) -> None:
    def work(_: Any, ctx: Context) -> dict[str, Any]:
        for row in HOSTILE["lines"]:
            ctx.log(whole(row["text"]))
        for odd in (b"bytes", 123, None):
            ctx.log(odd)
        ctx.log("level", level=7)  # type: ignore[arg-type]
        return {"is_done": True}

    [instance] = run_each(client, ["all"], work)
    assert instance.state == "completed"
    stored = [whole(row["stored"]) for row in HOSTILE["lines"]]
    assert lines_of(client, instance.id) == [*stored, "bytes", "123", "None", "level"]


@pytest.mark.parametrize("flood", HOSTILE["floods"], ids=lambda it: it["name"])
def test_of_lines_beyond_the_limit_of_a_body_the_oldest_are_dropped(
    client: Client, flood: dict[str, Any]
) -> None:
    reports: list[bytes] = []

    def accepts(request: httpx.Request) -> httpx.Response | None:
        """A server that accepts so much, and says so."""
        if b'"complete"' in request.content:
            reports.append(request.content)
        answer = httpx.request(
            request.method, request.url, headers=request.headers, content=request.content
        )
        body = {**answer.json(), "max_body_bytes": flood["bodyBytes"]}
        headers = {"x-request-id": answer.headers["x-request-id"]}
        return httpx.Response(answer.status_code, headers=headers, json=body)

    def work(_: Any, ctx: Context) -> dict[str, Any]:
        for _ in range(flood["lines"]):
            ctx.log(whole(flood["text"]))
        ctx.log("the last one")
        return {"is_done": True}

    way = AsyncClient(tenant=client.settings.tenant, transport=Between(accepts))
    [instance] = run_each(client, ["all"], work, way)
    assert instance.state == "completed"
    first, *others = (line["message"] for line in json.loads(reports[0])["results"][0]["logs"])
    told = re.fullmatch(r"(\d+) earlier lines were dropped", first)
    assert told is not None
    assert int(told[1]) + len(others) == flood["lines"] + 1
    assert others[-1] == "the last one"
    # No more than have to be.
    line = len(whole(flood["text"]).encode())
    assert flood["bodyBytes"] - line - 500 < len(reports[0]) <= flood["bodyBytes"]


class OddError(Exception):
    """Whose text cannot be had."""

    retryable = False

    def __str__(self) -> str:
        sys.exit("no text")


class UnreadableError(OddError):
    """Of which no member can be read."""

    def __getattribute__(self, name: str) -> Any:
        if name == "retryable":
            return False
        raise ValueError(name)


class Silent:
    def __repr__(self) -> str:
        raise ValueError("no text")


CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE

ODD_ERRORS: dict[str, Exception] = {
    "the message is a list": FatalError(["a", "b"]),  # type: ignore[arg-type]
    "the message is an object": FatalError({"code": 7}),  # type: ignore[arg-type]
    "the message is a number": FatalError(7),  # type: ignore[arg-type]
    "the text throws": OddError(),
    "every member throws": UnreadableError(),
    "details contain themselves": FatalError("told", details=CIRCLE),
    "details have odd names": FatalError("told", details={b"k": 1, (1, 2): 2}),
    "details throw": FatalError("told", details=Silent()),
}


def test_every_failure_is_reported_however_odd_its_message_and_its_details_are(
    client: Client,
) -> None:
    texts = [(whole(row["text"]), whole(row["stored"])) for row in HOSTILE["lines"]]
    rows = [
        *((FatalError(text), re.escape(stored[:200] or "FatalError")) for text, stored in texts),
        *((ODD_ERRORS[row["kind"]], row["told"].strip("^$")) for row in HOSTILE["errors"]),
    ]

    def work(row: tuple[Exception, str], _: Context) -> None:
        raise row[0]

    for (_, told), instance in zip(rows, run_each(client, rows, work), strict=True):
        assert instance.state == "failed"
        assert instance.failure is not None
        assert re.match(f".*{told}", instance.failure.message), told
        assert instance.failure.attempt == 0


# Values of the language: what only a text of JSON can hold is no matter of a client.
REFUSED = [
    (json.loads(whole(row["json"])), f"{row['told']}.* is not accepted, at .*kept")
    for row in HOSTILE["refused"]
    if "is_text" not in row
]


def test_what_can_be_kept_comes_back_as_it_went_in(client: Client) -> None:
    kept = HOSTILE["kept"]
    lines = [it for row in kept.values() for it in row if isinstance(it, str)]

    async def echo(params: dict[str, Any], ctx: Context) -> Any:
        for line in lines:
            ctx.log(line)
        return {"echoed": params["it"]}

    block = step("it", params={"it": "{{ data.kept }}"})
    client.sequences.create(name="test", version=1, blocks=[block])
    id = client.instances.create(
        sequence="test", context={"data": {"kept": kept}}, metadata={"kept": kept}
    ).id
    with serving(client, {"it": echo}):
        until_ended(client)
    [listed] = client.instances.list().items
    for told in (client.instances.get(id), listed):
        assert told.context.data == {"kept": kept, "echoed": kept}
        assert told.metadata == {"kept": kept}
    [output] = client.instances.outputs(id).items
    assert output.output == {"echoed": kept}
    assert [line.message for line in client.instances.logs(id, limit=100)] == lines


def test_what_cannot_be_kept_is_refused_in_the_same_words(client: Client) -> None:
    client.sequences.create(name="test", version=1, blocks=[step("it")])
    for value, told in REFUSED:
        with pytest.raises((ValueError, EngineError), match=told):
            client.instances.create(sequence="test", context={"data": {"kept": value}})
    assert client.instances.list().items == []


ODD_OUTPUTS: dict[str, Any] = {
    "not a number": {"n": float("nan")},
    "it contains itself": CIRCLE,
    "a list": [1],
    "larger than a body": {"text": "x" * 11_000_000},
    # Of Python alone.
    "a name twice": {"1": "a", 1: "b"},
    "a name of bytes": {b"k": 1},
    "more digits than it prints": {"n": 10**5000},
}
OWN = [
    {"kind": "a name twice", "told": 'the name "1" for a second member of one object'},
    {"kind": "a name of bytes", "told": "bytes cannot be the name of a JSON member"},
    {"kind": "more digits than it prints", "told": "."},
]


def test_an_output_that_cannot_be_stored_fails_its_step_for_good_and_says_why(
    client: Client,
) -> None:
    def work(row: tuple[Any, str], ctx: Context) -> Any:
        ctx.log("a line")
        return row[0]

    odd = [(ODD_OUTPUTS[row["kind"]], row["told"]) for row in (*HOSTILE["outputs"], *OWN)]
    rows = [*odd, *(({"kept": value}, told) for value, told in REFUSED)]
    for row, instance in zip(rows, run_each(client, rows, work), strict=True):
        assert instance.failure is not None, row[1]
        assert re.search(row[1], instance.failure.message), row[1]
        assert instance.failure.attempt == 0
        assert lines_of(client, instance.id)[0] == "a line"


def _reset() -> httpx.Response:
    raise httpx.ReadError("the connection is gone")


@pytest.mark.parametrize(
    "answer",
    [_reset, lambda: httpx.Response(403, text="No"), lambda: httpx.Response(504)],
    ids=["the connection is reset", "a firewall answers", "a gateway gives up on it"],
)
def test_a_report_that_never_arrives_holds_none_of_the_others_back(
    client: Client, answer: Callable[[], httpx.Response]
) -> None:
    is_open = False
    runs = 0

    def refuse(request: httpx.Request) -> httpx.Response | None:
        return answer() if b"unwanted" in request.content and not is_open else None

    async def work(params: dict[str, Any]) -> dict[str, str]:
        nonlocal runs
        runs += 1
        return {"text": "unwanted" if params["n"] == 0 else "x" * 1_000}

    block = step("it", params={"n": "{{data.n}}"})
    client.sequences.create(name="test", version=1, blocks=[block])
    client.instances.create_batch(
        instances=[{"sequence": "test", "context": {"data": {"n": n}}} for n in range(40)]
    )
    way = AsyncClient(tenant=client.settings.tenant, transport=Between(refuse))
    with serving(way, {"it": work}):
        while len(client.instances.list(state=["completed"], limit=50).items) < 39:
            time.sleep(0.05)
        is_open = True
        until_ended(client)
    assert runs == 40


def test_a_worker_survives_what_ends_a_program(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def parse(_: Any) -> None:
        argparse.ArgumentParser(exit_on_error=True).parse_args(["--unknown"])

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    async def leave(_: Any) -> None:
        sys.exit(3)

    async def hook(event: WorkerEvent) -> None:
        raise ValueError(f"a bad hook: {type(event).__name__}")

    handlers = {"parse": parse, "interrupt": interrupt, "leave": leave}
    told = {"parse": "SystemExit: 2", "interrupt": "KeyboardInterrupt: ", "leave": "SystemExit: 3"}
    with serving(client, handlers, on_event=hook):
        for name, message in told.items():
            block = step(name, retry={"max_attempts": 1})
            client.sequences.create(name=name, version=1, blocks=[block])
            with pytest.raises(InstanceEnded) as raised:
                client.instances.run(name, timeout=LONG)
            assert raised.value.instance.failure is not None
            assert raised.value.instance.failure.message == message
    assert "on_event failed" in caplog.text


def test_a_worker_that_is_cancelled_gives_its_tasks_back(client: Client) -> None:
    client.sequences.create(name="test", version=1, blocks=[step("slow")])
    client.instances.create(sequence="test")

    async def serve() -> None:
        began = asyncio.Event()

        async def slow(_: Any) -> None:
            began.set()
            await asyncio.sleep(LONG)

        serving = asyncio.ensure_future(Worker(client, handlers={"slow": slow}).serve())
        await asyncio.wait_for(began.wait(), LONG)
        serving.cancel()
        await asyncio.wait({serving})

    asyncio.run(serve())
    [task] = client.workers.tasks().items
    assert (task.state, task.lost_claims) == ("pending", 0)
