"""Tools that read and search the web."""

from ._fetch_tool import fetch
from ._pages import KeptPages
from ._search_tool import search

__all__ = ["KeptPages", "fetch", "search"]
