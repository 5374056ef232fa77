"""Ways to the real server on which something goes wrong."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


class LosesAnswers(httpx.BaseTransport):
    """The first answers to requests of a method are lost; the server has done what was asked."""

    def __init__(self, method: str, times: int) -> None:
        self.asked = 0
        self._method = method
        self._left = times
        self._way = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._way.handle_request(request)
        if request.method != self._method:
            return response
        self.asked += 1
        if self._left == 0:
            return response
        self._left -= 1
        response.read()
        response.close()
        raise httpx.ReadError("the connection is gone")


class Refuses(httpx.BaseTransport):
    """The first requests do not get through: what stands before the server answers."""

    def __init__(self, status: int, times: int, headers: dict[str, str]) -> None:
        self.asked = 0
        self._refusal = (status, headers)
        self._left = times
        self._way = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self._left == 0:
            return self._way.handle_request(request)
        self._left -= 1
        status, headers = self._refusal
        return httpx.Response(status, headers=headers, json={"error": "later"})


class CutsStreams(httpx.BaseTransport):
    """Each stream of events breaks after so many events, until it was opened a few times."""

    def __init__(self, events: int, times: int) -> None:
        self.opened = 0
        self._events = events
        self._times = times
        self._way = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._way.handle_request(request)
        if not request.url.path.endswith("/stream"):
            return response
        self.opened += 1
        if self.opened > self._times:
            return response
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, stream=_Cut(response, self._events))


class _Cut(httpx.SyncByteStream):
    def __init__(self, response: httpx.Response, events: int) -> None:
        self._response = response
        self._left = events

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._response.iter_raw():
            for line in chunk.splitlines(keepends=True):
                yield line
                self._left -= line == b"\n"
                if self._left == 0:
                    raise httpx.ReadError("the connection is gone")

    def close(self) -> None:
        self._response.close()


class Between(httpx.AsyncBaseTransport):
    """Answers in place of the server where `answer` gives something."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response | None]) -> None:
        self._answer = answer
        self._way = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self._answer(request) or await self._way.handle_async_request(request)


@contextlib.contextmanager
def falls_silent(created: Mapping[str, object] | None) -> Iterator[str]:
    """The URL of what accepts all requests, but answers creations alone, or nothing at all."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            over.wait()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if created is None:
                over.wait()
                return
            body = json.dumps(created).encode()
            self.send_response(201)
            self.send_header("x-request-id", "r")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """The client is gone, as it should be."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()
