"""Previews of ops for users, in one sentence."""

from __future__ import annotations

from sideband.ops import OpContext
from sideband.rendering import quoted
from sideband_confined_files import FileMissing, normal_path

from ._addresses._url import parse_url
from ._errors import HttpSessionNotFound
from ._exchange._downloads import download_folder
from ._models import BodyParams, DownloadParams, FetchBlobParams, RequestParams, SessionRequestParams, UrlParams
from ._request._bodies import BlobBody, size_of
from ._request._content import body_of, target_of
from ._request._plan import RequestPlan
from ._state import HttpState

_KINDS = {
    "application/json": "JSON",
    "application/x-www-form-urlencoded": "a form",
    "text/plain; charset=utf-8": "text",
}


async def preview_request(params: UrlParams, ctx: OpContext, *, method: str | None = None) -> str:
    """Return the preview of a request."""
    if method is None:
        method = params.method if isinstance(params, RequestParams) else "GET"
    url = target_of(parse_url(params.url), params, ctx).url
    return f"{method} {url}{await _with(params, params.auth, ctx)}"


async def preview_session_request(params: SessionRequestParams, ctx: OpContext) -> str:
    """Return the preview of a request in a session."""
    state: HttpState = ctx.state
    try:
        session = state.sessions.get(params.session_id, ctx.domain)
    except HttpSessionNotFound:
        return f"{params.method} {params.url}, in an unknown or closed session"
    target = target_of(session.locate(params.url), params, ctx)
    plan = session.complete(RequestPlan(params.method, target, state.user_agent, auth=params.auth))
    return f"{params.method} {target.url}{await _with(params, plan.auth, ctx)}, in a session"


async def _with(params: UrlParams | SessionRequestParams, auth: str | None, ctx: OpContext) -> str:
    text = ""
    if isinstance(params, BodyParams | SessionRequestParams):
        body, kind = await body_of(params, ctx)
        if body is not None:
            of = "a blob" if isinstance(body, BlobBody) else _KINDS.get(kind or "", "")
            text = f" with {size_of(body):,} bytes" + (f" of {of}" if of else "")
    return text if auth is None else f"{text}, credential {quoted(auth)}"


async def preview_download(params: DownloadParams, ctx: OpContext) -> str:
    """Return the preview of `http.download`."""
    path = normal_path(params.path)
    try:
        size = (await download_folder(ctx).entry(path)).size
    except FileMissing:
        return f"{_fetching(params, ctx)} into the new file {quoted(path)}"
    if params.overwrite:
        return f"{_fetching(params, ctx)}, replacing the file {quoted(path)} ({size:,} bytes)"
    return f"{_fetching(params, ctx)} would fail because the file {quoted(path)} exists ({size:,} bytes)"


async def preview_fetch_blob(params: FetchBlobParams, ctx: OpContext) -> str:
    """Return the preview of `http.fetch_blob`."""
    return f"{_fetching(params, ctx)} into a blob"


def _fetching(params: DownloadParams | FetchBlobParams, ctx: OpContext) -> str:
    auth = "" if params.auth is None else f", credential {quoted(params.auth)},"
    return f"GET {target_of(parse_url(params.url), params, ctx).url}{auth}"
