"""From parameters to what is sent: query pairs and the body."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from sideband.ops import OpParamsInvalid

from ._models import BodyParams, Scalar, SessionRequestParams

__all__ = ["body_of", "pairs_of"]


def pairs_of(values: Mapping[str, Any], op: str) -> list[tuple[str, str]]:
    """Names and values as text: a list repeats its name, ``None`` is left out.

    Raises:
        OpParamsInvalid: a text holds half a character.
    """
    pairs = list(_pairs(values))
    try:
        for name, value in pairs:
            (name + value).encode()
    except UnicodeEncodeError:
        raise OpParamsInvalid(op, "a name or value is not Unicode text") from None
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


def body_of(params: BodyParams | SessionRequestParams, op: str) -> tuple[bytes | None, str | None]:
    """The body and its content type, or twice ``None``.

    Raises:
        OpParamsInvalid: it can't be written as what it is meant to be.
    """
    if params.has_content("json"):
        return _json(params.json_data, op), "application/json"
    if params.has_content("data"):
        return urlencode(pairs_of(params.data, op)).encode(), "application/x-www-form-urlencoded"
    if isinstance(params.body, bytes):
        return params.body, "application/octet-stream"
    if params.body is None:
        return None, None
    try:
        return params.body.encode(), "text/plain; charset=utf-8"
    except UnicodeEncodeError:
        raise OpParamsInvalid(op, "body: not Unicode text; pass bytes") from None


def _json(data: Any, op: str) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise OpParamsInvalid(op, f"json: {error}") from None
