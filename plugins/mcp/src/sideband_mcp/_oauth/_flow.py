"""One authorization, with the client of the SDK: discovery, registration, the person, and the tokens."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from attrs import define, field
from mcp.client.auth import (
    AuthorizationCodeResult,
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, ValidationError
from sideband import SidebandError
from sideband.rendering import render

from .._config import ServerConfig
from .._errors import McpLoginFailed
from ._access import renew_at
from ._config import OAuthConfig
from ._listener import RedirectListener
from ._login import Login, is_token, origin_of, valid_scopes
from ._logins import Logins
from ._tokens import error_of, oauth_client

_UNAUTHORIZED = 401
_MAX_PROBLEM = 300
_MAX_REQUESTS = 40
_MAX_ADDRESS = 8_192
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def _hide_tracebacks(record: logging.LogRecord) -> bool:
    """Leave out errors of the SDK, which may contain tokens. They are reported without them."""
    return record.exc_info is None


logging.getLogger("mcp.client.auth.oauth2").addFilter(_hide_tracebacks)


@define(eq=False)
class Authorization:
    """One authorization of a server.

    Args:
        server: the name of the server.
        settings: its table.
        logins: where the tokens are kept.
        listener: waits for the browser.
        show: gets the address for the person.
    """

    server: str
    settings: ServerConfig = field(repr=False)
    logins: Logins = field(repr=False)
    listener: RedirectListener = field(repr=False)
    show: Callable[[str], Awaitable[None]] = field(repr=False)
    login: Login | None = field(init=False, default=None)
    _provider: OAuthClientProvider = field(init=False, repr=False)
    _client: OAuthClientInformationFull | None = field(init=False, default=None, repr=False)

    @property
    def _oauth(self) -> OAuthConfig:
        return self.settings.authorization or OAuthConfig()

    @property
    def _url(self) -> str:
        return self.settings.url or ""

    async def run(self) -> Login:
        """Authorize the server.

        Raises:
            McpLoginFailed: if that is impossible, or the person refuses.
        """
        # A person must not authorize what cannot be kept.
        await self.logins.token(self.server, "access", origin_of(self._url))
        redirects: list[Any] = [AnyUrl(self.listener.address)]
        self._provider = OAuthClientProvider(
            self._url,
            OAuthClientMetadata(client_name="sideband", redirect_uris=redirects),
            self,
            self._ask,
            self._answer,
            client_metadata_url=self._oauth.document,
        )
        try:
            await self._drive()
        except SidebandError:  # some are errors of the system too
            raise
        except (OAuthRegistrationError, OAuthTokenError, ValidationError):  # their messages may contain secrets
            raise self._failed("the authorization server sent an invalid answer") from None
        except OAuthFlowError as error:
            raise self._failed(render(str(error))[:_MAX_PROBLEM]) from None
        except (httpx2.HTTPError, OSError) as error:
            raise self._failed(f"a request failed: {type(error).__name__}") from error
        if self.login is None:
            raise self._failed("the authorization server sent no token")
        return self.login

    async def _drive(self) -> None:
        """Send the requests of the SDK, until there are tokens."""
        request = self._first()
        flow = self._provider.async_auth_flow(request)
        try:
            async with oauth_client(self.server, local=self.settings.local) as client:
                outgoing = await anext(flow)
                for _ in range(_MAX_REQUESTS):
                    if outgoing is request:
                        response = await self._challenge(client, request)
                    else:
                        self._check(str(outgoing.url))
                        response = await client.send(outgoing)
                        if outgoing.method == "POST" and response.status_code >= 300:
                            raise self._refused(response)
                    outgoing = await flow.asend(response)
                    if self.login is not None:
                        return
                raise self._failed("it needs too many requests")
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _first(self) -> httpx2.Request:
        # A ping changes nothing at the server, if it happens to answer it.
        headers = {"MCP-Protocol-Version": LATEST_PROTOCOL_VERSION, "Accept": "application/json, text/event-stream"}
        if self.settings.sse:
            return httpx2.Request("GET", self._url, headers={**headers, **self.settings.headers})
        return httpx2.Request("POST", self._url, json=_PING, headers={**headers, **self.settings.headers})

    async def _challenge(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Ask the server what it needs. A server that accepts this request may refuse others."""
        response = await client.send(request, stream=True)
        await response.aclose()
        given = response.headers.get("WWW-Authenticate", "") if response.status_code == _UNAUTHORIZED else ""
        scopes = " ".join(self._oauth.scopes) or await self.logins.wanted(self.server)
        # The first scope in this header is the one that counts.
        challenge = f'Bearer scope="{scopes}", {given.removeprefix("Bearer ")}' if scopes else given
        headers = {"WWW-Authenticate": challenge} if challenge else {}
        return httpx2.Response(_UNAUTHORIZED, headers=headers, request=request)

    async def _ask(self, url: str) -> None:
        """Check the authorization server, and show the address to the person."""
        found = self._provider.context.oauth_metadata
        if found is not None and "S256" not in (found.code_challenge_methods_supported or []):
            raise self._failed("its authorization server does not support PKCE with S256")
        if len(url) > _MAX_ADDRESS:
            raise self._failed(f"the address for the browser has more than {_MAX_ADDRESS:,} characters")
        self._check(url)
        self._check(self._token_endpoint)
        await self._authenticate_client()
        (self.listener.state,) = parse_qs(urlsplit(url).query)["state"]
        await self.show(url)

    async def _answer(self) -> AuthorizationCodeResult:
        """Wait for the person."""
        found = await self.listener.redirect()
        if found.error:
            raise self._failed(f"the authorization server answered `{render(found.error)[:_MAX_PROBLEM]}`")
        self.logins.ctx.protect(found.code, f"mcp.{self.server}.code")
        return AuthorizationCodeResult(code=found.code, state=found.state, iss=found.issuer)

    @property
    def _token_endpoint(self) -> str:
        found = self._provider.context.oauth_metadata
        return urljoin(self._url, "/token") if found is None else str(found.token_endpoint)

    async def _authenticate_client(self) -> None:
        """Add the secret of the configured client, if the authorization server is one that may get it."""
        handle, client = self._oauth.client_secret, self._provider.context.client_info
        if handle is None or client is None:
            return
        found = self._provider.context.oauth_metadata
        methods = None if found is None else found.token_endpoint_auth_methods_supported
        credential = await self.logins.ctx.credential(handle, origin_of(self._token_endpoint))
        client.client_secret = credential.value
        only_post = methods is not None and "client_secret_basic" not in methods
        client.token_endpoint_auth_method = "client_secret_post" if only_post else "client_secret_basic"

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not self.settings.local:
            raise self._failed(f"`{render(origin_of(url))}` is not https")
        if "@" in parts.netloc:
            raise self._failed("an address of its authorization server contains a user name")

    def _refused(self, response: httpx2.Response) -> McpLoginFailed:
        problem = f"{origin_of(str(response.request.url))} answered {response.status_code} `{error_of(response)}`"
        if self.listener.state:
            return self._failed(problem)
        table = f"`[plugins.mcp.servers.{self.server}.oauth]`"
        hint = f"if it registers no clients by itself, register one there, and write its `client_id` into {table}"
        return McpLoginFailed(self.server, f"no client was registered: {problem}", hint=hint)

    def _failed(self, problem: str) -> McpLoginFailed:
        return McpLoginFailed(self.server, problem)

    async def get_tokens(self) -> OAuthToken | None:
        """See ``TokenStorage``. A login begins without tokens, and leaves those that there are."""
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See ``TokenStorage``."""
        if self._oauth.client_id is None or self._oauth.document is not None:
            return None
        return OAuthClientInformationFull(client_id=self._oauth.client_id)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """See ``TokenStorage``. The client is kept together with the tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """See ``TokenStorage``."""
        context = self._provider.context
        client, found = context.client_info, context.oauth_metadata
        if client is None:
            raise self._failed("it has no client")
        if not is_token(tokens.access_token):
            raise self._failed("the authorization server sent an invalid answer")
        revocation = None if found is None else found.revocation_endpoint
        login = Login(
            url=self._url,
            issuer="" if found is None else str(found.issuer),
            token_endpoint=self._token_endpoint,
            revocation_endpoint=None if revocation is None else str(revocation),
            client_id=client.client_id,
            method=client.token_endpoint_auth_method,
            resource=context.get_resource_url(),
            scope=valid_scopes(tokens.scope or context.client_metadata.scope),
            renew_at=renew_at(tokens),
        )
        await self.logins.begin(
            self.server,
            login,
            access=tokens.access_token,
            refresh=tokens.refresh_token,
            client=client.client_secret,
        )
        await self.logins.want(self.server, "")
        self.login = login
