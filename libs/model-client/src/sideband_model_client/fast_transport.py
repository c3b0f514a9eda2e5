"""A transport based on aiohttp, for HTTP/1.1 on asyncio. It is several times as fast as the default of httpx.

The automatic features of aiohttp are disabled: redirects, cookies, settings from the environment, decompression,
retries, and default headers other than those for framing.

aiohttp is optional, so this module is imported only if it is chosen. The import fails for a version without the
options that are used here, which another package may have installed.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import anyio
import httpx
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

__all__ = ["AiohttpTransport"]

if tuple(map(int, aiohttp.__version__.split(".")[:2])) < (3, 14):
    raise ImportError(f"aiohttp {aiohttp.__version__} is installed, but 3.14 is needed")

_MAX_LINE_BYTES = 16_384
_MAX_FIELD_BYTES = 32_768
_MAX_HEADERS = 256
_READ_BYTES = 65_536
# The headers that aiohttp would add by default.
_SKIPPED_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")
# The httpx error for each aiohttp error. The first match applies.
_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ServerFingerprintMismatch, httpx.ConnectError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx.UnsupportedProtocol),
    (aiohttp.ClientError, httpx.ReadError),
    (OSError, httpx.ReadError),
    (ValueError, httpx.LocalProtocolError),
)


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Implements the httpx interface with aiohttp. It never negotiates HTTP/2.

    Args:
        tls: the TLS context; ``None`` for ``http``.
        max_connections: the maximum number of open connections. Further requests wait.
        keep_seconds: how long an idle connection stays open.

    Example:
        >>> async def fetch(url):
        ...     transport = AiohttpTransport(None, max_connections=1, keep_seconds=30)
        ...     async with httpx.AsyncClient(transport=transport) as client:
        ...         return await client.get(url)
    """

    def __init__(self, tls: ssl.SSLContext | None, *, max_connections: int, keep_seconds: float) -> None:
        connector = aiohttp.TCPConnector(
            ssl=True if tls is None else tls,
            limit=max_connections,
            keepalive_timeout=keep_seconds,
            use_dns_cache=False,
            resolver=aiohttp.ThreadedResolver(),  # the system's, even if another one is installed
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            requote_redirect_url=False,
            skip_auto_headers=_SKIPPED_HEADERS,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
            read_bufsize=_READ_BYTES,
            middlewares=(_without_retry,),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response before its body is read."""
        content = self.upload_of(request)
        upload = content if isinstance(content, bytes) or content is None else _Upload(content)
        host, name = self.destination_of(request)
        try:
            with _as_httpx(upload):
                response = await self._session.request(
                    request.method,
                    _url(request, host),
                    data=upload,
                    headers=[(name.decode("ascii"), value.decode("ascii")) for name, value in request.headers.raw],
                    allow_redirects=False,
                    timeout=_timeout(request.extensions.get("timeout", {})),
                    server_hostname=name,
                )
        except BaseException:
            if isinstance(upload, _Upload):
                await upload.aclose()
            raise
        version = response.version or aiohttp.HttpVersion11
        return httpx.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_AiohttpBody(response, upload),
            extensions={
                "http_version": f"HTTP/{version.major}.{version.minor}".encode(),
                "reason_phrase": (response.reason or "").encode("utf-8", "surrogateescape"),
            },
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()

    def destination_of(self, request: httpx.Request) -> tuple[str, str | None]:
        """Return the host or address to connect to, and the name for the certificate if it is another one."""
        # Not `url.host`, which is decoded: the resolver would encode it by other rules, so that some are other hosts.
        return request.url.raw_host.decode("ascii"), None

    def upload_of(self, request: httpx.Request) -> bytes | httpx.AsyncByteStream | None:
        """Return the body of a request: bytes that are sent at once, or a stream; ``None`` without a body."""
        stream = request.stream
        if isinstance(stream, httpx.ByteStream):
            return b"".join(stream) or None
        assert isinstance(stream, httpx.AsyncByteStream)  # noqa: S101
        return stream


async def _without_retry(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Prevent aiohttp from resending a request after a lost connection: each request is recorded and sent once."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise httpx.RemoteProtocolError(_reason(error)) from error


def _url(request: httpx.Request, host: str) -> URL:
    authority = f"[{host}]" if ":" in host else host
    port = request.url.port or {"http": 80, "https": 443}[request.url.scheme]
    url = URL(f"{request.url.scheme}://{authority}:{port}{request.url.raw_path.decode('ascii')}", encoded=True)
    if url.raw_path_qs.encode() != request.url.raw_path:
        raise httpx.UnsupportedProtocol("the client would send a different URL")
    return url


def _timeout(seconds: dict[str, float | None]) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=None,
        connect=seconds.get("pool"),
        sock_connect=seconds.get("connect"),
        sock_read=seconds.get("read"),
    )


@contextmanager
def _as_httpx(upload: _Upload | bytes | None) -> Iterator[None]:
    """Convert aiohttp errors to httpx errors. An error of the upload is raised unchanged."""
    try:
        yield
    except httpx.TransportError:
        raise
    except Exception as error:
        if isinstance(upload, _Upload) and upload.error is not None:
            raise upload.error from None
        for kind, converted in _ERRORS:
            if isinstance(error, kind):
                raise converted(_reason(error)) from error
        raise


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        # The text of the exception contains the URL.
        return error.message.partition("\n")[0]
    return str(error) or type(error).__name__


class _Upload(aiohttp.Payload):
    """A body that is streamed. aiohttp sends it in a task, which ``aclose`` waits for."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        super().__init__(stream)
        self.error: Exception | None = None
        self._ended: anyio.Event | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002  aiohttp's signature
        raise TypeError("a streamed body is not available as text")

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._ended = anyio.Event()
        try:
            async for piece in self._value:
                await writer.write(piece)
        except Exception as error:
            self.error = error
            raise
        finally:
            self._ended.set()

    async def aclose(self) -> None:
        """Wait for the sending task to end, then close the stream. The request must have ended before."""
        if self._ended is not None:
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
        await self._value.aclose()


class _AiohttpBody(httpx.AsyncByteStream):
    """The body of a response, streamed."""

    def __init__(self, response: aiohttp.ClientResponse, upload: _Upload | bytes | None) -> None:
        self._response = response
        self._upload = upload

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx(self._upload):
            async for piece in self._response.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()
        if isinstance(self._upload, _Upload):
            await self._upload.aclose()
