"""The choice of the transport."""

from __future__ import annotations

import asyncio
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
    if name == "aiohttp":
        if problem := _problem():
            raise TransportUnavailable(name, problem)
        return aiohttp_transport
    return _auto_transport if name == "auto" else httpx_transport


def httpx_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    """Return the httpx transport, for asyncio and trio."""
    from ._pinned import PinnedTransport  # noqa: PLC0415  it imports httpx

    return PinnedTransport(options)


def aiohttp_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    """Return the aiohttp transport, for asyncio and HTTP/1.1 only."""
    from ._aiohttp import PinnedAiohttpTransport  # noqa: PLC0415  slow to import, and optional

    return PinnedAiohttpTransport(options)


def _auto_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    return httpx_transport(options) if options.http2 or _problem() else aiohttp_transport(options)


def _problem() -> str | None:
    """Return why aiohttp cannot be used, or ``None``."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "it requires asyncio"
    try:
        from . import _aiohttp  # noqa: F401, PLC0415  as above
    except ModuleNotFoundError:
        return "aiohttp is not installed"
    except ImportError as error:
        return error.msg
    return None
