"""Sending a request: the check of the grant, credential, cookies and redirects, until the response begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio
from sideband.ops import OpContext, OpDenied

from .._errors import HttpError, HttpTimeout, ProtocolFailed, RedirectRefused, ResponseTooLarge
from .._models import Redirect
from .._request._building import build_request, first_hop
from .._request._cookies import CookieJar
from .._request._egress import check_body, check_headers_leaving
from .._request._plan import IDEMPOTENT, Hop, RequestPlan
from .._response._arrival import Arrival
from .._response._framing import framing_problem
from .._scope import TraceReceiverScope
from .._transport._connections import HttpConnections
from .._transport._failures import translated
from ._reach import peers_of
from ._redirects import next_hop
from ._sending import send

if TYPE_CHECKING:
    import httpx

_MAX_HEADER_BYTES = 65_536
# The body of a redirect is read up to this size, so that the connection can be reused.
_MAX_DRAINED_BYTES = 16_384


@contextmanager
def time_limit(plan: RequestPlan) -> Iterator[None]:
    """Cancel the block after the timeout of the plan.

    Raises:
        HttpTimeout: if the block was cancelled.
    """
    with anyio.move_on_after(plan.timeout) as scope:
        yield
    if scope.cancelled_caught:
        raise HttpTimeout(plan.method, plan.target.origin, plan.timeout, retryable=plan.method in IDEMPOTENT)


@asynccontextmanager
async def exchange(
    plan: RequestPlan, connections: HttpConnections, ctx: OpContext, jar: CookieJar | None = None
) -> AsyncIterator[Arrival]:
    """Send a request, follow redirects, and yield the response before its body is read.

    Raises:
        OpDenied: if the grant does not allow the request or the target of a redirect; no request was sent there.
        HttpError: if no response arrives.
    """
    jar = CookieJar() if jar is None else jar
    redirects: list[Redirect] = []
    with _errors_after(redirects):
        peers = await peers_of(plan.target, plan.method, ctx, connections, file=plan.file)
        hop = await first_hop(plan, ctx)
    while True:
        with _errors_after(redirects), translated(hop.method, hop.target, plan.timeout):
            request = build_request(hop, plan.user_agent, jar)
            if (trace := await _trace_parent(hop, ctx)) is not None:
                request.headers.setdefault("traceparent", trace)
            check_headers_leaving(request.headers, hop.target, ctx)
            await check_body(hop.content, hop.target, ctx)
            response = await send(request, hop, plan, connections, peers)
        try:
            if (problem := framing_problem(response)) is not None:
                raise ProtocolFailed(hop.method, hop.target.origin, problem, retryable=False)
            jar.learn(response)
            following = _following(plan, hop, response, len(redirects))
            if following is None:
                with translated(hop.method, hop.target, plan.timeout):
                    yield Arrival(response, hop.method, hop.target, tuple(redirects), hop.part)
                return
            redirects.append(Redirect(status=response.status_code, url=hop.target.url))
            with translated(hop.method, hop.target, plan.timeout):
                await _drain(response)
            hop = following
        finally:
            await response.aclose()
        with _errors_after(redirects):
            peers = await peers_of(hop.target, hop.method, ctx, connections, file=plan.file)


async def _trace_parent(hop: Hop, ctx: OpContext) -> str | None:
    """Return the trace context of the effect, if a plugin traces it and the grant allows to pass it on there."""
    target = hop.target
    scope = TraceReceiverScope(target.host, str(target.port), target.scheme)
    return await ctx.trace_parent() if ctx.allows(scope) else None


@contextmanager
def _errors_after(redirects: Sequence[Redirect]) -> Iterator[None]:
    """Set ``nothing_happened`` of errors for the whole chain of redirects.

    An error sets it for its own hop, but after a redirect an earlier hop was answered. A denied hop was never sent.
    """
    try:
        yield
    except (HttpError, OpDenied) as error:
        error.nothing_happened = (isinstance(error, OpDenied) or error.nothing_happened) and not redirects
        raise


def _following(plan: RequestPlan, hop: Hop, response: httpx.Response, followed: int) -> Hop | None:
    if sum(len(name) + len(value) for name, value in response.headers.raw) > _MAX_HEADER_BYTES:
        raise ResponseTooLarge("the response header", _MAX_HEADER_BYTES)
    if not plan.follow_redirects:
        return None
    following = next_hop(hop, response.status_code, response.headers.get("location"))
    if following is not None and followed >= plan.max_redirects:
        raise RedirectRefused.too_many(plan.max_redirects)
    return following


async def _drain(response: httpx.Response) -> None:
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) < _MAX_DRAINED_BYTES:
        async for _ in response.aiter_raw():
            pass
