"""One request until its answer begins: rights, credential, cookies and redirects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio
from attrs import field, frozen
from sideband.ops import OpContext, OpDenied

from ._bodies import Body, size_of
from ._cookies import CookieJar
from ._decoding import ACCEPTED_ENCODINGS
from ._egress import check_body, check_headers_leaving
from ._errors import (
    HeaderRefused,
    HttpError,
    HttpTimeout,
    ProtocolFailed,
    RedirectRefused,
    ResponseTooLarge,
    UrlInvalid,
)
from ._framing import framing_problem
from ._headers import check_cookies, check_credential_headers, check_headers, cookie_header, parse_cookie_header
from ._models import Redirect
from ._reach import peers_of
from ._redirects import Hop, next_hop
from ._transport import IDEMPOTENT, Connections, Peer, is_about_tls, translated
from ._url import Target

if TYPE_CHECKING:
    import httpx

__all__ = ["Arrival", "Plan", "exchange", "time_limit"]

_LARGEST_HEADERS = 65_536
# What is left of a redirect's body is read up to here, so that its connection can be used again.
_DRAINED = 16_384
# Seconds until the next address of a name is tried, where there is one.
_NEXT_PEER = 3.0


@frozen
class Plan:
    """A request as asked for. The arguments are those of the ops, in the form that is sent.

    Args:
        content_type: of the body, unless the skill's headers name one.
        file: where a download is written, for the grant.
    """

    method: str
    target: Target
    user_agent: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    cookies: Mapping[str, str] = field(factory=dict, repr=False)
    content: Body | None = field(default=None, repr=False)
    content_type: str | None = None
    auth: str | None = None
    timeout: float = 30.0
    http2: bool = True
    follow_redirects: bool = True
    max_redirects: int = 10
    file: str | None = None


@frozen
class Arrival:
    """A response whose body has not been read."""

    response: httpx.Response
    method: str
    target: Target
    redirects: tuple[Redirect, ...]


@contextmanager
def time_limit(plan: Plan) -> Iterator[None]:
    """Cancel what is inside after the plan's timeout.

    Raises:
        HttpTimeout: it was cancelled.
    """
    with anyio.move_on_after(plan.timeout) as scope:
        yield
    if scope.cancelled_caught:
        raise HttpTimeout(plan.method, plan.target.origin, plan.timeout, retryable=plan.method in IDEMPOTENT)


@asynccontextmanager
async def exchange(
    plan: Plan, connections: Connections, ctx: OpContext, jar: CookieJar | None = None
) -> AsyncIterator[Arrival]:
    """Send a request, follow its redirects, and hand out the answer with its body still to come.

    Raises:
        OpDenied: the grant does not allow it, or where a redirect leads; nothing was sent there.
        HttpError: there is no answer.
    """
    jar = CookieJar() if jar is None else jar
    redirects: list[Redirect] = []
    with _after(redirects):
        peers = await peers_of(plan.target, plan.method, ctx, connections, file=plan.file)
        hop = await _first_hop(plan, ctx)
    while True:
        with _after(redirects), translated(hop.method, hop.target, plan.timeout):
            request = _request(hop, plan, jar)
            check_headers_leaving(request.headers, hop.target, ctx)
            await check_body(hop.content, hop.target, ctx)
            response = await _send(request, hop, plan, connections, peers)
        try:
            if (problem := framing_problem(response)) is not None:
                raise ProtocolFailed(hop.method, hop.target.origin, problem, retryable=False)
            jar.learn(response)
            following = _following(plan, hop, response, len(redirects))
            if following is None:
                with translated(hop.method, hop.target, plan.timeout):
                    yield Arrival(response, hop.method, hop.target, tuple(redirects))
                return
            redirects.append(Redirect(status=response.status_code, url=hop.target.url))
            with translated(hop.method, hop.target, plan.timeout):
                await _drain(response)
            hop = following
        finally:
            await response.aclose()
        with _after(redirects):
            peers = await peers_of(hop.target, hop.method, ctx, connections, file=plan.file)


@contextmanager
def _after(redirects: Sequence[Redirect]) -> Iterator[None]:
    """What fails here and says that nothing happened means its own hop: an earlier one was answered.

    What is refused is refused before anything is sent.
    """
    try:
        yield
    except (HttpError, OpDenied) as error:
        error.nothing_happened = (isinstance(error, OpDenied) or error.nothing_happened) and not redirects
        raise


async def _first_hop(plan: Plan, ctx: OpContext) -> Hop:
    target = plan.target
    headers = check_headers(plan.headers)
    cookies = check_cookies(plan.cookies)
    credential = await _credential_headers(plan.auth, target, ctx) if plan.auth is not None else {}
    headers = check_headers(headers, attached=credential)
    if cookies and "cookie" in credential:
        raise HeaderRefused("Cookie", "is set by the credential", hint="leave out either `cookies` or `auth`")
    if plan.content_type is not None:
        headers.setdefault("content-type", plan.content_type)
    return Hop(plan.method, target, headers, cookies, credential, plan.content)


async def _credential_headers(handle: str, target: Target, ctx: OpContext) -> dict[str, str]:
    credential = await ctx.credential(handle, target.origin)
    return check_credential_headers(credential.headers or {"Authorization": f"Bearer {credential.value}"})


async def _send(
    request: httpx.Request, hop: Hop, plan: Plan, connections: Connections, peers: Sequence[Peer]
) -> httpx.Response:
    """Send to the first peer that can be connected to. Nothing has been sent to those before it."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    *others, last = connections.in_order(peers)
    for peer in others:
        request.extensions["timeout"] = httpx.Timeout(plan.timeout, connect=min(_NEXT_PEER, plan.timeout)).as_dict()
        try:
            return await _send_to(peer, request, hop, plan, connections)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            if is_about_tls(error):
                raise
    request.extensions["timeout"] = httpx.Timeout(plan.timeout).as_dict()
    return await _send_to(last, request, hop, plan, connections)


async def _send_to(
    peer: Peer, request: httpx.Request, hop: Hop, plan: Plan, connections: Connections
) -> httpx.Response:
    peer.attach(request)
    transport = await connections.transport(
        hop.target.scheme, http2=plan.http2, origin=hop.target.origin, proxied=peer.proxy is not None
    )
    response = await transport.handle_async_request(request)
    connections.reached(peer)
    response.request = request
    return response


def _request(hop: Hop, plan: Plan, jar: CookieJar) -> httpx.Request:
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    headers = {"user-agent": plan.user_agent, "accept": "*/*", "accept-encoding": ACCEPTED_ENCODINGS}
    request = httpx.Request(
        hop.method,
        hop.target.url,
        headers={**headers, **hop.headers, **hop.credential},
    )
    if hop.content is not None:
        from ._streams import stream_of  # noqa: PLC0415  it imports httpx

        request.stream = stream_of(hop.content)
        request.headers["content-length"] = str(size_of(hop.content))
    if request.url.raw_path != hop.target.request_path.encode() or request.url.raw_host != hop.target.host.encode():
        raise UrlInvalid(hop.target.url, "the client would send another one than was checked")
    attached = parse_cookie_header(hop.credential.get("cookie", ""))
    cookies = {**hop.cookies, **jar.cookies_for(request), **attached}
    if cookies:
        request.headers["cookie"] = cookie_header(cookies)
    return request


def _following(plan: Plan, hop: Hop, response: httpx.Response, followed: int) -> Hop | None:
    if sum(len(name) + len(value) for name, value in response.headers.raw) > _LARGEST_HEADERS:
        raise ResponseTooLarge("the header of the response", _LARGEST_HEADERS)
    if not plan.follow_redirects:
        return None
    following = next_hop(hop, response.status_code, response.headers.get("location"))
    if following is not None and followed >= plan.max_redirects:
        raise RedirectRefused.too_many(plan.max_redirects)
    return following


async def _drain(response: httpx.Response) -> None:
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) < _DRAINED:
        async for _ in response.aiter_raw():
            pass
