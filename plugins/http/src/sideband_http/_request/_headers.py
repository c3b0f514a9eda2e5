"""The headers of a request. ``headers_of`` is the only place that adds headers to every request."""

from __future__ import annotations

from collections.abc import Mapping

from sideband.ops import OpContext

from .._addresses._url import RequestTarget
from .._errors import HeaderRefused
from .._response._decoding import ACCEPTED_ENCODINGS
from ._header_rules import check_credential_headers

_KEY_HEADER = "idempotency-key"


def headers_of(user_agent: str, own: Mapping[str, str], credential: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request, except for cookies and framing.

    Args:
        user_agent: the configured user agent.
        own: the headers from the skill, with lower-case names. They replace the defaults.
        credential: the headers of the credential, with lower-case names. They replace both.
    """
    every_request = {"user-agent": user_agent, "accept": "*/*", "accept-encoding": ACCEPTED_ENCODINGS}
    return {**every_request, **own, **credential}


async def credential_headers(handle: str, target: RequestTarget, ctx: OpContext) -> dict[str, str]:
    """Return the headers of a stored credential, resolved for the origin of the request.

    Raises:
        HeaderRefused: if the credential sets a header that is reserved for the client.
    """
    credential = await ctx.credential(handle, target.origin)
    return check_credential_headers(credential.headers or {"Authorization": f"Bearer {credential.value}"})


def with_idempotency_key(headers: Mapping[str, str], key: str | None) -> Mapping[str, str]:
    """Return the headers with ``Idempotency-Key`` added.

    Raises:
        HeaderRefused: if the headers already contain it.
    """
    if key is None:
        return headers
    if any(name.lower() == _KEY_HEADER for name in headers):
        raise HeaderRefused(_KEY_HEADER, "is duplicated", hint="remove either the header or `idempotency_key`")
    return {**headers, _KEY_HEADER: key}
