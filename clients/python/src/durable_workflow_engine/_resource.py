"""The base of the generated operations, which describe requests that the client sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from ._request import Keyed, Request, Settings, path

__all__ = ["Caller", "JsonObject", "Keyed", "Resource", "path"]

#: A JSON object in place of a model.
JsonObject: TypeAlias = Mapping[str, Any]


class Caller(Protocol):
    """Sends requests. The operations of an asynchronous client await its results."""

    @property
    def settings(self) -> Settings: ...
    def call(self, request: Request, reply: Any) -> Any: ...
    def pages(self, request: Request, item: Any, member: str | None) -> Any: ...


class Resource:
    """A group of operations."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def _tenant(self) -> str | None:
        return self._caller.settings.tenant

    @property
    def _namespace(self) -> str:
        return self._caller.settings.namespace

    def _call(self, method: str, path: str, reply: Any, **parts: Any) -> Any:
        return self._caller.call(_request(self._caller.settings, method, path, **parts), reply)

    def _pages(
        self, method: str, path: str, item: Any, *, member: str | None = None, **parts: Any
    ) -> Any:
        request = _request(self._caller.settings, method, path, **parts)
        return self._caller.pages(request, item, member)


def _request(
    settings: Settings,
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    keyed: Keyed | None = None,
    repeatable: bool = False,
) -> Request:
    sent = None if body is None else {name: it for name, it in body.items() if it is not None}
    if sent is not None and keyed is not None:
        sent, repeatable = keyed.filled(sent, settings)
    return Request(method, path, query or {}, sent, repeatable)
