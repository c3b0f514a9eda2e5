"""Conversion of parameters to the query and the body."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from sideband.blobs import BlobMissing, BlobScope
from sideband.ops import OpContext, OpParamsInvalid

from .._addresses._url import RequestTarget
from .._models import BodyParams, Fetch, Scalar, SessionRequestParams
from ._bodies import BlobBody, Body


def target_of(target: RequestTarget, params: Fetch, ctx: OpContext) -> RequestTarget:
    """Return the target with the query parameters added.

    Raises:
        OpParamsInvalid: if a parameter contains an unpaired surrogate.
    """
    return target.with_params(pairs_of(params.params, ctx.op))


def pairs_of(values: Mapping[str, Any], op: str) -> list[tuple[str, str]]:
    """Return names and values as text. A list repeats its name, ``None`` is omitted.

    Raises:
        OpParamsInvalid: if a text contains an unpaired surrogate.
    """
    pairs = list(_pairs(values))
    try:
        for name, value in pairs:
            (name + value).encode()
    except UnicodeEncodeError:
        raise OpParamsInvalid(op, "a name or value contains an unpaired surrogate") from None
    return pairs


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                yield name, _text(one)


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


async def body_of(params: BodyParams | SessionRequestParams, ctx: OpContext) -> tuple[Body | None, str | None]:
    """Return the body and its content type, or ``None`` for both.

    Raises:
        OpParamsInvalid: if the body cannot be encoded.
        OpDenied: if the body is a blob and the grant does not allow reading blobs.
        BlobMissing: if the blob does not exist.
    """
    if params.has_content("json"):
        return _json(params.json_data, ctx.op), "application/json"
    if params.has_content("data"):
        return urlencode(pairs_of(params.data, ctx.op)).encode(), "application/x-www-form-urlencoded"
    if params.body_blob is not None:
        return await _blob(params.body_blob, ctx), "application/octet-stream"
    if isinstance(params.body, bytes):
        return params.body, "application/octet-stream"
    if params.body is None:
        return None, None
    try:
        return params.body.encode(), "text/plain; charset=utf-8"
    except UnicodeEncodeError:
        raise OpParamsInvalid(ctx.op, "body: contains an unpaired surrogate; pass bytes") from None


async def _blob(sha256: str, ctx: OpContext) -> BlobBody:
    ctx.require(BlobScope(mode="read"))
    blob = await ctx.blobs.find(sha256)
    if blob is None:
        raise BlobMissing(sha256)
    return BlobBody(ctx.blobs, blob)


def _json(data: Any, op: str) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise OpParamsInvalid(op, f"json: {error}") from None
