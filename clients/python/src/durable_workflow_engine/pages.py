"""Lists with pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx

from ._request import Request, next_query, read

T = TypeVar("T")


@dataclass(frozen=True)
class Slice(Generic[T]):
    """One page as received."""

    items: list[T]
    #: The query of the next page; None: there is none.
    next_query: Mapping[str, Any] | None
    next_cursor: str | None


def slice_of(
    request: Request, response: httpx.Response, item: Any, member: str | None
) -> Slice[Any]:
    """The page in a response; a list in a member of the body has its cursor beside it."""
    query = next_query(response)
    if member is None:
        items = read(list[item], response)
        return Slice(items, query, response.headers.get("x-next-cursor"))
    body = read(dict[str, Any], response)
    cursor = body.get("next_cursor")
    if query is None and cursor is not None and body.get("has_more", True):
        query = {**request.query, "cursor": cursor}
    items = [item.model_validate(one) for one in body[member]]
    return Slice(items, query if items else None, cursor)


class Page(Generic[T]):
    """One page of a list. Iterating over it goes through all pages, which are read on the way."""

    def __init__(self, request: Request, fetch: Callable[[Request], Slice[T]]) -> None:
        self._request = request
        self._fetch = fetch
        self._slice = fetch(request)

    @property
    def items(self) -> list[T]:
        """The items of this page."""
        return self._slice.items

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page, for lists with cursors."""
        return self._slice.next_cursor

    def next(self) -> Page[T] | None:
        """The next page."""
        query = self._slice.next_query
        return None if query is None else Page(self._request.with_query(query), self._fetch)

    def __iter__(self) -> Iterator[T]:
        page: Page[T] | None = self
        while page is not None:
            yield from page.items
            page = page.next()


class AsyncPage(Generic[T]):
    """One page of a list."""

    def __init__(self, pages: AsyncPages[T], found: Slice[T]) -> None:
        self._pages = pages
        self._slice = found

    @property
    def items(self) -> list[T]:
        """The items of this page."""
        return self._slice.items

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page, for lists with cursors."""
        return self._slice.next_cursor

    async def next(self) -> AsyncPage[T] | None:
        """The next page."""
        query = self._slice.next_query
        return None if query is None else await self._pages.at(query)


class AsyncPages(Generic[T]):
    """A list: `await` returns its first page, `async for` iterates over the items of all pages."""

    def __init__(self, request: Request, fetch: Callable[[Request], Awaitable[Slice[T]]]) -> None:
        self._request = request
        self._fetch = fetch

    async def at(self, query: Mapping[str, Any]) -> AsyncPage[T]:
        """The page with this query."""
        pages = AsyncPages(self._request.with_query(query), self._fetch)
        return await pages

    async def _first(self) -> AsyncPage[T]:
        return AsyncPage(self, await self._fetch(self._request))

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._first().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        page: AsyncPage[T] | None = await self
        while page is not None:
            for item in page.items:
                yield item
            page = await page.next()
