"""The ops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import anyio
from sideband.ops import Level, OpContext, OpSpec, op

from ._answers import response_answer
from ._content import body_of, target_of
from ._downloads import download, fetch_blob
from ._effects import (
    note_change,
    preview_request,
    preview_session_request,
    reconcile_reading,
    reconcile_request,
    undo_reading,
    undo_request,
)
from ._errors import HeaderRefused, HttpError, HttpTimeout, ProtocolFailed
from ._exchange import Plan, exchange, time_limit
from ._headers import check_cookies, check_headers
from ._models import (
    LONGEST_REQUEST,
    BodyParams,
    RequestParams,
    Response,
    SendParams,
    Session,
    SessionClosed,
    SessionCloseParams,
    SessionOpenParams,
    SessionRequestParams,
    UrlParams,
)
from ._retry import Retry
from ._scope import HttpScope, scope_of
from ._sessions import OpenSession
from ._state import HttpState
from ._transport import IDEMPOTENT
from ._url import parse_url

__all__ = ["OPS"]

_KEY_HEADER = "idempotency-key"
_RECORDED = ("url", "auth", "body_blob", "idempotency_key")
# The op ends after its own `timeout`; these only have to be longer.
_REQUEST_LIMIT = LONGEST_REQUEST + 5
_SESSION_LIMIT = 6 * LONGEST_REQUEST


def _verb(method: str, params: type[UrlParams], doc: str, *, level: Level, idempotent: bool) -> OpSpec:
    """The op of one method."""

    async def handler(params: UrlParams, ctx: OpContext) -> Response:
        return await _request(params, method, ctx)

    handler.__annotations__["params"] = params
    handler.__doc__ = doc

    def scope(params: UrlParams) -> HttpScope:
        return scope_of(parse_url(params.url), method)

    async def preview(params: UrlParams, ctx: OpContext) -> str:
        return await preview_request(params, ctx, method=method)

    changes = issubclass(params, BodyParams)

    return op(
        f"http.{method.lower()}",
        requires="http",
        scope=scope,
        level=level,
        idempotent=idempotent,
        timeout=_REQUEST_LIMIT,
        record=[name for name in _RECORDED if name in params.model_fields],
        preview=preview,
        reconcile=reconcile_request if changes else reconcile_reading,
        undo=undo_request if changes else undo_reading,
    )(handler)


def _request_scope(params: RequestParams) -> HttpScope:
    return scope_of(parse_url(params.url), params.method)


@op(
    "http.request",
    requires="http",
    scope=_request_scope,
    level=Level.RESTRICTED,
    timeout=_REQUEST_LIMIT,
    record=["method", *_RECORDED],
    preview=preview_request,
    reconcile=reconcile_request,
    undo=undo_request,
)
async def request(params: RequestParams, ctx: OpContext) -> Response:
    """Send a request with any method, and read the answer. An HTTP error status is an answer, not an error."""
    return await _request(params, params.method, ctx)


async def _request(params: UrlParams, method: str, ctx: OpContext) -> Response:
    content, content_type = await body_of(params, ctx) if isinstance(params, BodyParams) else (None, None)
    state: HttpState = ctx.state
    plan = Plan(
        method=method,
        target=target_of(parse_url(params.url), params, ctx),
        user_agent=state.user_agent,
        headers=_headers(params),
        cookies=params.cookies,
        content=content,
        content_type=content_type,
        auth=params.auth,
        timeout=params.timeout,
        http2=params.http2,
        follow_redirects=params.follow_redirects,
        max_redirects=params.max_redirects,
    )
    await note_change(plan, ctx)
    repeatable = _is_repeatable(method, params)

    async def attempt() -> Response:
        started = perf_counter()
        with _judged(repeatable):
            async with state.share(ctx.domain), exchange(plan, state.connections, ctx) as arrival:
                return await response_answer(arrival, max_bytes=params.max_bytes, started=started)

    retry = Retry(times=params.retry, delay=params.retry_delay)
    with time_limit(plan):
        return await retry.run(attempt, repeatable=repeatable, until=anyio.current_time() + plan.timeout)


def _is_repeatable(method: str, params: UrlParams | SessionRequestParams) -> bool:
    return method in IDEMPOTENT or getattr(params, "idempotency_key", None) is not None


def _headers(params: UrlParams | SessionRequestParams) -> dict[str, str]:
    key: str | None = getattr(params, "idempotency_key", None)
    if key is None:
        return params.headers
    if any(name.lower() == _KEY_HEADER for name in params.headers):
        raise HeaderRefused(_KEY_HEADER, "is given twice", hint="leave out either it or `idempotency_key`")
    return {**params.headers, _KEY_HEADER: key}


@contextmanager
def _judged(repeatable: bool) -> Iterator[None]:
    """Say of errors whether the whole request may be made again: the transport only knows one hop of it."""
    try:
        yield
    except HttpError as error:
        broke_off = isinstance(error, HttpTimeout | ProtocolFailed)
        error.retryable = (error.retryable or broke_off) if repeatable else error.retryable and error.nothing_happened
        raise


@op("http.session_open", requires="http", level=Level.SAFE, record=["base_url", "auth", "retry"])
async def session_open(params: SessionOpenParams, ctx: OpContext) -> Session:
    """Open a session: cookies that stay in the host, defaults, and connections of its own. It ends with its call."""
    state: HttpState = ctx.state
    session = OpenSession(
        domain=ctx.domain,
        connections=state.new_connections(),
        base=None if params.base_url is None else parse_url(params.base_url),
        headers=check_headers(params.headers),
        cookies=check_cookies(params.cookies),
        auth=params.auth,
        timeout=params.timeout,
        http2=params.http2,
        retry=Retry(times=params.retry, delay=params.retry_delay),
    )
    session_id = state.sessions.add(session)

    async def close() -> None:
        await state.sessions.close(session_id)

    ctx.on_call_end(close)
    return Session(session_id=session_id)


@op(
    "http.session_request",
    requires="http",
    level=Level.RESTRICTED,
    timeout=_SESSION_LIMIT,
    record=["method", *_RECORDED],
    preview=preview_session_request,
    reconcile=reconcile_request,
    undo=undo_request,
)
async def session_request(params: SessionRequestParams, ctx: OpContext) -> Response:
    """Send a request with the defaults and cookies of a session, repeated as the session says."""
    state: HttpState = ctx.state
    session = state.sessions.get(params.session_id, ctx.domain)
    content, content_type = await body_of(params, ctx)
    plan = session.complete(
        Plan(
            method=params.method,
            target=target_of(session.locate(params.url), params, ctx),
            user_agent=state.user_agent,
            headers=_headers(params),
            cookies=params.cookies,
            content=content,
            content_type=content_type,
            auth=params.auth,
            timeout=session.timeout if params.timeout is None else params.timeout,
            http2=session.http2,
            follow_redirects=params.follow_redirects,
            max_redirects=params.max_redirects,
        )
    )

    await note_change(plan, ctx)
    repeatable = _is_repeatable(plan.method, params)

    async def attempt() -> Response:
        started = perf_counter()
        with _judged(repeatable), time_limit(plan):
            async with state.share(ctx.domain), exchange(plan, session.connections, ctx, session.jar) as arrival:
                return await response_answer(arrival, max_bytes=params.max_bytes, started=started)

    return await session.retry.run(attempt, repeatable=repeatable, until=ctx.deadline)


@op("http.session_close", requires="http", level=Level.SAFE)
async def session_close(params: SessionCloseParams, ctx: OpContext) -> SessionClosed:
    """Close a session now instead of at the end of its call."""
    state: HttpState = ctx.state
    state.sessions.get(params.session_id, ctx.domain)
    await state.sessions.close(params.session_id)
    return SessionClosed(closed=True)


OPS: tuple[OpSpec, ...] = (
    request,
    _verb("GET", UrlParams, "Fetch a URL.", level=Level.MONITORED, idempotent=True),
    _verb("HEAD", UrlParams, "Fetch the headers of a URL.", level=Level.MONITORED, idempotent=True),
    _verb("OPTIONS", UrlParams, "Ask what a URL allows.", level=Level.MONITORED, idempotent=True),
    _verb("POST", SendParams, "Send to a URL.", level=Level.RESTRICTED, idempotent=False),
    _verb("PATCH", SendParams, "Change what is at a URL.", level=Level.RESTRICTED, idempotent=False),
    _verb("PUT", BodyParams, "Replace what is at a URL.", level=Level.CONTROLLED, idempotent=True),
    _verb("DELETE", BodyParams, "Delete what is at a URL.", level=Level.CONTROLLED, idempotent=True),
    session_open,
    session_request,
    session_close,
    download,
    fetch_blob,
)
