"""The blocking client.

Written by `npm run generate` from async_client.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx

from . import models
from ._operations import (
    ChangesOperations,
    InstancesOperations,
    Operations,
)
from ._request import Request, Settings, Tries, backoff, read
from ._resource import JsonObject
from ._seconds import Seconds
from ._settings import Options, changed, settings_from
from ._stream import (
    SILENCE_MAX,
    ChangeFollowing,
    Deadline,
    Following,
    InstanceFollowing,
    Lines,
    ServerSentEvent,
    check_stream,
    stream_arguments,
)
from .errors import TIMEOUT, EngineError, InstanceEnded, RunTimeout
from .events import Change, InstanceEvent, Output, RunResult
from .pages import Page, slice_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


#: Seconds, below the time after which proxies commonly cut a request.
FIRST_WAIT = 20.0
#: Seconds of the time limit that are left to receive the response.
SPARE = 1.0
#: Seconds between looks at a pending start: a full batch starts before its time.
LOOK = 2.0


class Client(Operations):
    """The API of one server for one tenant. Threads may share it.

        with Client(url="http://localhost:8080", api_key=key, tenant="demo") as client:
            created = client.instances.create(sequence="order", context={"data": {"id": 7}})
            instance = client.instances.get(created.id)
            print(instance.state)

    Args:
        url: URL of the server, with or without `/api/v1`. Default: ENGINE_URL, or else
            http://127.0.0.1:8080.
        api_key: Default: ENGINE_API_KEY, or the contents of the file ENGINE_API_KEY_FILE. Not
            needed if the server requires no key.
        tenant: Sent with every request. Default: ENGINE_TENANT.
        namespace: Used for bodies that omit it.
        timeout: Seconds without data from the server after which an attempt is abandoned.
        retries: Maximum number of retries of a request, where they are harmless (docs/python.md).
        transport: Replaces httpx's own transport, for certificates and proxies.

    Raises:
        ValueError: the URL is invalid, or the key file is empty.
    """

    instances: Instances
    changes: Changes

    def __init__(
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        tenant: str | None = None,
        namespace: str = "default",
        timeout: Seconds = 30.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._use(
            settings_from(url, api_key, tenant, namespace, timeout, retries),
            httpx.Client(transport=transport),
            Deadline(),
        )
        self.has_transport = transport is not None

    def _use(self, settings: Settings, http: httpx.Client, deadline: Deadline) -> None:
        self._settings = settings
        self._http = http
        self._deadline = deadline
        #: The client was given its own transport.
        self.has_transport = False
        super().__init__(self)
        self.instances = Instances(self)
        self.changes = Changes(self)

    @property
    def settings(self) -> Settings:
        """The settings of every request."""
        return self._settings

    def with_options(self, **changes: Unpack[Options]) -> Self:
        """This client with another `tenant`, `namespace`, `timeout`, `retries` or `api_key`.

        It shares the connections, and is closed with this one.
        """
        return self._derived(changed(self._settings, changes), self._deadline)

    def _derived(self, settings: Settings, deadline: Deadline) -> Self:
        other = object.__new__(type(self))
        other._use(settings, self._http, deadline)
        other.has_transport = self.has_transport
        return other

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------ for operations

    @property
    def deadline(self) -> Deadline:
        """The deadline of all requests together; usually none."""
        return self._deadline

    def within(self, deadline: Deadline) -> Self:
        """This client with a deadline, after which its requests raise a TimeoutError."""
        return self._derived(self._settings, deadline)

    def call(self, request: Request, reply: Any) -> Any:
        """Sends a request, with retries, and reads the response as `reply`.

        Raises:
            EngineError: it was refused or not answered.
            TimeoutError: the deadline has passed.
        """
        return read(reply, self._send(request))

    def pages(self, request: Request, item: Any, member: str | None) -> Page[Any]:
        """A list."""

        def fetch(asked: Request) -> Any:
            return slice_of(asked, self._send(asked), item, member)

        return Page(request, fetch)

    def _send(self, request: Request) -> httpx.Response:
        tries = Tries(request, self._settings.retries)
        deadline = self._deadline
        while True:
            arguments = request.arguments(self._settings, deadline.check())
            try:
                response = self._http.request(**arguments)
            except httpx.RequestError as error:
                deadline.check()
                wait = tries.after_silence(error)
            else:
                if response.is_success:
                    return response
                wait = tries.after_answer(response)
            time.sleep(max(0, min(wait, deadline.left)))

    def follow(self, following: Following) -> Iterator[Any]:
        """Yields the items of a stream, and reopens it when it breaks.

        Raises:
            EngineError: it is refused.
            TimeoutError: the deadline has passed.
        """
        deadline = self._deadline
        while not following.is_done:
            left = deadline.check()
            try:
                for event in self._events(following, left):
                    for told in following.take(event):
                        yield told
                    if following.is_done:
                        return
                wait = following.after_break(None)
            except (httpx.RequestError, EngineError) as error:
                deadline.check()
                wait = following.after_break(error)
            time.sleep(max(0, min(wait, deadline.left)))

    def _events(self, following: Following, left: float) -> Iterator[ServerSentEvent]:
        lines = Lines()
        silence = min(left, SILENCE_MAX)
        arguments = stream_arguments(following, self._settings, left, silence)
        with self._http.stream(**arguments) as response:
            if not response.is_success:
                response.read()
            check_stream(response)
            for chunk in response.iter_bytes():
                following.heard()
                for event in lines.feed(chunk):
                    yield event
                if not self._deadline.outlasts(silence):
                    return


class Instances(InstancesOperations):
    """The operations `instances.*`, and methods that wait for an instance."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._client = client

    def follow(self, id: str) -> Iterator[InstanceEvent]:
        """States and outputs of an instance until it ends, each once.

        Raises:
            EngineError: there is no such instance.
        """
        return self._client.follow(InstanceFollowing(id))

    def run(
        self,
        sequence: str,
        data: JsonObject | None = None,
        *,
        timeout: Seconds | None = None,
        namespace: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        priority: models.Priority | None = None,
        metadata: JsonObject | None = None,
    ) -> RunResult:
        """Starts an instance of a sequence and waits until it ends.

        Args:
            data: The input, `context.data`.
            timeout: Seconds to wait, or a timedelta; None: no limit.

        Raises:
            InstanceEnded: it failed or was cancelled.
            RunTimeout: it did not end in time, and continues.
            EngineError: it could not be created in time, or its key belongs to an instance of
                another sequence.
        """
        deadline = Deadline(timeout)
        instances = self._client.within(deadline).instances
        body: dict[str, Any] = {
            "sequence": sequence,
            "namespace": namespace,
            "version": version,
            "idempotency_key": idempotency_key,
            "priority": priority,
            "metadata": metadata,
            "context": {"data": data or {}},
        }
        try:
            created = instances._create_and_wait(body)
        except TimeoutError as error:
            raise EngineError(
                f"the creation of {sequence} was not answered within {deadline.seconds:g} s",
                code=TIMEOUT,
            ) from error
        if created.skipped:
            raise EngineError(
                f"the creation of {sequence} was skipped: instance {created.id} holds its key",
                status=409,
                code="ENG_CONFLICT",
            )
        try:
            return instances._result_of(created, sequence, namespace)
        except TimeoutError as error:
            raise RunTimeout(created.id, deadline.seconds) from error

    def _create_and_wait(
        self, body: dict[str, Any]
    ) -> models.InstanceResult | models.InstanceCreated:
        """Many instances end soon: the response to the creation then has the result.

        A creation whose response was lost, for example because a proxy cut the wait, is repeated
        without one. That needs an idempotency key, which a `cohort_key` forbids to generate.
        """
        metadata = body["metadata"] or {}
        keyed = body["idempotency_key"] is not None or "cohort_key" not in metadata
        wait = min(FIRST_WAIT, self._client.deadline.left - SPARE)
        if not keyed or wait <= 0:
            return self.create(**body)
        body = {**body, "idempotency_key": body["idempotency_key"] or str(uuid4())}
        try:
            once = self._client.with_options(retries=0)
            return once.instances.create(**body, wait_ms=round(wait * 1000))
        except EngineError as error:
            passes = error.status in (0, 429) or error.status >= 500
            if not passes or self._client.settings.retries == 0:
                raise
            return self.create(**body)

    def _result_of(
        self,
        created: models.InstanceResult | models.InstanceCreated,
        sequence: str,
        namespace: str | None,
    ) -> RunResult:
        if created.starts_at is not None:
            self._until_started(created.id, created.starts_at)
        if created.deduplicated:
            self._expect_same(created.id, sequence, namespace)
        outputs: dict[str, Any] | None = None
        if isinstance(created, models.InstanceResult):
            outputs = None if created.outputs is None else dict(created.outputs)
        if outputs is None:
            outputs = self._outputs_at_end(created.id)
        instance = self.get(created.id)
        if instance.state != "completed":
            raise InstanceEnded(instance)
        return RunResult(instance, outputs)

    def _until_started(self, id: str, starts_at: datetime) -> None:
        """A collected creation starts an instance later, with the same id."""
        late = 0
        while True:
            due = (starts_at - datetime.now(timezone.utc)).total_seconds()
            wait = min(due, LOOK)
            if due <= 0:
                wait = backoff(late)
                late += 1
            time.sleep(max(0, min(wait, self._client.deadline.left)))
            try:
                starts_at = (self._client.pending_starts.get(id)).starts_at
            except EngineError as error:
                if error.status == 404:
                    return
                raise

    def _outputs_at_end(self, id: str) -> dict[str, Any]:
        outputs: dict[str, Any] = {}
        for event in self.follow(id):
            if isinstance(event, Output):
                outputs[event.output.block_id] = event.output.output
        return outputs

    def _expect_same(self, id: str, name: str, namespace: str | None) -> None:
        """
        Raises:
            EngineError: the idempotency key belongs to an instance of another sequence.
        """
        found = self._client.sequences.get((self.get(id)).sequence_id)
        if found.name == name and namespace in (None, found.namespace):
            return
        where = f"{found.namespace}/{found.name}"
        raise EngineError(
            f"the idempotency key belongs to instance {id} of another sequence: {where}",
            status=409,
            code="ENG_CONFLICT",
        )


class Changes(ChangesOperations):
    """The operations `changes.*`, and the stream of changes."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._client = client

    def follow(self, *, since: str | datetime | None = None) -> Iterator[Change]:
        """All changes of the tenant's instances, each once, without end.

        Args:
            since: The cursor of the last known change, or a time, also as RFC 3339 text; None: from
                now on.
        """
        return self._client.follow(ChangeFollowing(since))
