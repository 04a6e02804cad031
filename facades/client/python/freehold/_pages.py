"""Lists, which come in pages."""

from __future__ import annotations

from itertools import islice
from typing import Any, Callable, Generic, Iterator, List, Mapping, Optional, TypeVar

T = TypeVar("T")


class Page(Generic[T]):
    """A part of a list. `next_cursor` continues it."""

    data: List[T]
    next_cursor: Optional[str]
    has_more: bool
    body: Mapping[str, Any]
    """The whole answer, with members such as the totals of usage."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.data = body["data"]
        self.next_cursor = body.get("next_cursor")
        self.has_more = body.get("has_more", False)
        self.body = body


class Pages(Generic[T]):
    """A list. Iterate over its entries, or take one page after the other. Reads each page when it is needed."""

    def __init__(self, read: Callable[[Optional[str]], Mapping[str, Any]]) -> None:
        self._read = read

    def page(self, cursor: Optional[str] = None) -> Page[T]:
        """Returns a page. cursor: the `next_cursor` of the page before."""
        return Page(self._read(cursor))

    def __iter__(self) -> Iterator[T]:
        page = self.page()
        yield from page.data
        while page.next_cursor:
            page = self.page(page.next_cursor)
            yield from page.data

    def all(self, most: Optional[int] = None) -> List[T]:
        """Returns all entries, or the first ones."""
        return list(islice(self, most))
