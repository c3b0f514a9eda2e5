"""The tool `search`: search the web."""

from __future__ import annotations

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._config import SearchConfig, config_of
from .._errors import SearchUnavailable
from ._models import SearchParams
from ._requests import from_web
from ._searxng import SearXng
from ._services import Found, SearchService

_SNIPPET = 500
_SERVICES = {"searxng": SearXng}


@tool("search", level=Level.MONITORED, read_only=True, resume="replay")
async def search(params: SearchParams, ctx: ToolContext) -> str:
    """Search the web, and get titles, addresses and short descriptions of pages. Read a page with `fetch`."""
    config = config_of(ctx).search
    if config is None:
        raise SearchUnavailable("no search service is configured")
    found = await _service(config).search(ctx, params.query, page=params.page, period=params.period)
    if not found:
        return f"[nothing was found on page {params.page}]"
    shown = "\n\n".join(_entry(number, one) for number, one in enumerate(found, 1))
    return from_web(shown, f"{len(found)} results of a search", [])


def _service(config: SearchConfig) -> SearchService:
    return _SERVICES[config.service](config)


def _entry(number: int, found: Found) -> str:
    date = f" ({_line(found.published)})" if found.published else ""
    return "\n".join(
        filter(None, (f"{number}. {_line(found.title)}{date}", _line(found.url), _line(found.text)[:_SNIPPET]))
    )


def _line(text: str) -> str:
    return " ".join(text.split())
