"""Opening a tunnel through a proxy."""

from __future__ import annotations

import re
from base64 import b64encode

import anyio
import httpcore
from attrs import define

from .._addresses._resolving import AddressResolver, NameUnresolved
from .._addresses._url import RequestTarget
from ._trust import Trust, Unlock

_LARGEST_ANSWER = 16_384
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r\n")
_HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")
_NEEDS_CREDENTIAL = 407
_DOMAIN = "proxy"


@define
class Tunnels:
    """Asks proxies for tunnels.

    Args:
        trust: for proxies that are spoken to over TLS.
        resolver: for their names. They may be anywhere: who configures the host chose them.
        unlock: resolves the handle of their credential.
        auth: that handle: ``user:password``, or a secret with an ``Authorization`` header of its own.
    """

    trust: Trust
    resolver: AddressResolver
    unlock: Unlock
    auth: str | None = None

    async def open(
        self, network: httpcore.AsyncNetworkBackend, proxy: RequestTarget, authority: str
    ) -> httpcore.AsyncNetworkStream:
        """A stream that leads to ``authority``, which is ``host:port``.

        Raises:
            httpcore.ProxyError: the proxy can't be reached, or refuses.
        """
        stream = await self._connect(network, proxy)
        try:
            if proxy.scheme == "https":
                tls = await self.trust.context(http2=False)
                stream = await stream.start_tls(tls, proxy.host)
            await stream.write(await self._question(proxy, authority))
            _check_answer(proxy, await _answer(proxy, stream))
        except BaseException:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + 1):
                await stream.aclose()
            raise
        return stream

    async def _connect(
        self, network: httpcore.AsyncNetworkBackend, proxy: RequestTarget
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await self.resolver.resolve(proxy.host, _DOMAIN)
        except NameUnresolved as error:
            raise httpcore.ProxyError(f"{proxy.origin} can't be found: {error}") from None
        problem: Exception | None = None
        for address in addresses:
            try:
                return await network.connect_tcp(str(address), proxy.port)
            except httpcore.ConnectError as error:
                problem = error
        raise httpcore.ProxyError(f"{proxy.origin} can't be reached: {problem}")

    async def _question(self, proxy: RequestTarget, authority: str) -> bytes:
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if self.auth is not None:
            credential = await self.unlock(self.auth, proxy.origin)
            headers = {name.lower(): value for name, value in credential.headers.items()}
            basic = b64encode(credential.value.encode()).decode()
            value = headers.get("proxy-authorization") or headers.get("authorization") or f"Basic {basic}"
            if not _HEADER.match(value):
                raise httpcore.ProxyError(f"the secret `{self.auth}` can't stand in a header")
            lines.append(f"Proxy-Authorization: {value}")
        return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _answer(proxy: RequestTarget, stream: httpcore.AsyncNetworkStream) -> bytes:
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = await stream.read(_LARGEST_ANSWER)
        answer += piece
        if not piece or len(answer) > _LARGEST_ANSWER:
            raise httpcore.ProxyError(f"{proxy.origin} did not answer as a proxy does")
    return answer


def _check_answer(proxy: RequestTarget, answer: bytes) -> None:
    status = _STATUS.match(answer)
    if status is None:
        raise httpcore.ProxyError(f"{proxy.origin} did not answer as a proxy does")
    code = int(status[1])
    if code == _NEEDS_CREDENTIAL:
        raise httpcore.ProxyError(f"{proxy.origin} wants another credential; name one in `proxy_auth`")
    if not 200 <= code < 300:
        raise httpcore.ProxyError(f"{proxy.origin} refused with status {code}")
    if answer.partition(b"\r\n\r\n")[2]:
        # Nobody at the other end speaks before it was spoken to: this would be taken for the server's word.
        raise httpcore.ProxyError(f"{proxy.origin} says more than it was asked")
