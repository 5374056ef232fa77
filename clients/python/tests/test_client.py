"""The blocking and the asynchronous client against the real server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
import uuid
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from hostile import HOSTILE
from networks import CutsStreams, LosesAnswers, Refuses, falls_silent

from durable_workflow_engine import (
    NULL,
    AsyncClient,
    Client,
    Done,
    EngineError,
    InstanceEnded,
    Output,
    RunTimeout,
    models,
)
from durable_workflow_engine._model import encode
from durable_workflow_engine._stream import Deadline, InstanceFollowing

GREET = models.StepBlock(id="greet", handler="transform", params={"hello": "{{data.name}}"})
WAIT = models.StepBlock(id="wait", handler="nobody-serves-this")


def stored(client: Client, *blocks: models.StepBlock, name: str = "test") -> str:
    return client.sequences.create(name=name, version=1, blocks=blocks).id


def through(client: Client, transport: httpx.BaseTransport, retries: int = 4) -> Client:
    """The same tenant on another way to the server."""
    return Client(tenant=client.settings.tenant, transport=transport, retries=retries)


# ---------------------------------------------------------------- operations


def test_what_is_stored_is_read_as_models(client: Client) -> None:
    nested = models.ParallelBlock(id="both", branches=[[GREET], [WAIT]])
    created = client.sequences.create(name="nested", version=1, blocks=[nested])
    stored = client.sequences.get(created.id)
    assert isinstance(stored.blocks[0], models.ParallelBlock)
    assert [branch[0].id for branch in stored.blocks[0].branches] == ["greet", "wait"]
    assert stored.namespace == "default"
    assert stored.created_at.tzinfo is not None
    assert client.sequences.by_name(name="nested").id == created.id


def test_the_client_fills_in_tenant_and_namespace(client: Client) -> None:
    stored(client, GREET)
    elsewhere = client.with_options(namespace="elsewhere")
    with pytest.raises(EngineError, match="not found"):
        elsewhere.instances.create(sequence="test")
    batch = client.instances.create_batch(
        instances=[{"sequence": "test"}, {"sequence": "test", "namespace": "default"}]
    )
    assert batch.count == 2


def test_a_version_on_hold_is_started_by_a_pin_until_the_hold_is_lifted(client: Client) -> None:
    def started(version: int | None = None) -> str:
        created = client.instances.create(sequence="test", version=version)
        return client.instances.get(created.id).sequence_id

    first = stored(client, GREET)
    held = client.sequences.create(name="test", version=2, blocks=[GREET], hold=True).id
    assert (started(), started(2)) == (first, held)
    client.sequences.update(held, hold=False)
    assert (started(), started(1)) == (held, first)


def test_every_creation_has_an_idempotency_key(client: Client) -> None:
    stored(client, WAIT)
    one = client.instances.create(sequence="test")
    assert client.instances.get(one.id).idempotency_key
    given = [client.instances.create(sequence="test", idempotency_key="mine") for _ in range(2)]
    assert [it.deduplicated for it in given] == [False, True]


def test_a_list_goes_over_all_pages(client: Client) -> None:
    stored(client, WAIT)
    client.instances.create_batch(instances=[{"sequence": "test"}] * 7)
    page = client.instances.list(limit=3)
    assert len(page.items) == 3
    assert page.next_cursor
    assert len({instance.id for instance in page}) == 7
    following = page.next()
    assert following is not None
    assert not {it.id for it in page.items} & {it.id for it in following.items}
    changes = client.changes.list(limit=2)
    assert len({entry.id for entry in changes}) >= 14

    async def asynchronously() -> tuple[int, int]:
        async with AsyncClient(tenant=client.settings.tenant) as other:
            first = await other.instances.list(limit=3)
            return len(first.items), len([it async for it in other.instances.list(limit=3)])

    assert asyncio.run(asynchronously()) == (3, 7)


def test_filters_are_sent_as_the_server_reads_them(client: Client) -> None:
    stored(client, WAIT)
    client.instances.create(sequence="test", metadata={"color": "red"})
    client.instances.create(sequence="test", metadata={"color": "blue"})
    now = datetime.now(timezone.utc)
    for found, count in [
        (client.instances.list(metadata={"color": "red"}), 1),
        (client.instances.list(state=["waiting", "scheduled", "running"]), 2),
        (client.instances.list(created_before=now.replace(year=now.year - 1)), 0),
    ]:
        assert len(found.items) == count


def test_a_change_leaves_what_is_none_and_takes_away_what_is_null(client: Client) -> None:
    stored(client, GREET)
    made = client.cron.create(sequence="test", cron_expr="@yearly", timeout=5, metadata={"a": 1})
    changed = client.cron.update(made.id, timeout=NULL, metadata=None)
    assert (changed.timeout, changed.metadata) == (None, {"a": 1})
    assert changed.next_fire_at == made.next_fire_at
    [fire] = client.cron.preview(cron_expr="@yearly", count=1).fires
    assert fire.at == made.next_fire_at


# ---------------------------------------------------------------- errors


def test_a_refusal_says_what_is_wrong(client: Client) -> None:
    with pytest.raises(EngineError) as raised:
        client.sequences.create(name="bad", version=1, blocks=[{"type": "nope", "id": "x"}])
    error = raised.value
    assert (error.status, error.code) == (400, "ENG_VALIDATION")
    assert error.field == "blocks[0].type"
    assert error.request_id
    assert error.request_id in str(error)
    with pytest.raises(EngineError) as raised:
        client.instances.get(str(uuid.uuid4()))
    assert (raised.value.status, raised.value.field) == (404, None)


def test_what_is_no_engine_is_told() -> None:
    foreign = httpx.MockTransport(lambda _: httpx.Response(200, html="<p>hello"))
    with pytest.raises(EngineError, match="is not an engine") as raised:
        Client(transport=foreign).info()
    assert raised.value.code == "CLIENT_NO_ENGINE"
    with pytest.raises(EngineError) as raised:
        Client(url="http://127.0.0.1:1", retries=0).info()
    assert (raised.value.status, raised.value.code) == (0, "CLIENT_UNREACHABLE")
    with pytest.raises(ValueError, match="is not a URL"):
        Client(url="localhost:8080")


def test_an_empty_id_asks_for_nothing_else(client: Client) -> None:
    with pytest.raises(ValueError, match="id is empty"):
        client.instances.get("")


def test_what_is_not_given_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    variables = {
        "ENGINE_URL": "http://engine.test:81/",
        "ENGINE_TENANT": "acme",
        "ENGINE_API_KEY": " ",
        "ENGINE_API_KEY_FILE": str(file),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings = AsyncClient().settings
    assert settings == Client().settings
    assert settings.url == "http://engine.test:81/api/v1"
    assert (settings.tenant, settings.api_key) == ("acme", "from-file")
    monkeypatch.setenv("ENGINE_API_KEY", "from-variable")
    assert Client().settings.api_key == "from-variable"
    given = Client(url="https://other.test", api_key="given", tenant="mine").settings
    assert (given.url, given.api_key) == ("https://other.test/api/v1", "given")
    assert given.tenant == "mine"
    for name in variables:
        monkeypatch.delenv(name)
    settings = Client().settings
    assert settings.url == "http://127.0.0.1:8080/api/v1"
    assert (settings.tenant, settings.api_key) == (None, None)


# ---------------------------------------------------------------- tries


def test_a_creation_whose_answer_is_lost_is_made_once(client: Client) -> None:
    stored(client, WAIT)
    network = LosesAnswers("POST", times=2)
    made = through(client, network).instances.create(sequence="test")
    assert made.deduplicated
    assert network.asked == 3
    assert [it.id for it in client.instances.list()] == [made.id]


def test_what_may_have_happened_is_not_repeated(client: Client) -> None:
    stored(client, WAIT)
    id = client.instances.create(sequence="test").id
    network = LosesAnswers("POST", times=1)
    with pytest.raises(EngineError) as raised:
        through(client, network).instances.signal(id, signal_type="custom:ping")
    assert raised.value.status == 0
    assert network.asked == 1
    assert len(client.instances.signals(id).items) == 1


def test_a_refusal_is_waited_out(client: Client) -> None:
    network = Refuses(429, times=1, headers={"retry-after": "0"})
    assert through(client, network).instances.list().items == []
    assert network.asked == 2
    lasting = Refuses(429, times=9, headers={"retry-after": "3600"})
    with pytest.raises(EngineError) as raised:
        through(client, lasting).instances.list()
    assert raised.value.retry_after == 3600
    assert lasting.asked == 1


@pytest.mark.parametrize("row", HOSTILE["answers"], ids=str)
@pytest.mark.parametrize("is_repeatable", [True, False])
def test_what_is_sent_again_is_as_the_table_of_both_languages_says(
    row: dict[str, Any], is_repeatable: bool
) -> None:
    asked = 0

    def answer(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        headers = {"x-request-id": "1", "retry-after": "0"}
        if asked > 1:
            return httpx.Response(200, headers=headers, json={"signal_id": "s", "version": "1"})
        if row["code"]:
            headers["x-error-code"] = row["code"]
        body = {"error": row.get("message", "no")}
        return httpx.Response(row["status"], headers=headers, json=body)

    is_again = row["again"] == "always" or (row["again"] == "repeatable" and is_repeatable)
    client = Client(transport=httpx.MockTransport(answer))
    # Once the answer is not the refusal, it does not matter whether it is understood.
    with contextlib.suppress(EngineError):
        if is_repeatable:
            client.info()
        else:
            client.instances.signal("i", signal_type="custom:paid")
    assert asked == (2 if is_again else 1)


@pytest.mark.parametrize("row", HOSTILE["tenants"], ids=str)
def test_a_tenant_is_sent_as_it_is_or_refused(row: dict[str, Any]) -> None:
    asked: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.headers.raw)[b"x-tenant-id"])
        return httpx.Response(200, headers={"x-request-id": "1"}, json=[])

    transport = httpx.MockTransport(answer)
    if row["is_sent"]:
        assert not Client(tenant=row["tenant"], transport=transport).instances.list().items
        assert asked == [row["tenant"].encode()]
        return
    with pytest.raises(ValueError, match=r"the tenant .* cannot be sent: it must begin and end"):
        Client(tenant=row["tenant"], transport=transport)
    with pytest.raises(ValueError, match="cannot be sent"):
        Client(transport=transport).with_options(tenant=row["tenant"])


def test_tries_are_bounded(client: Client) -> None:
    network = Refuses(503, times=9, headers={})
    with pytest.raises(EngineError, match="answered 503"):
        through(client, network, retries=1).instances.list()
    assert network.asked == 2


# ---------------------------------------------------------------- waiting for an end


def test_run_gives_the_outputs(client: Client) -> None:
    stored(client, GREET)
    result = client.instances.run("test", {"name": "Ada"}, timeout=60)
    assert result.instance.state == "completed"
    assert result.outputs == {"greet": {"hello": "Ada"}}

    async def asynchronously() -> dict[str, Any]:
        async with AsyncClient(tenant=client.settings.tenant) as other:
            return (await other.instances.run("test", {"name": "Bob"}, timeout=60)).outputs

    assert asyncio.run(asynchronously()) == {"greet": {"hello": "Bob"}}


def test_run_with_a_key_of_another_sequence_says_so(client: Client) -> None:
    stored(client, GREET)
    stored(client, GREET, name="other")
    first = client.instances.run("test", {"name": "Ada"}, idempotency_key="A-1", timeout=60)
    again = client.instances.run("test", {"name": "Ada"}, idempotency_key="A-1", timeout=60)
    assert again.instance.id == first.instance.id
    with pytest.raises(EngineError, match="of another sequence: default/test") as raised:
        client.instances.run("other", idempotency_key="A-1")
    assert raised.value.code == "ENG_CONFLICT"


def test_outputs_may_hold_what_ends_a_line_elsewhere(client: Client) -> None:
    stored(client, GREET)
    name = "one\u2028two\u0085three\nfour\r"
    result = client.instances.run("test", {"name": name}, timeout=60)
    assert result.outputs == {"greet": {"hello": name}}


def test_run_raises_what_an_instance_failed_of(client: Client) -> None:
    stored(client, models.StepBlock(id="no", handler="fail", params={"message": "no way"}))
    with pytest.raises(InstanceEnded, match="no way") as raised:
        client.instances.run("test", timeout=60)
    failure = raised.value.instance.failure
    assert failure is not None
    assert (failure.block_id, failure.code) == ("no", "handler_failed")


def test_run_waits_no_longer_than_it_is_told(client: Client) -> None:
    stored(client, WAIT)
    with pytest.raises(RunTimeout) as raised:
        client.instances.run("test", timeout=0.3)
    assert client.instances.get(raised.value.instance_id).state == "waiting"

    async def asynchronously() -> None:
        async with AsyncClient(tenant=client.settings.tenant) as other:
            await other.instances.run("test", timeout=0.3)

    with pytest.raises(TimeoutError):
        asyncio.run(asynchronously())


CREATED = {"id": str(uuid.uuid4()), "deduplicated": False}
COLLECTED = {**CREATED, "collected": True, "starts_at": "2026-01-01T00:00:00Z"}
#: What the creation is answered, and what is silent behind it.
SILENCES: dict[str, Mapping[str, object] | None] = {
    "the creation": None,
    "its stream": CREATED,
    "the look at a pending start": COLLECTED,
    "the look whose sequence has the key": {**CREATED, "deduplicated": True},
    "the look at what has ended": {**CREATED, "state": "completed", "outputs": {}},
}


@pytest.mark.parametrize("created", SILENCES.values(), ids=SILENCES.keys())
def test_run_ends_in_time_whatever_request_is_not_answered(
    created: Mapping[str, object] | None,
) -> None:
    async def asynchronously(url: str) -> None:
        async with AsyncClient(url=url) as other:
            await other.instances.run("test", timeout=1.2)

    def blocking(url: str) -> None:
        with Client(url=url) as one:
            one.instances.run("test", timeout=1.2)

    for run in (blocking, lambda url: asyncio.run(asynchronously(url))):
        with falls_silent(created) as url:
            began = time.monotonic()
            with pytest.raises((RunTimeout, EngineError)) as raised:
                run(url)
            assert 1.1 < time.monotonic() - began < 5
        if created is None:
            assert isinstance(raised.value, EngineError)
            assert raised.value.code == "CLIENT_TIMEOUT"
        else:
            assert isinstance(raised.value, RunTimeout)
            assert raised.value.instance_id == created["id"]


def test_the_end_of_a_wait_is_not_a_time_limit_of_a_request(client: Client) -> None:
    class Ends(Deadline):
        """Passes right after it was looked at."""

        looks = 0

        @property
        def left(self) -> float:
            self.looks += 1
            return 0.2 if self.looks == 1 else -1

    id = client.instances.create(sequence_id=stored(client, WAIT)).id
    with pytest.raises(TimeoutError):
        list(client.within(Ends()).follow(InstanceFollowing(id)))


def test_run_waits_for_the_start_of_collected_creations(client: Client) -> None:
    debounce = {"wait_ms": 500}
    client.sequences.create(name="test", version=1, debounce=debounce, blocks=[GREET])
    result = client.instances.run("test", {"name": "Ada"}, timeout=60)
    assert result.outputs == {"greet": {"hello": "Ada"}}

    async def asynchronously() -> dict[str, Any]:
        async with AsyncClient(tenant=client.settings.tenant) as other:
            return (await other.instances.run("test", {"name": "Bob"}, timeout=60)).outputs

    assert asyncio.run(asynchronously()) == {"greet": {"hello": "Bob"}}

    later = {"wait_ms": 60_000}
    client.sequences.create(name="later", version=1, debounce=later, blocks=[GREET])
    with pytest.raises(RunTimeout) as raised:
        client.instances.run("later", {"name": "Ada"}, timeout=2)
    assert client.pending_starts.get(raised.value.instance_id).count == 1


def test_a_stream_that_breaks_tells_nothing_twice(client: Client) -> None:
    steps = [GREET.model_copy(update={"id": f"step-{n}"}) for n in range(4)]
    id = client.instances.create(sequence_id=stored(client, *steps)).id
    network = CutsStreams(events=2, times=3)
    events = list(through(client, network).instances.follow(id))
    told = [it.output.block_id for it in events if isinstance(it, Output)]
    assert told == ["step-0", "step-1", "step-2", "step-3"]
    assert isinstance(events[-1], Done)
    assert events[-1].state == "completed"
    assert network.opened == 4


def test_following_an_instance_that_is_not_there_ends(client: Client) -> None:
    with pytest.raises(EngineError) as raised:
        list(client.instances.follow(str(uuid.uuid4())))
    assert raised.value.status == 404


def test_changes_are_followed_from_a_cursor_and_across_breaks(client: Client) -> None:
    stored(client, GREET)
    client.instances.create(sequence="test")
    listed = list(client.changes.list())
    beginning = client.changes.list(limit=1).next_cursor
    network = CutsStreams(events=1, times=2)
    follower = through(client, network).changes.follow(since=beginning)
    told = list(itertools.islice(follower, len(listed) - 1))
    assert [it.entry.id for it in told] == [it.id for it in listed[1:]]
    assert network.opened > 1
    for since in ("2020-01-01T00:00:00+02:00", datetime(2020, 1, 1)):
        assert next(client.changes.follow(since=since)).entry.id == listed[0].id


def test_changes_without_a_cursor_begin_with_the_present(client: Client) -> None:
    stored(client, GREET)
    client.instances.create(sequence="test")
    until = threading.Event()

    def go_on() -> None:
        while not until.wait(0.1):
            client.instances.create(sequence="test", idempotency_key="later")

    later = threading.Thread(target=go_on)
    later.start()
    try:
        change = next(client.changes.follow())
    finally:
        until.set()
        later.join()
    assert client.instances.get(change.entry.instance_id).idempotency_key == "later"


# ---------------------------------------------------------------- reading and writing


def test_what_a_newer_server_says_is_kept() -> None:
    told = {"kind": "dream", "summary": "It dreams.", "deepness": 3}
    wait = models.Wait.model_validate(
        {**told, "block_id": None, "path": None, "since": None, "until": None}
    )
    assert str(wait.kind) == "dream"
    assert wait.model_extra == {"deepness": 3}


def test_models_are_sent_as_they_were_given() -> None:
    step = models.StepBlock(id="a", handler="log", params={"none": None})
    assert encode(step) == {"type": "step", "id": "a", "handler": "log", "params": {"none": None}}
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert encode([moment, ("a", 1.5, True)]) == ["2026-01-02T03:04:05+00:00", ["a", 1.5, True]]
    with pytest.raises(TypeError, match="object has no JSON form"):
        encode({"what": object()})
