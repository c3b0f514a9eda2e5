"""The ops."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
from sideband.blobs import BlobScope
from sideband.ops import LIMITED, Level, Lower, OpContext, OpSpec, Scope, op
from sideband_confined_files import normal_path

from ._addresses._url import parse_url
from ._errors import HeaderRefused
from ._exchange._downloads import download_folder, save_body
from ._exchange._hops import exchange, time_limit
from ._exchange._retry import RequestRetry, is_repeatable
from ._exchange._sessions import OpenSession
from ._models import (
    MAX_DOWNLOAD_SECONDS,
    MAX_REQUEST_SECONDS,
    BodyParams,
    Download,
    DownloadParams,
    FetchBlobParams,
    FetchedBlob,
    HttpSession,
    HttpSessionClosed,
    RequestParams,
    Response,
    SendParams,
    SessionCloseParams,
    SessionOpenParams,
    SessionRequestParams,
    UrlParams,
)
from ._preview import preview_download, preview_fetch_blob, preview_request, preview_session_request
from ._request._cookies import CookieJar
from ._request._header_rules import check_cookies, check_headers
from ._request._plan import RequestPlan, plan_of
from ._response._result_data import blob_result, download_result, response_result
from ._scope import HomeFileScope, HttpScope, scope_of
from ._state import HttpState
from ._transport._connections import HttpConnections
from ._undo import (
    note_change,
    note_download,
    reconcile_download,
    reconcile_reading,
    reconcile_request,
    undo_download,
    undo_fetch_blob,
    undo_reading,
    undo_request,
)

_RECORDED = ("url", "auth", "body_blob", "idempotency_key")
# Each op enforces its own `timeout`; these limits only have to be longer.
_REQUEST_LIMIT = MAX_REQUEST_SECONDS + 5
_SESSION_LIMIT = 6 * MAX_REQUEST_SECONDS
_DOWNLOAD_LIMIT = MAX_DOWNLOAD_SECONDS + 5


# A request that reads can carry data in its URL, so it is harmless only where the grant says to which hosts.
_READING = ("GET", "HEAD", "OPTIONS")
_LIMITED = Lower(Level.MONITORED, host=LIMITED)
# The levels of the ops for single methods, for ops with any method.
_BY_METHOD = (
    Lower(Level.MONITORED, host=LIMITED, method=_READING),
    Lower(Level.CONTROLLED, method=(*_READING, "PUT", "DELETE")),
)


def _verb(method: str, params: type[UrlParams], doc: str, *, level: Level, idempotent: bool) -> OpSpec:
    """Return the op for a method."""

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
        needs={"method": (method,)},
        lower=[_LIMITED] if method in _READING else [],
        idempotent=idempotent,
        timeout=_REQUEST_LIMIT,
        record=[name for name in _RECORDED if name in params.model_fields],
        preview=preview,
        reconcile=reconcile_request if changes else reconcile_reading,
        undo=undo_request if changes else undo_reading,
        egress=True,
    )(handler)


def _request_scope(params: RequestParams) -> HttpScope:
    return scope_of(parse_url(params.url), params.method)


@op(
    "http.request",
    requires="http",
    scope=_request_scope,
    level=Level.RESTRICTED,
    lower=_BY_METHOD,
    timeout=_REQUEST_LIMIT,
    record=["method", *_RECORDED],
    preview=preview_request,
    reconcile=reconcile_request,
    undo=undo_request,
    egress=True,
)
async def request(params: RequestParams, ctx: OpContext) -> Response:
    """Send a request with any method and return the response. An HTTP error status does not raise."""
    return await _request(params, params.method, ctx)


async def _request(params: UrlParams, method: str, ctx: OpContext) -> Response:
    state: HttpState = ctx.state
    plan = await plan_of(
        params,
        ctx,
        method=method,
        user_agent=state.user_agent,
        seconds=params.timeout,
        http2=params.http2,
    )
    await note_change(plan, ctx)

    async def attempt() -> Response:
        return await _fetch(plan, state.connections, ctx, params.max_bytes)

    retry = RequestRetry(times=params.retry, delay=params.retry_delay)
    with time_limit(plan):
        until = anyio.current_time() + plan.timeout
        return await retry.run(attempt, repeatable=is_repeatable(method, params), until=until)


async def _fetch(
    plan: RequestPlan, connections: HttpConnections, ctx: OpContext, max_bytes: int, jar: CookieJar | None = None
) -> Response:
    state: HttpState = ctx.state
    async with state.share(ctx.domain), exchange(plan, connections, ctx, jar) as arrival:
        return await response_result(arrival, ctx, max_bytes=max_bytes)


@op("http.session_open", requires="http", level=Level.SAFE, record=["base_url", "auth", "retry"], egress=False)
async def session_open(params: SessionOpenParams, ctx: OpContext) -> HttpSession:
    """Open a session with its own cookies (which stay in the host), defaults and connections. It ends with its call."""
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
        retry=RequestRetry(times=params.retry, delay=params.retry_delay),
    )
    session_id = state.sessions.add(session)

    async def close() -> None:
        await state.sessions.close(session_id)

    ctx.on_call_end(close)
    return HttpSession(session_id=session_id)


@op(
    "http.session_request",
    requires="http",
    level=Level.RESTRICTED,
    lower=_BY_METHOD,
    timeout=_SESSION_LIMIT,
    record=["method", *_RECORDED],
    preview=preview_session_request,
    reconcile=reconcile_request,
    undo=undo_request,
    egress=True,
)
async def session_request(params: SessionRequestParams, ctx: OpContext) -> Response:
    """Send a request with the defaults, cookies and retry policy of a session."""
    state: HttpState = ctx.state
    session = state.sessions.get(params.session_id, ctx.domain)
    plan = session.complete(
        await plan_of(
            params,
            ctx,
            method=params.method,
            user_agent=state.user_agent,
            seconds=session.timeout if params.timeout is None else params.timeout,
            http2=session.http2,
            locate=session.locate,
        )
    )
    await note_change(plan, ctx)

    async def attempt() -> Response:
        with time_limit(plan):
            return await _fetch(plan, session.connections, ctx, params.max_bytes, session.jar)

    return await session.retry.run(attempt, repeatable=is_repeatable(plan.method, params), until=ctx.deadline)


@op("http.session_close", requires="http", level=Level.SAFE, egress=False)
async def session_close(params: SessionCloseParams, ctx: OpContext) -> HttpSessionClosed:
    """Close a session before the end of its call."""
    state: HttpState = ctx.state
    state.sessions.get(params.session_id, ctx.domain)
    await state.sessions.close(params.session_id)
    return HttpSessionClosed(closed=True)


def _download_scope(params: DownloadParams) -> Iterable[Scope]:
    path = normal_path(params.path)
    return HomeFileScope(path=path), scope_of(parse_url(params.url), "GET", file=path)


# It requires the right to write files, and the right to send the request through its scope: a grant of `http` alone
# changes nothing on this machine.
@op(
    "http.download",
    requires="files",
    scope=_download_scope,
    level=Level.CONTROLLED,
    needs={"mode": ("write",)},
    timeout=_DOWNLOAD_LIMIT,
    record=["url", "auth", "path", "overwrite"],
    preview=preview_download,
    reconcile=reconcile_download,
    undo=undo_download,
    egress=True,
)
async def download(params: DownloadParams, ctx: OpContext) -> Download:
    """Stream a body to a file in the host's folder for files. If anything fails, no file is written.

    Also needs a capability of `http` for the request.
    """
    path = normal_path(params.path)
    state: HttpState = ctx.state
    plan = await _download_plan(params, ctx, file=path)
    with time_limit(plan):
        folders = await download_folder(ctx).folders(path, create=True)
        folder = download_folder(ctx, folders)
        async with (
            folder.writing(path, overwrite=params.overwrite) as file,
            state.share(ctx.domain),
            exchange(plan, state.connections, ctx) as arrival,
        ):
            if not arrival.response.is_success:
                return download_result(arrival, path=None, size=0, sha256=None)
            await save_body(arrival, file.write, params.max_bytes, path, ctx)
            sha256 = await file.complete()
            result = download_result(arrival, path=path, size=file.size, sha256=sha256)
            await note_download(path, folders, result, ctx)
            await file.commit(overwrite=params.overwrite)
            return result


def _fetch_scope(params: FetchBlobParams) -> Iterable[Scope]:
    return BlobScope(mode="write"), scope_of(parse_url(params.url), "GET")


@op(
    "http.fetch_blob",
    requires="blobs",
    scope=_fetch_scope,
    level=Level.CONTROLLED,
    needs={"mode": ("write",)},
    idempotent=True,
    timeout=_DOWNLOAD_LIMIT,
    record=["url", "auth"],
    preview=preview_fetch_blob,
    reconcile=reconcile_reading,
    undo=undo_fetch_blob,
    egress=True,
)
async def fetch_blob(params: FetchBlobParams, ctx: OpContext) -> FetchedBlob:
    """Stream a body to a blob, which other ops accept by its digest. Also needs a capability of `http`."""
    state: HttpState = ctx.state
    plan = await _download_plan(params, ctx)
    with time_limit(plan):
        async with (
            ctx.blobs.create(max_bytes=params.max_bytes) as new,
            state.share(ctx.domain),
            exchange(plan, state.connections, ctx) as arrival,
        ):
            if not arrival.response.is_success:
                return blob_result(arrival, size=0, sha256=None)
            await save_body(arrival, new.write, params.max_bytes, "blob", ctx)
            blob = await new.commit()
            return blob_result(arrival, size=blob.size, sha256=blob.sha256)


async def _download_plan(
    params: DownloadParams | FetchBlobParams, ctx: OpContext, *, file: str | None = None
) -> RequestPlan:
    if any(name.lower() == "range" for name in params.headers):
        raise HeaderRefused("Range", "is not supported for a body that is saved", hint="save the whole body")
    state: HttpState = ctx.state
    return await plan_of(
        params,
        ctx,
        method="GET",
        user_agent=state.user_agent,
        seconds=params.timeout,
        http2=params.http2,
        file=file,
    )


OPS: tuple[OpSpec, ...] = (
    request,
    _verb("GET", UrlParams, "Fetch a URL.", level=Level.CONTROLLED, idempotent=True),
    _verb("HEAD", UrlParams, "Fetch the headers of a URL.", level=Level.CONTROLLED, idempotent=True),
    _verb("OPTIONS", UrlParams, "Request the options of a URL.", level=Level.CONTROLLED, idempotent=True),
    _verb("POST", SendParams, "Post to a URL.", level=Level.RESTRICTED, idempotent=False),
    _verb("PATCH", SendParams, "Modify the resource at a URL.", level=Level.RESTRICTED, idempotent=False),
    _verb("PUT", BodyParams, "Replace the resource at a URL.", level=Level.CONTROLLED, idempotent=True),
    _verb("DELETE", BodyParams, "Delete the resource at a URL.", level=Level.CONTROLLED, idempotent=True),
    session_open,
    session_request,
    session_close,
    download,
    fetch_blob,
)
