"""The headers of a request. One that every request carries is added here, in `headers_of`, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

from sideband.ops import OpContext

from .._addresses._url import RequestTarget
from .._errors import HeaderRefused
from .._response._decoding import ACCEPTED_ENCODINGS
from ._header_rules import check_credential_headers

_KEY_HEADER = "idempotency-key"


def headers_of(user_agent: str, own: Mapping[str, str], credential: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request, except for cookies and those that frame the message.

    Args:
        user_agent: as configured.
        own: what the skill set, with lower-case names. These replace what every request carries.
        credential: the headers of the credential, with lower-case names. These replace both.
    """
    every_request = {"user-agent": user_agent, "accept": "*/*", "accept-encoding": ACCEPTED_ENCODINGS}
    return {**every_request, **own, **credential}


async def credential_headers(handle: str, target: RequestTarget, ctx: OpContext) -> dict[str, str]:
    """The headers of a stored credential, resolved for the origin of the request.

    Raises:
        HeaderRefused: it has a header that only the client may set.
    """
    credential = await ctx.credential(handle, target.origin)
    return check_credential_headers(credential.headers or {"Authorization": f"Bearer {credential.value}"})


def with_idempotency_key(headers: Mapping[str, str], key: str | None) -> Mapping[str, str]:
    """The headers of the skill, and the one that its ``idempotency_key`` becomes.

    Raises:
        HeaderRefused: the headers have it already.
    """
    if key is None:
        return headers
    if any(name.lower() == _KEY_HEADER for name in headers):
        raise HeaderRefused(_KEY_HEADER, "is given twice", hint="leave out either it or `idempotency_key`")
    return {**headers, _KEY_HEADER: key}
