"""What requests would do, what became of those that nobody saw end, and what can be taken back of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import anyio
from sideband.ops import OpContext, Reconciled, Recorded, Undo

from ._answers import reading
from ._bodies import BlobBody, Body, size_of
from ._content import body_of, target_of
from ._errors import SessionNotFound
from ._exchange import Plan, exchange, time_limit
from ._models import BodyParams, RequestParams, SessionRequestParams, UrlParams
from ._state import HttpState
from ._url import parse_url

__all__ = [
    "note_change",
    "preview_request",
    "preview_session_request",
    "reconcile_reading",
    "reconcile_request",
    "undo_reading",
    "undo_request",
]

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_NOTED = frozenset({"PUT", "DELETE"})
_GONE = frozenset({404, 410})
_ASKED_SECONDS = 20.0
_LARGEST_COMPARED = 256 * 1024 * 1024
_DIGESTED_AT_ONCE = 1024 * 1024
_KINDS = {
    "application/json": "JSON",
    "application/x-www-form-urlencoded": "a form",
    "text/plain; charset=utf-8": "text",
}


async def preview_request(params: UrlParams, ctx: OpContext, *, method: str | None = None) -> str:
    """What a request would do."""
    if method is None:
        method = params.method if isinstance(params, RequestParams) else "GET"
    url = target_of(parse_url(params.url), params, ctx).url
    return f"{method} {url}{await _with(params, params.auth, ctx)}"


async def preview_session_request(params: SessionRequestParams, ctx: OpContext) -> str:
    """What a request in a session would do."""
    state: HttpState = ctx.state
    try:
        session = state.sessions.get(params.session_id, ctx.domain)
    except SessionNotFound:
        return f"{params.method} {params.url}, in a session that is not open"
    target = target_of(session.locate(params.url), params, ctx)
    plan = session.complete(Plan(params.method, target, state.user_agent, auth=params.auth))
    return f"{params.method} {target.url}{await _with(params, plan.auth, ctx)}, in a session"


async def _with(params: UrlParams | SessionRequestParams, auth: str | None, ctx: OpContext) -> str:
    said = ""
    if isinstance(params, BodyParams | SessionRequestParams):
        body, kind = await body_of(params, ctx)
        if body is not None:
            of = "a blob" if isinstance(body, BlobBody) else _KINDS.get(kind or "", "")
            said = f" with {size_of(body):,} bytes" + (f" of {of}" if of else "")
    return said if auth is None else f"{said}, credential `{auth}`"


async def note_change(plan: Plan, ctx: OpContext) -> None:
    """Note what it takes to ask the server later whether it was done: for methods where asking tells."""
    if plan.method in _NOTED:
        sha256 = None if plan.method == "DELETE" else await _digest(plan.content)
        note = {"method": plan.method, "url": plan.target.url, "auth": plan.auth, "sha256": sha256}
        await ctx.note({**note, "http2": plan.http2})


async def _digest(body: Body | None) -> str:
    if isinstance(body, BlobBody):
        return body.blob.sha256
    content = body or b""
    if len(content) <= _DIGESTED_AT_ONCE:
        return hashlib.sha256(content).hexdigest()
    return await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).hexdigest())


async def reconcile_reading(recorded: Recorded, ctx: OpContext) -> Reconciled | None:  # noqa: ARG001  as it is called
    """Reading may be done again."""
    return Reconciled(happened=False, repeatable=True)


async def reconcile_request(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Ask the server, or count on it to recognise the key; ``None`` if neither tells.

    What was to be deleted and is gone has been deleted. What was to be replaced and reads like what was sent has been
    replaced; if it reads otherwise, it may have been changed since, and nobody knows.
    """
    if recorded.note.get("method") in _NOTED:
        return await _asked(recorded.note, ctx)
    if recorded.params.get("idempotency_key") is not None or recorded.params.get("method") in _READING:
        return Reconciled(happened=False, repeatable=True)
    return None


async def _asked(note: Mapping[str, Any], ctx: OpContext) -> Reconciled | None:
    status, sha256 = await _look(note, ctx)
    if note["method"] == "DELETE":
        if status in _GONE:
            return Reconciled(happened=True)
        return Reconciled(happened=False) if sha256 is not None else None
    if sha256 is not None and sha256 == note["sha256"]:
        return Reconciled(happened=True)
    return Reconciled(happened=False) if status in _GONE else None


async def _look(note: Mapping[str, Any], ctx: OpContext) -> tuple[int, str | None]:
    """The status of what is there now, and its digest if it can be read."""
    state: HttpState = ctx.state
    plan = Plan(
        method="GET",
        target=parse_url(note["url"]),
        user_agent=state.user_agent,
        auth=note["auth"],
        timeout=_ASKED_SECONDS,
        http2=note["http2"],
        follow_redirects=False,
    )
    digest = hashlib.sha256()
    with time_limit(plan):
        async with exchange(plan, state.connections, ctx) as arrival:
            if not arrival.response.is_success:
                return arrival.response.status_code, None
            async with reading(arrival, _LARGEST_COMPARED) as pieces:
                async for piece in pieces:
                    digest.update(piece)
            return arrival.response.status_code, digest.hexdigest()


async def undo_reading(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  as it is called
    """There is nothing to take back."""
    return Undo(remains=("it was only read: there is nothing to take back",))


async def undo_request(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  as it is called
    """Say that nothing can be taken back."""
    if recorded.params.get("method") in _READING:
        return Undo(remains=("it was only read: there is nothing to take back",))
    method = recorded.note.get("method") or recorded.params.get("method") or recorded.op.partition(".")[2].upper()
    url = recorded.note.get("url") or recorded.params.get("url", "the server")
    return Undo(remains=(f"what {method} {url} has changed there is the server's: nothing here can take it back",))
