"""Requests to the token and revocation endpoints of an authorization server."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
import httpx2
from attrs import field, frozen
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import ValidationError

from .._config import ServerConfig
from .._errors import McpError, McpLoginNeeded, McpUnavailable
from .._transports._failure import ConnectionFailure
from .._transports._guarded import GuardedTransport
from ._login import Login, is_token
from ._logins import Logins

_SECONDS = 20.0
_MAX_BYTES = 1024 * 1024
_ERROR = re.compile(r"[a-z_]{1,60}\Z")
_ENDED = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})


@asynccontextmanager
async def oauth_client(server: str, *, local: bool) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield the client of all requests to authorization servers, which are as limited as those to the server."""
    transport = GuardedTransport(server, ConnectionFailure(), limit=_MAX_BYTES, local=local)
    async with httpx2.AsyncClient(
        transport=transport, timeout=_SECONDS, trust_env=False, follow_redirects=False
    ) as client:
        yield client


@frozen
class TokenClient:
    """Renews and revokes the tokens of a server.

    Args:
        server: the name of the server.
        settings: its table.
        logins: where the tokens are kept.
    """

    server: str
    settings: ServerConfig = field(repr=False)
    logins: Logins = field(repr=False)

    async def renew(self, login: Login) -> OAuthToken:
        """Return new tokens. The old refresh token must not be used again.

        Raises:
            McpLoginNeeded: if the authorization server does not renew them any more.
            McpUnavailable: if it does not answer.
        """
        refresh = await self.logins.token(self.server, "refresh", login.token_origin)
        if refresh is None:
            raise McpLoginNeeded(self.server, "your authorization has expired")
        data = {"grant_type": "refresh_token", "refresh_token": refresh}
        response = await self._post(login, login.token_endpoint, data)
        if response.status_code != 200:
            problem = error_of(response)
            if problem in _ENDED:
                raise McpLoginNeeded(self.server, f"your authorization was not renewed (`{problem}`)")
            raise McpUnavailable(
                self.server, f"its authorization server answered {response.status_code} `{problem}`", hint="retry later"
            )
        with suppress(ValidationError):  # its message may contain a token
            found = OAuthToken.model_validate_json(response.content)
            if is_token(found.access_token):
                return found
        raise McpUnavailable(
            self.server, "its authorization server sent an invalid answer", hint="report this to its operator"
        )

    async def revoke(self, login: Login) -> bool:
        """Revoke the tokens of a login, and return whether the authorization server has confirmed it."""
        token = await self.logins.token(self.server, "refresh", login.token_origin)
        if login.revocation_endpoint is None or token is None:
            return False
        with suppress(McpUnavailable):
            data = {"token": token, "token_type_hint": "refresh_token"}
            return (await self._post(login, login.revocation_endpoint, data)).status_code == 200
        return False

    async def _post(self, login: Login, url: str, data: Mapping[str, str]) -> httpx2.Response:
        secret = await self.logins.token(self.server, "client", login.token_origin)
        form: dict[str, str] = {**data, "client_id": login.client_id}
        if login.resource is not None and "grant_type" in data:
            form["resource"] = login.resource
        form, headers = _authenticated(login, secret, form)
        try:
            with anyio.fail_after(_SECONDS):
                async with oauth_client(self.server, local=self.settings.local) as client:
                    return await client.post(url, data=form, headers=headers)
        except McpError:  # some are errors of the system too
            raise
        except (httpx2.HTTPError, OSError) as error:
            raise McpUnavailable(
                self.server, f"its authorization server did not answer: {type(error).__name__}", hint="retry later"
            ) from error


def error_of(response: httpx2.Response) -> str:
    """Return the error that an authorization server has answered with, which is one word."""
    try:
        found = json.loads(response.content)["error"]
    except (ValueError, KeyError, TypeError):
        return "unknown"
    return found if isinstance(found, str) and _ERROR.match(found) else "unknown"


def _authenticated(login: Login, secret: str | None, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Add the authentication of the client, as the SDK does it."""
    client = OAuthClientInformationFull(
        client_id=login.client_id, client_secret=secret, token_endpoint_auth_method=login.method
    )
    metadata = OAuthClientMetadata(redirect_uris=None)
    context = OAuthContext(login.url, metadata, None, None, None, client_info=client)  # type: ignore[arg-type]
    return context.prepare_token_auth(form, {"Content-Type": "application/x-www-form-urlencoded"})
