"""Wait on a port of this machine for the browser that comes back from an authorization."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream
from attrs import define, field

from ._redirect import AuthorizationRedirect, redirect_of

_HOST = "127.0.0.1"
_PATH = "/callback"
_SECONDS_OF_REQUEST = 10.0
_MAX_REQUESTS = 100
_MAX_BYTES = 16_384
_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", "default-src 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Connection", "close"),
]


@define(eq=False)
class RedirectListener:
    """Takes one redirect: the first one that belongs to the login. All other requests are refused.

    Attributes:
        address: the address for the authorization server, without a query.
        state: the secret of the login; until it is set, every request is refused.
    """

    address: str
    state: str = field(default="", repr=False)
    _found: AuthorizationRedirect | None = field(init=False, default=None, repr=False)
    _happened: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _requests: int = field(init=False, default=0)

    async def redirect(self) -> AuthorizationRedirect:
        """Wait for the redirect."""
        await self._happened.wait()
        assert self._found is not None  # noqa: S101  set before the event
        return self._found

    def take(self, text: str) -> None:
        """Take the address to which the browser was sent.

        Raises:
            ValueError: if it does not belong to this login, or there was one before.
        """
        if not self.state:
            raise ValueError("the login has not begun")
        if self._found is not None:
            raise ValueError("the login has had its answer")
        self._found = redirect_of(text, address=self.address, state=self.state)
        self._happened.set()

    async def answer(self, stream: SocketStream) -> None:
        """Answer one connection of a browser."""
        self._requests += 1
        with anyio.move_on_after(_SECONDS_OF_REQUEST):
            async with stream:
                if self._requests <= _MAX_REQUESTS:
                    try:
                        await self._exchange(stream, h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_BYTES))
                    except (h11.ProtocolError, anyio.EndOfStream, anyio.BrokenResourceError, OSError):
                        return

    async def _exchange(self, stream: SocketStream, http: h11.Connection) -> None:
        while (event := http.next_event()) is h11.NEED_DATA:
            http.receive_data(await stream.receive())
        if not isinstance(event, h11.Request):
            return
        status, text = self._status(event)
        body = f"<!doctype html><title>sideband</title><p>{text}".encode()
        headers = [*_HEADERS, ("Content-Length", str(len(body)))]
        for part in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            await stream.send(http.send(part) or b"")

    def _status(self, request: h11.Request) -> tuple[int, str]:
        hosts = [value for name, value in request.headers if name == b"host"]
        target = request.target.decode("ascii", "replace")
        # Another host name is a page that has this address as its own: it must not reach the login.
        if hosts != [self.address.removeprefix("http://").partition("/")[0].encode()]:
            return 400, "This address belongs to a login of sideband."
        if request.method != b"GET" or target.partition("?")[0] != _PATH:
            return 404, "There is nothing here."
        try:
            self.take(self.address.removesuffix(_PATH) + target)
        except ValueError as error:
            return 400, f"This is not the answer to the login: {error}."
        return 200, "Sideband has the answer. Close this window and return to the terminal."


@asynccontextmanager
async def listening(port: int | None) -> AsyncIterator[RedirectListener]:
    """Listen for the browser.

    Args:
        port: the port; by default a free one.

    Raises:
        OSError: if the port is in use.
    """
    server = await anyio.create_tcp_listener(local_host=_HOST, local_port=port or 0)
    bound = server.extra(SocketAttribute.local_port)  # noqa: S610  not that of a database
    listener = RedirectListener(f"http://{_HOST}:{bound}{_PATH}")
    async with server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, listener.answer)
        try:
            yield listener
        finally:
            tasks.cancel_scope.cancel()
