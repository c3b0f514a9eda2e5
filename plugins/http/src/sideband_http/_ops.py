"""The ops."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from sideband.ops import Level, OpContext, OpSpec, op

from ._answers import download_answer, reading, response_answer
from ._content import body_of, pairs_of
from ._exchange import Arrival, Plan, exchange, time_limit
from ._files import NewFile, normal_file_path, writing
from ._headers import check_cookies, check_headers
from ._models import (
    LONGEST_DOWNLOAD,
    LONGEST_REQUEST,
    MEBIBYTE,
    BodyParams,
    Download,
    DownloadParams,
    Fetch,
    RequestParams,
    Response,
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
from ._url import Target, parse_url

__all__ = ["OPS"]

_FILES = "files"
# The op ends after its own `timeout`; these only have to be longer.
_REQUEST_LIMIT = LONGEST_REQUEST + 5
_SESSION_LIMIT = 6 * LONGEST_REQUEST
_DOWNLOAD_LIMIT = LONGEST_DOWNLOAD + 5


def _verb(method: str, params: type[UrlParams], doc: str, *, level: Level, idempotent: bool) -> OpSpec:
    """The op of one method."""

    async def handler(params: UrlParams, ctx: OpContext) -> Response:
        return await _request(params, method, ctx)

    handler.__annotations__["params"] = params
    handler.__doc__ = doc

    def scope(params: UrlParams) -> HttpScope:
        return scope_of(parse_url(params.url), method)

    return op(
        f"http.{method.lower()}",
        requires="http",
        scope=scope,
        level=level,
        idempotent=idempotent,
        timeout=_REQUEST_LIMIT,
        record=["url", "auth"],
    )(handler)


def _request_scope(params: RequestParams) -> HttpScope:
    return scope_of(parse_url(params.url), params.method)


@op(
    "http.request",
    requires="http",
    scope=_request_scope,
    level=Level.RESTRICTED,
    timeout=_REQUEST_LIMIT,
    record=["method", "url", "auth"],
)
async def request(params: RequestParams, ctx: OpContext) -> Response:
    """Send a request with any method, and read the answer. An HTTP error status is an answer, not an error."""
    return await _request(params, params.method, ctx)


async def _request(params: UrlParams, method: str, ctx: OpContext) -> Response:
    content, content_type = body_of(params, ctx.op) if isinstance(params, BodyParams) else (None, None)
    state: HttpState = ctx.state
    plan = Plan(
        method=method,
        target=_target(parse_url(params.url), params, ctx),
        user_agent=state.user_agent,
        headers=params.headers,
        cookies=params.cookies,
        content=content,
        content_type=content_type,
        auth=params.auth,
        timeout=params.timeout,
        http2=params.http2,
        follow_redirects=params.follow_redirects,
        max_redirects=params.max_redirects,
    )
    started = perf_counter()
    with time_limit(plan):
        async with state.share(ctx.domain), exchange(plan, state.connections, ctx) as arrival:
            return await response_answer(arrival, max_bytes=params.max_bytes, started=started)


def _target(target: Target, params: Fetch, ctx: OpContext) -> Target:
    return target.with_params(pairs_of(params.params, ctx.op))


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
    record=["method", "url", "auth"],
)
async def session_request(params: SessionRequestParams, ctx: OpContext) -> Response:
    """Send a request with the defaults and cookies of a session, repeated as the session says."""
    state: HttpState = ctx.state
    session = state.sessions.get(params.session_id, ctx.domain)
    content, content_type = body_of(params, ctx.op)
    plan = session.complete(
        Plan(
            method=params.method,
            target=_target(session.locate(params.url), params, ctx),
            user_agent=state.user_agent,
            headers=params.headers,
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

    async def attempt() -> Response:
        started = perf_counter()
        with time_limit(plan):
            async with exchange(plan, session.connections, ctx, session.jar) as arrival:
                return await response_answer(arrival, max_bytes=params.max_bytes, started=started)

    return await session.retry.run(plan.method, attempt)


@op("http.session_close", requires="http", level=Level.SAFE)
async def session_close(params: SessionCloseParams, ctx: OpContext) -> SessionClosed:
    """Close a session now instead of at the end of its call."""
    state: HttpState = ctx.state
    state.sessions.get(params.session_id, ctx.domain)
    await state.sessions.close(params.session_id)
    return SessionClosed(closed=True)


def _download_scope(params: DownloadParams) -> HttpScope:
    return scope_of(parse_url(params.url), "GET", file=normal_file_path(params.path))


@op(
    "http.download",
    requires="http",
    scope=_download_scope,
    level=Level.CONTROLLED,
    timeout=_DOWNLOAD_LIMIT,
    record=["url", "auth", "path", "overwrite"],
)
async def download(params: DownloadParams, ctx: OpContext) -> Download:
    """Stream a body into a file of the host's folder for files. It is there whole or, if anything fails, not at all."""
    path = normal_file_path(params.path)
    state: HttpState = ctx.state
    plan = Plan(
        method="GET",
        target=_target(parse_url(params.url), params, ctx),
        user_agent=state.user_agent,
        headers=params.headers,
        cookies=params.cookies,
        auth=params.auth,
        timeout=params.timeout,
        http2=params.http2,
        follow_redirects=params.follow_redirects,
        max_redirects=params.max_redirects,
        file=path,
    )
    started = perf_counter()
    with time_limit(plan):
        async with (
            writing(Path(ctx.home) / _FILES, path, overwrite=params.overwrite) as file,
            state.share(ctx.domain),
            exchange(plan, state.connections, ctx) as arrival,
        ):
            if not arrival.response.is_success:
                return download_answer(arrival, path=None, size=0, sha256=None, started=started)
            await _save(arrival, file, params.max_bytes, ctx)
            await file.commit(overwrite=params.overwrite)
            return download_answer(arrival, path=path, size=file.size, sha256=file.sha256, started=started)


async def _save(arrival: Arrival, file: NewFile, max_bytes: int, ctx: OpContext) -> None:
    announced = arrival.response.headers.get("content-length", "")
    total = float(announced) if announced.isdecimal() else None
    told = 0
    async with reading(arrival, max_bytes) as pieces:
        async for piece in pieces:
            await file.write(piece)
            if file.size - told >= MEBIBYTE:
                told = file.size
                await ctx.progress(current=float(told), total=total, message=file.path)


OPS: tuple[OpSpec, ...] = (
    request,
    _verb("GET", UrlParams, "Fetch a URL.", level=Level.MONITORED, idempotent=True),
    _verb("HEAD", UrlParams, "Fetch the headers of a URL.", level=Level.MONITORED, idempotent=True),
    _verb("OPTIONS", UrlParams, "Ask what a URL allows.", level=Level.MONITORED, idempotent=True),
    _verb("POST", BodyParams, "Send to a URL.", level=Level.RESTRICTED, idempotent=False),
    _verb("PATCH", BodyParams, "Change what is at a URL.", level=Level.RESTRICTED, idempotent=False),
    _verb("PUT", BodyParams, "Replace what is at a URL.", level=Level.CONTROLLED, idempotent=True),
    _verb("DELETE", BodyParams, "Delete what is at a URL.", level=Level.CONTROLLED, idempotent=True),
    session_open,
    session_request,
    session_close,
    download,
)
