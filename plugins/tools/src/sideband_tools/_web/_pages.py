"""The texts of long pages, so that their further parts are those of the same version and need no request."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime

from attrs import define, field, frozen

_MAX_PAGES = 50
_MAX_CHARACTERS = 16_000_000


@frozen
class PageKey:
    """What a session has asked for: a URL, and whether as source."""

    session: str
    url: str
    source: bool


@frozen
class PageText:
    """The text of a page.

    Attributes:
        url: its address, after redirects.
        text: the text, with the title.
        fetched: when it was fetched.
    """

    url: str
    text: str = field(repr=False)
    fetched: datetime


@define
class KeptPages:
    """The pages that were read last, in memory. Those that were not read for the longest time are dropped.

    Example:
        >>> pages = KeptPages()
        >>> key = PageKey("session", "https://example.org/", source=False)
        >>> pages.keep(key, PageText("https://example.org/", "text", datetime(2026, 1, 1)))
        >>> pages.get(key).text, pages.get(PageKey("other", "https://example.org/", source=False))
        ('text', None)
    """

    _pages: OrderedDict[PageKey, PageText] = field(factory=OrderedDict, repr=False)
    _characters: int = 0

    def get(self, key: PageKey) -> PageText | None:
        """Return a page, if it is kept."""
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
        return page

    def keep(self, key: PageKey, page: PageText) -> None:
        """Keep a page instead of its earlier version, unless it is too long."""
        self.drop(key)
        self._pages[key] = page
        self._characters += len(page.text)
        while self._characters > _MAX_CHARACTERS or len(self._pages) > _MAX_PAGES:
            self.drop(next(iter(self._pages)))

    def drop(self, key: PageKey) -> None:
        """Keep a page no longer."""
        if (page := self._pages.pop(key, None)) is not None:
            self._characters -= len(page.text)
