"""The one seam to the network: the only module that opens connections. Whatever serves httpx's interface fits in."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from attrs import define, field, frozen

from ._errors import broken, silent, unreachable

if TYPE_CHECKING:
    import httpx

__all__ = ["Reply", "Transport"]

_CLOSE_SECONDS = 5.0
_LARGEST_ANSWER = 64 << 20
_LARGEST_ERROR = 64 << 10


@define(eq=False)
class Transport:
    """The connections of the plugin. They follow no redirect, and read no proxy or certificate from the environment.

    Args:
        provider: who says so if something fails.
        connect_timeout: seconds for a connection.
        idle_timeout: seconds of silence.
        ca_file: certificate authorities that are trusted besides the public ones.
    """

    provider: str
    connect_timeout: float
    idle_timeout: float
    ca_file: Path | None = None
    _client: httpx.AsyncClient | None = field(default=None, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)

    @asynccontextmanager
    async def exchange(
        self, method: str, url: str, origin: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator[Reply]:
        """Send a request, and hand out the answer as soon as its head is there.

        Raises:
            ProviderUnreachable: there is no connection, or it broke off before the head.
            ProviderTimeout: there was no head for too long.
        """
        client = await self._opened()
        request = client.build_request(method, url, headers={**headers, "accept-encoding": "identity"}, content=content)
        with self._before_answer(origin):
            response = await client.send(request, stream=True)
        try:
            yield Reply(self, origin, response)
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await response.aclose()

    async def aclose(self) -> None:
        """Close all connections. A server that does not let go is given five seconds."""
        if self._client is not None:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self._client.aclose()

    async def _opened(self) -> httpx.AsyncClient:
        async with self._lock:
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(self._open)
            return self._client

    def _open(self) -> httpx.AsyncClient:
        # Both take a while, so they happen when the first request is made, and beside the event loop.
        import certifi  # noqa: PLC0415  see above
        import httpx  # noqa: PLC0415  see above

        trust = ssl.create_default_context(cafile=certifi.where())
        if self.ca_file is not None:
            trust.load_verify_locations(cafile=self.ca_file.expanduser())
        return httpx.AsyncClient(
            verify=trust,
            timeout=httpx.Timeout(self.idle_timeout, connect=self.connect_timeout),
            follow_redirects=False,
            trust_env=False,
        )

    @contextmanager
    def _before_answer(self, origin: str) -> Iterator[None]:
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        try:
            yield
        except httpx.ConnectTimeout as error:
            raise silent(self.provider, origin, self.connect_timeout, error) from error
        except httpx.TimeoutException as error:
            raise silent(self.provider, origin, self.idle_timeout, error) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(self.provider, origin, error, tls=_is_about_tls(error)) from error

    @contextmanager
    def _within_answer(self, origin: str) -> Iterator[None]:
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        try:
            yield
        except httpx.TimeoutException as error:
            raise silent(self.provider, origin, self.idle_timeout, error) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            cause = type(error).__name__
            raise broken(self.provider, f"the connection broke off within the answer ({cause})", cause=cause) from error


@frozen(eq=False)
class Reply:
    """An answer whose body is still to come."""

    _transport: Transport
    _origin: str
    _response: httpx.Response = field(repr=False)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    @property
    def headers(self) -> dict[str, str]:
        """The headers, with names in lower case."""
        return dict(self._response.headers)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body, in pieces. To be closed by whoever reads it.

        Raises:
            StreamBroken: it broke off, is too large, or is compressed without being asked.
            ProviderTimeout: nothing came for too long.
        """
        encoding = self.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise broken(self._transport.provider, f"the answer is encoded as `{encoding}`, which nobody asked for")
        raw = self._response.aiter_raw()
        size = 0
        try:
            while True:
                with self._transport._within_answer(self._origin):  # noqa: SLF001  one module
                    chunk = await anext(raw, None)
                if chunk is None:
                    return
                size += len(chunk)
                if size > _LARGEST_ANSWER:
                    raise broken(self._transport.provider, f"the answer has more than {_LARGEST_ANSWER >> 20} MiB")
                yield chunk
        finally:
            await _unwind(raw)

    async def text(self, longest: int = _LARGEST_ERROR) -> str:
        """The body as text, as far as it comes. For errors, which say something even if they are cut."""
        content = bytearray()
        with suppress(Exception):
            async with aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    content += chunk
                    if len(content) > longest:
                        break
        return bytes(content[:longest]).decode("utf-8", "replace")


async def _unwind(raw: AsyncIterator[Any]) -> None:
    """End an iteration that may have been left half-way.

    The client's own generators are nested, and closing the outer one leaves the inner ones to the garbage collector,
    which ends them at another time, in another task. A read that is cancelled ends them all, here.
    """
    with anyio.CancelScope(shield=True) as scope:
        scope.cancel()
        with suppress(Exception):
            async for _ in raw:
                pass


def _is_about_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
