"""Requests to a server with Vault's API. The token is sent to one address only."""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from attrs import define, field

from ._config import VaultConfig
from ._errors import (
    SecretsError,
    VaultDenied,
    VaultError,
    VaultLimited,
    VaultMalformed,
    VaultMount,
    VaultSealed,
    VaultUnreachable,
    VaultUntrusted,
)

if TYPE_CHECKING:
    from httpx import AsyncClient

_MAX_RESPONSE_BYTES = 1024 * 1024
_NO_ROUTE = "no handler for route"


@define
class VaultClient:
    """The client for one server.

    The token is read when it is first needed, and again when the server rejects it, since another process, such as
    Vault Agent, may have replaced it. It is renewed when it is used after half of its lifetime.

    Args:
        config: the settings of the server.
        address: its origin.
        token: returns the token, already registered with the redactor.
        clock: a monotonic clock, in seconds.
    """

    config: VaultConfig
    address: str
    token: Callable[[], Awaitable[str]] = field(repr=False)
    clock: Callable[[], float] = field(default=anyio.current_time, repr=False)
    _http: AsyncClient | None = field(init=False, default=None, repr=False)
    _known: str | None = field(init=False, default=None, repr=False)
    _renew_at: float | None = field(init=False, default=None, repr=False)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()

    async def get(self, method: str, path: str) -> Mapping[str, Any] | None:
        """Return the data at a path below the mount, or ``None`` if there is no data.

        Raises:
            VaultError: if the request fails.
        """
        token = await self._current_token()
        status, content = await self._send(method, path, token)
        if status == 403:
            self._known = None
            if (fresh := await self._current_token()) != token:
                status, content = await self._send(method, path, fresh)
        return self._parse(status, content, path)

    async def _current_token(self) -> str:
        if self._known is None:
            self._known = await self.token()
            self._renew_at = None
            await self._schedule("GET", "auth/token/lookup-self", self._known)
        elif self._renew_at is not None and self.clock() >= self._renew_at:
            await self._schedule("POST", "auth/token/renew-self", self._known)
        return self._known

    async def _schedule(self, method: str, path: str, token: str) -> None:
        """Look up or renew the token's lifetime, and schedule the next renewal."""
        self._renew_at = None
        try:
            status, content = await self._send(method, path, token)
        except SecretsError:
            return  # the request that needs the token reports the error
        answer = _json(content) if status == 200 else None
        lifetime = answer.get("auth") or answer.get("data") if answer else None
        if isinstance(lifetime, dict) and lifetime.get("renewable") is True:
            seconds = lifetime.get("lease_duration", lifetime.get("ttl"))
            if type(seconds) is int and seconds > 0:
                self._renew_at = self.clock() + seconds / 2

    async def _send(self, method: str, path: str, token: str) -> tuple[int, bytes]:
        import httpx  # noqa: PLC0415  slow to import, and not always needed

        client = self._client()
        # a compressed response could expand to any size
        headers = {"X-Vault-Token": token, "X-Vault-Request": "true", "Accept-Encoding": "identity"}
        if self.config.namespace:
            headers["X-Vault-Namespace"] = self.config.namespace
        try:
            with anyio.fail_after(self.config.timeout):
                async with client.stream(method, f"{self.address}/v1/{path}", headers=headers) as response:
                    return response.status_code, await self._content(response)
        except TimeoutError:
            raise VaultUnreachable(self.address, f"no response within {self.config.timeout:g} seconds") from None
        except httpx.HTTPError as error:
            # the exception's message may contain the token
            raise self._failure(error) from None

    async def _content(self, response: Any) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise VaultMalformed(self.address, "unexpected Content-Encoding")
        content = b""
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > _MAX_RESPONSE_BYTES:
                raise VaultMalformed(self.address, f"response exceeds {_MAX_RESPONSE_BYTES:,} bytes")
        return content

    def _failure(self, error: BaseException) -> VaultError:
        import httpx  # noqa: PLC0415  as above

        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return VaultUntrusted(self.address)
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, httpx.ProtocolError):
            return VaultMalformed(self.address, "invalid HTTP")
        return VaultUnreachable(self.address, type(error).__name__)

    def _client(self) -> AsyncClient:
        import httpx  # noqa: PLC0415  as above

        if self._http is None:
            try:
                trusted = ssl.create_default_context(cafile=self.config.ca_file)
            except OSError as error:
                problem = f"cannot be verified with `{self.config.ca_file}`: {error.strerror or 'no certificates'}"
                raise VaultError(self.address, problem, hint="set `ca_file` to a PEM file of certificates") from None
            # the token must not reach a proxy from the environment, or another server by a redirect
            self._http = httpx.AsyncClient(
                verify=trusted, trust_env=False, follow_redirects=False, timeout=self.config.timeout
            )
        return self._http

    def _parse(self, status: int, content: bytes, path: str) -> Mapping[str, Any] | None:
        answer = _json(content)
        if status == 403:
            raise VaultDenied(self.address, path)
        if status == 429:
            raise VaultLimited(self.address)
        if status == 503:
            raise VaultSealed(self.address)
        if status == 404 and answer is not None:
            if any(_NO_ROUTE in str(one) for one in answer.get("errors") or ()):
                raise VaultMount(self.address, self.config.mount)
            return None
        if status != 200:
            raise VaultError(self.address, f"returned status {status}")
        if answer is None or not isinstance(answer.get("data"), dict):
            raise VaultMalformed(self.address, "unexpected response format")
        data: Mapping[str, Any] = answer["data"]
        return data


def _json(content: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
