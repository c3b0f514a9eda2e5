"""Serve clients at an address, over Streamable HTTP. Each request needs the token."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from attrs import field, frozen
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ._client_sessions import ClientSessions
from ._server import DISCONNECTED

_PATH = "/mcp"
_MAX_CONNECTIONS = 256
_CLOSE_SECONDS = 1
_OK = 200


@frozen
class Address:
    """An address that clients reach, and what they need to.

    Attributes:
        socket: the socket, which listens.
        token: what each request must have.
        hosts: further names of this server that a request may contain, with their ports.
        origins: the origins of web pages that may send requests.
    """

    socket: socket.socket = field(repr=False)
    token: str = field(repr=False)
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()

    @property
    def url(self) -> str:
        """The address, without the token."""
        return f"{self.origin}{_PATH}"

    @property
    def origin(self) -> str:
        """The origin of the address."""
        return f"http://{self._hosts()[0]}"

    def security(self) -> TransportSecuritySettings:
        """Return which names and origins a request may contain."""
        own = self._hosts()
        return TransportSecuritySettings(
            allowed_hosts=[*own, *self.hosts], allowed_origins=[*(f"http://{one}" for one in own), *self.origins]
        )

    def _hosts(self) -> list[str]:
        host, port = self.socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        local = [f"localhost:{port}"] if host in ("127.0.0.1", "::1") else []
        return [f"{shown}:{port}", *local]


def make_app(server: Server[Any], sessions: ClientSessions, address: Address) -> ASGIApp:
    """Return the application that serves an address."""
    limits = sessions.limits
    inner = server.streamable_http_app(
        streamable_http_path=_PATH,
        max_request_body_size=limits.body,
        session_idle_timeout=limits.idle_seconds,
        max_sessions=limits.sessions,
        transport_security=address.security(),
    )
    return _Door(inner, sessions, address.token.encode()).serve


async def serve_address(server: Server[Any], sessions: ClientSessions, address: Address) -> None:
    """Serve clients until this is cancelled."""
    await serve_app(make_app(server, sessions, address), address)


async def serve_app(app: ASGIApp, address: Address) -> None:
    """Serve an application at an address until this is cancelled."""
    config = uvicorn.Config(
        app,
        interface="asgi3",
        proxy_headers=False,
        access_log=False,
        log_config=None,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
        server_header=False,
    )
    server = _HttpServer(config)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):  # it ends by itself: a cancelled one prints a traceback
            await server.serve(sockets=[address.socket])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True


class _HttpServer(uvicorn.Server):
    """A server that leaves the signals of the process alone: the command handles them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


@frozen
class _Door:
    """Lets requests with the token in, and notes when a client leaves or ends its session."""

    inner: ASGIApp
    sessions: ClientSessions
    token: bytes = field(repr=False)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if not self._admits(headers.get(b"authorization", b"")):
            await _refusal()(scope, receive, send)
            return
        disconnected = anyio.Event()
        ended = False

        async def noting() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                disconnected.set()
            return message

        async def sending(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                ended = scope["method"] == "DELETE" and message["status"] == _OK
            await send(message)

        await self.inner({**scope, DISCONNECTED: disconnected}, noting, sending)
        if ended:
            self.sessions.end(headers.get(b"mcp-session-id", b"").decode("latin-1"))

    def _admits(self, header: bytes) -> bool:
        kind, _, token = header.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self.token)


def _refusal() -> Response:
    return PlainTextResponse(
        "the request needs the token that `sideband mcp serve` has shown: Authorization: Bearer TOKEN\n",
        status_code=401,
        headers={"WWW-Authenticate": "Bearer"},
    )
