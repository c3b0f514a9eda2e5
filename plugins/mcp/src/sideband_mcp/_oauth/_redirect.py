"""The address to which a browser is sent after an authorization, and what it must contain."""

from __future__ import annotations

import secrets
from urllib.parse import parse_qs, urlsplit

from attrs import field, frozen

_MAX_CHARACTERS = 8_192
_MAX_FIELDS = 20


@frozen
class AuthorizationRedirect:
    """What the authorization server answered, by way of the browser.

    Attributes:
        state: the secret of the login that it answers.
        code: the code for the tokens; empty if the person was refused.
        issuer: the authorization server, if it names itself.
        error: the error, if there is one.
    """

    state: str = field(repr=False)
    code: str = field(repr=False)
    issuer: str | None = None
    error: str = ""


def redirect_of(text: str, *, address: str, state: str) -> AuthorizationRedirect:
    """Return what a redirect contains.

    Args:
        text: the address to which the browser was sent.
        address: the address without its query.
        state: the secret of the login.

    Raises:
        ValueError: if it is not an answer to this login. The message can be shown to a person.
    """
    text = text.strip()
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"it has more than {_MAX_CHARACTERS:,} characters")
    found, _, query = text.partition("?")
    if found != address or not query:
        raise ValueError(f"it does not begin with `{address}?`")
    try:
        fields = parse_qs(urlsplit(text).query, strict_parsing=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise ValueError("its query is invalid") from None
    if any(len(values) > 1 for values in fields.values()):
        raise ValueError("a field occurs twice")
    values = {name: value for name, (value,) in fields.items()}
    if not secrets.compare_digest(values.get("state", "").encode(), state.encode()):
        raise ValueError("it does not belong to this login")
    if not values.get("code") and not values.get("error"):
        raise ValueError("it contains no code")
    return AuthorizationRedirect(state, values.get("code", ""), issuer=values.get("iss"), error=values.get("error", ""))
