"""Conversion of a plan to the request for a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband.ops import OpContext

from .._errors import HeaderRefused, UrlInvalid
from ._bodies import size_of
from ._cookies import CookieJar, cookie_header, parse_cookie_header
from ._header_rules import check_cookies, check_headers
from ._headers import credential_headers, headers_of
from ._plan import Hop, RequestPlan
from ._ranges import RequestedRange

if TYPE_CHECKING:
    import httpx


async def first_hop(plan: RequestPlan, ctx: OpContext) -> Hop:
    """Return the first hop, with checked headers and the resolved credential.

    Raises:
        HeaderRefused: if a header or cookie is not allowed, or the credential sets it too.
    """
    target = plan.target
    headers = check_headers(plan.headers)
    cookies = check_cookies(plan.cookies)
    credential = await credential_headers(plan.auth, target, ctx) if plan.auth is not None else {}
    headers = check_headers(headers, attached=credential)
    if cookies and "cookie" in credential:
        raise HeaderRefused("Cookie", "is set by the credential", hint="remove either `cookies` or `auth`")
    if plan.content_type is not None:
        headers.setdefault("content-type", plan.content_type)
    part = None
    if "range" in headers and plan.method != "HEAD":
        part = RequestedRange.parse(headers["range"])
        # A part of a compressed body cannot be decompressed.
        headers |= {"range": part.widened, "accept-encoding": "identity"}
    return Hop(plan.method, target, headers, cookies, credential, plan.content, part)


def build_request(hop: Hop, user_agent: str, jar: CookieJar) -> httpx.Request:
    """Return the request for a transport.

    Raises:
        UrlInvalid: if httpx would send a different URL from the checked one.
    """
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    request = httpx.Request(hop.method, hop.target.url, headers=headers_of(user_agent, hop.headers, hop.credential))
    if hop.content is not None:
        from ._streams import stream_of  # noqa: PLC0415  it imports httpx

        request.stream = stream_of(hop.content)
        request.headers["content-length"] = str(size_of(hop.content))
    if request.url.raw_path != hop.target.request_path.encode() or request.url.raw_host != hop.target.host.encode():
        raise UrlInvalid(hop.target.url, "the client would send a different URL")
    attached = parse_cookie_header(hop.credential.get("cookie", ""))
    cookies = {**hop.cookies, **jar.cookies_for(request), **attached}
    if cookies:
        request.headers["cookie"] = cookie_header(cookies)
    return request
