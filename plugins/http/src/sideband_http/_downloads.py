"""Bodies too large for an answer: streamed into a file or a blob, which is there whole or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from sideband.blobs import BlobScope
from sideband.ops import EgressRefused, Level, OpContext, op
from sideband_confined_files import normal_path

from ._answers import blob_answer, download_answer, reading
from ._content import target_of
from ._download_effects import (
    download_folder,
    note_download,
    preview_download,
    preview_fetch_blob,
    reconcile_download,
    undo_download,
    undo_fetch_blob,
)
from ._effects import reconcile_reading
from ._egress import BodySearch
from ._errors import SecretReturned
from ._exchange import Arrival, Plan, exchange, time_limit
from ._models import LONGEST_DOWNLOAD, MEBIBYTE, Download, DownloadParams, FetchBlobParams, FetchedBlob
from ._scope import HttpScope, scope_of
from ._state import HttpState
from ._url import parse_url

__all__ = ["download", "fetch_blob"]

# The ops end after their own `timeout`; this only has to be longer.
_LIMIT = LONGEST_DOWNLOAD + 5


def _download_scope(params: DownloadParams) -> HttpScope:
    return scope_of(parse_url(params.url), "GET", file=normal_path(params.path))


@op(
    "http.download",
    requires="http",
    scope=_download_scope,
    level=Level.CONTROLLED,
    timeout=_LIMIT,
    record=["url", "auth", "path", "overwrite"],
    preview=preview_download,
    reconcile=reconcile_download,
    undo=undo_download,
)
async def download(params: DownloadParams, ctx: OpContext) -> Download:
    """Stream a body into a file of the host's folder for files. It is there whole or, if anything fails, not at all."""
    path = normal_path(params.path)
    folder = download_folder(ctx)
    state: HttpState = ctx.state
    plan = _plan(params, ctx, file=path)
    started = perf_counter()
    with time_limit(plan):
        async with (
            folder.writing(path, overwrite=params.overwrite) as file,
            state.share(ctx.domain),
            exchange(plan, state.connections, ctx) as arrival,
        ):
            if not arrival.response.is_success:
                return download_answer(arrival, path=None, size=0, sha256=None, started=started)
            await _save(arrival, file.write, params.max_bytes, path, ctx)
            sha256 = await file.complete()
            answer = download_answer(arrival, path=path, size=file.size, sha256=sha256, started=started)
            await note_download(folder, path, answer, ctx)
            await file.commit(overwrite=params.overwrite)
            return answer


def _fetch_scope(params: FetchBlobParams) -> HttpScope:
    return scope_of(parse_url(params.url), "GET")


@op(
    "http.fetch_blob",
    requires="http",
    scope=_fetch_scope,
    level=Level.CONTROLLED,
    idempotent=True,
    timeout=_LIMIT,
    record=["url", "auth"],
    preview=preview_fetch_blob,
    reconcile=reconcile_reading,
    undo=undo_fetch_blob,
)
async def fetch_blob(params: FetchBlobParams, ctx: OpContext) -> FetchedBlob:
    """Stream a body into a blob, which other ops take by its digest. Needs `blobs:mode=write` too."""
    ctx.require(BlobScope(mode="write"))
    state: HttpState = ctx.state
    plan = _plan(params, ctx)
    started = perf_counter()
    with time_limit(plan):
        async with (
            ctx.blobs.create(max_bytes=params.max_bytes) as new,
            state.share(ctx.domain),
            exchange(plan, state.connections, ctx) as arrival,
        ):
            if not arrival.response.is_success:
                return blob_answer(arrival, size=0, sha256=None, started=started)
            await _save(arrival, new.write, params.max_bytes, "blob", ctx)
            blob = await new.commit()
            return blob_answer(arrival, size=blob.size, sha256=blob.sha256, started=started)


def _plan(params: DownloadParams | FetchBlobParams, ctx: OpContext, *, file: str | None = None) -> Plan:
    state: HttpState = ctx.state
    return Plan(
        method="GET",
        target=target_of(parse_url(params.url), params, ctx),
        user_agent=state.user_agent,
        headers=params.headers,
        cookies=params.cookies,
        auth=params.auth,
        timeout=params.timeout,
        http2=params.http2,
        follow_redirects=params.follow_redirects,
        max_redirects=params.max_redirects,
        file=file,
    )


async def _save(
    arrival: Arrival, write: Callable[[bytes], Awaitable[None]], max_bytes: int, what: str, ctx: OpContext
) -> None:
    announced = arrival.response.headers.get("content-length", "")
    total = float(announced) if announced.isdecimal() else None
    came = told = 0
    search = BodySearch(ctx, None)
    with _not_kept(arrival):
        async with reading(arrival, max_bytes) as pieces:
            async for piece in pieces:
                await search.feed(piece)
                await write(piece)
                came += len(piece)
                if came - told >= MEBIBYTE:
                    told = came
                    await ctx.progress(current=float(told), total=total, message=what)
            await search.end()


@contextmanager
def _not_kept(arrival: Arrival) -> Iterator[None]:
    """What is kept can be read in parts, and half a secret is not recognised any more."""
    try:
        yield
    except EgressRefused:
        raise SecretReturned(arrival.target.origin) from None
