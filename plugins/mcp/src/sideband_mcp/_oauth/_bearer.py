"""Send the access token with each request to a server, and say what a refusal means."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import httpx2
from attrs import define, field
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

from .._errors import McpError, McpLoginNeeded, McpUnavailable
from .._transports._failure import ConnectionFailure
from ._access import Access
from ._login import origin_of, valid_scopes

_UNAUTHORIZED = 401
_FORBIDDEN = 403
_refusal: ContextVar[ConnectionFailure | None] = ContextVar("refusal", default=None)


@contextmanager
def noting_refusal() -> Iterator[Callable[[], McpError | None]]:
    """Yield a function that returns why the server refused the request of this block, if it did."""
    found = ConnectionFailure()
    token = _refusal.set(found)
    try:
        yield lambda: found.error
    finally:
        _refusal.reset(token)


@define(eq=False)
class BearerAuth(httpx2.Auth):
    """Authorizes the requests of one connection. It never asks a person: that is the work of a login.

    Args:
        access: the token.
        failure: gets the reason if the authorization has ended.
    """

    access: Access
    failure: ConnectionFailure = field(repr=False)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """See ``httpx2.Auth``."""
        if origin_of(str(request.url)) != self.access.origin:
            yield request  # a token is for its server only
            return
        try:
            token = await self.access.token()
            response = yield _with(request, token)
            if response.status_code == _UNAUTHORIZED:
                token = await self.access.after(token)
                response = yield _with(request, token)
            if _needs_scopes(response) and (newer := await self.access.stored_after(token)) is not None:
                response = yield _with(request, newer)
        except McpError as error:  # the server has refused the request, or has not got it
            for noted in (self.failure, _refusal.get()):
                if noted is not None:
                    noted.set(error)
            raise
        if response.status_code == _UNAUTHORIZED:
            self.failure.set(McpLoginNeeded(self.access.server, "it refuses your authorization"))
        elif _needs_scopes(response):
            await self._want(valid_scopes(extract_scope_from_www_auth(response)))

    async def _want(self, scope: str) -> None:
        """Note the scopes that a request needs. Other requests of the connection may not need them."""
        await self.access.want(scope)
        needed = f"it needs the scopes `{scope}`" if scope else "it needs more scopes"
        (_refusal.get() or self.failure).set(McpLoginNeeded(self.access.server, needed))


@define(eq=False)
class OtherAuth(httpx2.Auth):
    """Explains that a server without a login asks for authorization.

    Args:
        server: the name of the server.
        failure: gets the reason.
    """

    server: str
    failure: ConnectionFailure = field(repr=False)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """See ``httpx2.Auth``."""
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            hint = f"set `oauth = true` or the right `auth` in `[plugins.mcp.servers.{self.server}]`"
            self.failure.set(McpUnavailable(self.server, "it asks for authorization", hint=hint))


def _with(request: httpx2.Request, token: str) -> httpx2.Request:
    request.headers["Authorization"] = f"Bearer {token}"
    return request


def _needs_scopes(response: httpx2.Response) -> bool:
    error = extract_field_from_www_auth(response, "error")
    return response.status_code == _FORBIDDEN and error == "insufficient_scope"
