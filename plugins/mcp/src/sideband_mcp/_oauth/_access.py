"""The access token of a server, renewed when it expires: by one request of one host at a time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from attrs import define, field
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthToken
from sideband.state import FileLock

from .._config import ServerConfig
from .._errors import McpLoginNeeded, McpUnavailable
from .._models import McpLogoutResult
from ._login import Login, origin_of, valid_scopes
from ._logins import Logins
from ._tokens import TokenClient

_RENEW_SECONDS = 60.0
_PART_BEFORE_RENEWAL = 0.9
_LONGEST_SECONDS = 10 * 365 * 86_400
_MISSING = "you have not authorized it"


@define(eq=False)
class Access:
    """The access token of a server.

    Args:
        server: the name of the server.
        settings: its table.
        logins: where tokens are kept.

    Attributes:
        login: the login that it is from.
    """

    server: str
    settings: ServerConfig = field(repr=False)
    logins: Logins = field(repr=False)
    login: Login | None = field(init=False, default=None, repr=False)
    _token: str = field(init=False, default="", repr=False)
    _lock: anyio.Lock = field(init=False, factory=anyio.Lock, repr=False)

    @property
    def origin(self) -> str:
        """The only origin to which the token is sent."""
        return origin_of(self.settings.url or "")

    async def open(self) -> None:
        """Read the token. It may be that of a new login, in another process.

        Raises:
            McpLoginNeeded: if it is missing.
        """
        url = self.settings.url or ""
        self.login = await self.logins.of(self.server, url)
        token = None if self.login is None else await self.logins.token(self.server, "access", self.origin)
        if token is None:
            self._token = ""
            raise McpLoginNeeded(self.server, _MISSING)
        self._token = token

    async def token(self) -> str:
        """Return the token for a request. It is renewed before it expires.

        Raises:
            McpLoginNeeded: if it is missing, or cannot be renewed.
            McpUnavailable: if the authorization server does not answer.
        """
        return await self.after(self._token) if self._is_old or not self._token else self._token

    async def after(self, refused: str) -> str:
        """Return a token that is not this one: that of another request or host if it has renewed it, else a new one.

        Raises:
            McpLoginNeeded: if it is missing, or cannot be renewed.
            McpUnavailable: if the authorization server does not answer.
        """
        async with self._alone():
            await self.open()
            if self._token == refused or self._is_old:
                # An authorization server may take a refresh token that is used twice for stolen.
                # So what has begun is finished, also if the request is cancelled meanwhile.
                with anyio.CancelScope(shield=True):
                    await self._renew()
        return self._token

    async def stored_after(self, refused: str) -> str | None:
        """Return the token of a newer login, if there is one, without renewing it."""
        await self.open()
        return self._token if self._token != refused else None

    async def log_out(self) -> McpLogoutResult:
        """Revoke and delete the tokens."""
        async with self._alone():
            login = await self.logins.of(self.server, self.settings.url or "")
            client = TokenClient(self.server, self.settings, self.logins)
            revoked = login is not None and await client.revoke(login)
            self.login, self._token = None, ""
            return McpLogoutResult(deleted=await self.logins.forget(self.server), revoked=revoked)

    async def want(self, scope: str) -> None:
        """Note scopes that the next login asks for too, beside those that were granted."""
        granted = "" if self.login is None else self.login.scope
        wanted = await self.logins.wanted(self.server)
        await self.logins.want(self.server, union_scopes(union_scopes(granted, wanted), scope) or "")

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Keep other requests and hosts from changing the tokens."""
        folder = Path(self.logins.ctx.home, "mcp")
        await anyio.Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        async with self._lock:  # one request waits for the file, which is polled, and the others for this request
            with FileLock(folder / f"{self.server}.lock") as other_hosts:
                if not await other_hosts.acquire_async(_RENEW_SECONDS):
                    raise McpUnavailable(self.server, "another host renews its authorization", hint="retry later")
                yield

    @property
    def _is_old(self) -> bool:
        renew_at = None if self.login is None else self.login.renew_at
        return renew_at is not None and time.time() >= renew_at

    async def _renew(self) -> None:
        login = self.login
        assert login is not None  # noqa: S101  `open` has read it
        try:
            found = await TokenClient(self.server, self.settings, self.logins).renew(login)
        except McpLoginNeeded:
            await self.logins.forget(self.server)
            raise
        login = login.model_copy(
            update={"scope": valid_scopes(found.scope) or login.scope, "renew_at": renew_at(found)}
        )
        await self.logins.renew(self.server, login, access=found.access_token, refresh=found.refresh_token)
        self.login, self._token = login, found.access_token


def renew_at(token: OAuthToken) -> float | None:
    """Return the time from which a token is renewed before it is used."""
    if token.expires_in is None:
        return None
    return time.time() + _PART_BEFORE_RENEWAL * max(0, min(token.expires_in, _LONGEST_SECONDS))
