"""The interface of search services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen
from sideband.tools import ToolContext


@frozen
class Found:
    """One result of a search.

    Attributes:
        title: the title of the page.
        url: its address.
        text: a part of its text.
        published: the date of publication, if the service knows it.
    """

    title: str
    url: str
    text: str = ""
    published: str = ""


class SearchService(Protocol):
    """A service that searches the web. It sends its requests as effects of the tool."""

    async def search(self, ctx: ToolContext, query: str, *, page: int, period: str | None) -> Sequence[Found]:
        """Return a page of results, the best first.

        Args:
            ctx: the context of the tool.
            query: what to search for.
            page: the page of results, counted from 1.
            period: ``day``, ``month`` or ``year``, to find only what was published within it.

        Raises:
            SearchUnavailable: if the service does not answer as it should.
        """
