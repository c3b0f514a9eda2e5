"""Which transport carries the requests."""

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
    """The transport that the configuration names.

    ``auto`` is aiohttp where it can be had and HTTP/2 can't be agreed on, which for ``http:`` is always so; else httpx.

    Raises:
        TransportUnavailable: it names aiohttp, and that is not installed, or this is not asyncio.
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
    """The transport that comes with httpx, for asyncio and trio."""
    from ._pinned import PinnedTransport  # noqa: PLC0415  it imports httpx

    return PinnedTransport(options)


def aiohttp_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    """The transport on aiohttp, for asyncio, with HTTP/1.1 alone."""
    from ._aiohttp import AiohttpTransport  # noqa: PLC0415  slow to import, and optional

    return AiohttpTransport(options)


def _auto_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    return httpx_transport(options) if options.http2 else aiohttp_transport(options)


def _unavailable() -> str | None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "it works on asyncio only"
    return None if find_spec("aiohttp") else "it is not installed"
