"""Opening tunnels through a proxy."""

from __future__ import annotations

import re
from base64 import b64encode

import anyio
import httpcore
from attrs import define

from .._addresses._resolving import AddressResolver, NameUnresolved
from .._addresses._url import RequestTarget
from ._trust import Trust, Unlock

_MAX_RESPONSE_BYTES = 16_384
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r\n")
_HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")
_CREDENTIAL_REQUIRED = 407
_DOMAIN = "proxy"


@define
class Tunnels:
    """Opens tunnels through proxies.

    Args:
        trust: the TLS contexts for https proxies.
        resolver: resolves the names of proxies. Their addresses are not checked, because the configuration chose them.
        unlock: resolves the handle of the credential.
        auth: the handle of a secret ``user:password``, or of one with its own ``Authorization`` header.
    """

    trust: Trust
    resolver: AddressResolver
    unlock: Unlock
    auth: str | None = None

    async def open(
        self, network: httpcore.AsyncNetworkBackend, proxy: RequestTarget, authority: str
    ) -> httpcore.AsyncNetworkStream:
        """Return a stream to ``authority``, which is ``host:port``.

        Raises:
            httpcore.ProxyError: if the proxy cannot be reached or refuses.
        """
        stream = await self._connect(network, proxy)
        try:
            if proxy.scheme == "https":
                tls = await self.trust.context(http2=False)
                stream = await stream.start_tls(tls, proxy.host)
            await stream.write(await self._connect_request(proxy, authority))
            _check_response(proxy, await _read_response(proxy, stream))
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
            raise httpcore.ProxyError(f"cannot resolve {proxy.origin}: {error}") from None
        problem: Exception | None = None
        for address in addresses:
            try:
                return await network.connect_tcp(str(address), proxy.port)
            except httpcore.ConnectError as error:
                problem = error
        raise httpcore.ProxyError(f"cannot connect to {proxy.origin}: {problem}")

    async def _connect_request(self, proxy: RequestTarget, authority: str) -> bytes:
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if self.auth is not None:
            credential = await self.unlock(self.auth, proxy.origin)
            headers = {name.lower(): value for name, value in credential.headers.items()}
            basic = b64encode(credential.value.encode()).decode()
            value = headers.get("proxy-authorization") or headers.get("authorization") or f"Basic {basic}"
            if not _HEADER.match(value):
                raise httpcore.ProxyError(f"the secret `{self.auth}` is not a valid header value")
            lines.append(f"Proxy-Authorization: {value}")
        return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _read_response(proxy: RequestTarget, stream: httpcore.AsyncNetworkStream) -> bytes:
    response = b""
    while b"\r\n\r\n" not in response:
        piece = await stream.read(_MAX_RESPONSE_BYTES)
        response += piece
        if not piece or len(response) > _MAX_RESPONSE_BYTES:
            raise httpcore.ProxyError(f"invalid response from {proxy.origin}")
    return response


def _check_response(proxy: RequestTarget, response: bytes) -> None:
    status = _STATUS.match(response)
    if status is None:
        raise httpcore.ProxyError(f"invalid response from {proxy.origin}")
    code = int(status[1])
    if code == _CREDENTIAL_REQUIRED:
        raise httpcore.ProxyError(f"{proxy.origin} requires a valid credential; set `proxy_auth`")
    if not 200 <= code < 300:
        raise httpcore.ProxyError(f"{proxy.origin} refused with status {code}")
    if response.partition(b"\r\n\r\n")[2]:
        # The server sends nothing before the request, so this data would be taken for its response.
        raise httpcore.ProxyError(f"unexpected data from {proxy.origin} after its response")
