"""A login: what is needed to use and renew its tokens, except the tokens themselves."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

_SCOPES = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}( [\x21\x23-\x5b\x5d-\x7e]{1,200}){0,99}\Z")

_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}\Z")


class Login(BaseModel):
    """A login to a server.

    Attributes:
        url: the address of the server.
        issuer: the authorization server; empty if it has no metadata.
        token_endpoint: where tokens are renewed.
        revocation_endpoint: where they are revoked, if it has such an address.
        client_id: the client that got them.
        method: how the client authenticates itself.
        resource: the resource that they are for; ``None`` for servers of the oldest protocol.
        scope: the scopes that were granted, separated by spaces.
        renew_at: the time from which the access token is renewed before it is used; ``None`` if it does not say when
            it expires.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    issuer: str
    token_endpoint: str
    revocation_endpoint: str | None
    client_id: str
    method: str | None
    resource: str | None
    scope: str
    renew_at: float | None

    @property
    def token_origin(self) -> str:
        """The origin to which the refresh token and the secret of the client may be sent."""
        return origin_of(self.token_endpoint)


def origin_of(url: str) -> str:
    """Return the origin of an address.

    Example:
        >>> origin_of("https://login.example.org/authorize?state=1")
        'https://login.example.org'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_token(text: str) -> bool:
    """Return whether an access token can be sent in a header.

    Example:
        >>> is_token("eyJhbGciOi"), is_token("a b")
        (True, False)
    """
    return bool(_TOKEN.match(text))


def valid_scopes(text: str | None) -> str:
    """Return the scopes that a server has named, separated by spaces; nothing if they are invalid.

    Example:
        >>> valid_scopes("read comment"), valid_scopes('a "quoted" text')
        ('read comment', '')
    """
    return text if text is not None and _SCOPES.match(text) else ""
