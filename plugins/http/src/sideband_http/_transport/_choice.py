"""The choice of the transport."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from .._errors import TransportUnavailable
from ._interface import HttpTransportFactory, TransportOptions

if TYPE_CHECKING:
    import httpx

TransportName = Literal["auto", "httpx", "aiohttp"]


def transport_named(name: TransportName) -> HttpTransportFactory:
    """Return the factory of the configured transport.

    ``auto`` selects aiohttp if it is available and HTTP/2 is not an option, as always for ``http:`` URLs; else httpx.

    Raises:
        TransportUnavailable: if aiohttp is configured but not installed, or the backend is not asyncio.
    """
    if name == "httpx":
        return httpx_transport
    problem = _unavailable()
    if problem is None:
        return aiohttp_transport if name == "aiohttp" else _auto_transport
    if name == "aiohttp":
        raise TransportUnavailable(name, problem)
    return httpx_transport


def httpx_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    """Return the httpx transport, for asyncio and trio."""
    from ._pinned import PinnedTransport  # noqa: PLC0415  it imports httpx

    return PinnedTransport(options)


def aiohttp_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    """Return the aiohttp transport, for asyncio and HTTP/1.1 only."""
    from ._aiohttp import PinnedAiohttpTransport  # noqa: PLC0415  slow to import, and optional

    return PinnedAiohttpTransport(options)


def _auto_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    return httpx_transport(options) if options.http2 else aiohttp_transport(options)


def _unavailable() -> str | None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "it requires asyncio"
    return None if find_spec("aiohttp") else "aiohttp is not installed"
