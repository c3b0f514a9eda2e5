"""Conversion of responses to plain data. Invalid data from a server never raises here."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import TYPE_CHECKING, Any, NoReturn

from anyio import to_thread
from sideband.broker import redact_json_text
from sideband.ops import OpContext

from .._errors import ProtocolFailed, ResponseTooLarge
from .._models import Download, FetchedBlob, Response
from .._request._ranges import MARGIN, RequestedRange
from ._arrival import Arrival, reading

if TYPE_CHECKING:
    import httpx

# JSON is returned both as data and as text, unless it is larger than this.
_MAX_JSON_AND_TEXT = 4 * 1024 * 1024
# Up to this length, redacting JSON text takes less time than other tasks should wait.
_MAX_SCANNED_INLINE = 262_144
# The wire protocol of workers allows 64 levels of nesting, some of which the response itself uses.
_MAX_JSON_DEPTH = 48
# The charsets that a server may use. Python's own codecs are excluded: `punycode` takes quadratic time,
# `unicode_escape` and `utf-7` produce unpaired surrogates, and all three hide text from a search of the bytes.
_CHARSETS = frozenset(
    ["utf-8", "utf-8-sig", "ascii", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "koi8-r"]
    + ["koi8-u", "shift_jis", "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "gb2312", "gbk", "gb18030", "big5"]
    + ["tis-620", "mac-roman", *(f"iso8859-{number}" for number in range(1, 17)), "cp866", "cp874"]
    + [f"cp125{number}" for number in range(9)]
)
# Python caches every codec name permanently, and a server could send a new one each time.
_KNOWN_NAMES = frozenset(
    {normalize_encoding(name).lower() for name in _CHARSETS} | aliases.keys() | set(aliases.values())
)
_PARTIAL, _UNSATISFIABLE = 206, 416
_COOKIES = frozenset({"set-cookie", "set-cookie2"})


async def response_result(arrival: Arrival, ctx: OpContext, *, max_bytes: int) -> Response:
    """Read the body and return the result of a request.

    Raises:
        ResponseTooLarge: if the body exceeds ``max_bytes``.
        ContentInvalid: if the body does not match its ``Content-Encoding``.
        ProtocolFailed: if the server sent another part of the body than requested.
        EgressRefused: if the requested part of the body begins or ends inside a known secret.
    """
    async with reading(arrival, max_bytes if arrival.part is None else max_bytes + 2 * MARGIN) as pieces:
        content = b"".join([piece async for piece in pieces])
    response = arrival.response
    status, headers = response.status_code, _headers(response)
    if arrival.part is not None and (status == _PARTIAL or (status != _UNSATISFIABLE and "content-range" in headers)):
        content, headers["content-range"] = _part(arrival, arrival.part, content, ctx)
        headers["content-length"] = str(len(content))
        status = status if content else _UNSATISFIABLE
    if len(content) > max_bytes:
        raise ResponseTooLarge("the body", max_bytes)
    kind, charset = _content_type(response.headers.get("content-type", ""))
    text = _text(content, charset)
    data = _json(text) if text and _is_json(kind) else None
    if data is not None and text is not None:
        text = await _redacted(text) if len(content) <= _MAX_JSON_AND_TEXT else None
    return Response(
        status=status,
        ok=200 <= status < 300,
        url=arrival.target.url,
        headers=headers,
        body=text,
        bytes=content if text is None and data is None else None,
        json=data,
        body_length=len(content),
        content_encoding=response.headers.get("content-encoding"),
        http_version=response.http_version,
        redirects=list(arrival.redirects),
    )


async def _redacted(text: str) -> str:
    if len(text) <= _MAX_SCANNED_INLINE:
        return redact_json_text(text)
    return await to_thread.run_sync(redact_json_text, text)


def _part(arrival: Arrival, part: RequestedRange, content: bytes, ctx: OpContext) -> tuple[bytes, str]:
    """Return the requested part of a body and its ``Content-Range``."""
    headers = arrival.response.headers
    # A part of a compressed body could not be searched.
    compressed = headers.get("content-encoding", "identity").lower() != "identity"
    try:
        return part.cut_from(content, "" if compressed else headers.get("content-range", ""), ctx)
    except ValueError as error:
        raise ProtocolFailed(arrival.method, arrival.target.origin, str(error), retryable=False) from None


def blob_result(arrival: Arrival, *, size: int, sha256: str | None) -> FetchedBlob:
    """Return the result of fetching a blob."""
    return FetchedBlob(
        status=arrival.response.status_code,
        ok=arrival.response.is_success,
        url=arrival.target.url,
        headers=_headers(arrival.response),
        bytes=size,
        sha256=sha256,
        redirects=list(arrival.redirects),
    )


def download_result(arrival: Arrival, *, path: str | None, size: int, sha256: str | None) -> Download:
    """Return the result of a download."""
    return Download(path=path, **blob_result(arrival, size=size, sha256=sha256))


def _headers(response: httpx.Response) -> dict[str, str]:
    """Return the headers that a skill may see, with lower-case names. Repeated headers are joined with a comma."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers.raw:
        name = raw_name.decode("ascii", "replace").lower()
        if name in _COOKIES:
            continue
        value = raw_value.decode("utf-8", "replace")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _content_type(value: str) -> tuple[str, str]:
    kind, *parameters = (part.strip() for part in value.split(";"))
    named = (part.partition("=") for part in parameters)
    charsets = [content.strip().strip("\"'") for name, _, content in named if name.strip().lower() == "charset"]
    return kind.lower(), charsets[0] if charsets else "utf-8"


def _text(content: bytes, charset: str) -> str | None:
    try:
        name = normalize_encoding(charset).lower()
        if name not in _KNOWN_NAMES or codecs.lookup(name).name not in _CHARSETS:
            return None
        return content.decode(name)
    except (UnicodeError, LookupError, ValueError):
        # Unknown or wrong charset: the result contains the bytes instead.
        return None


def _is_json(kind: str) -> bool:
    return kind in {"application/json", "text/json"} or kind.endswith("+json")


def _json(text: str) -> Any:
    try:
        data = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
        if "\\u" in text:
            # JSON can escape unpaired surrogates, which cannot be encoded.
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return data if _is_shallow(data, text) else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _is_shallow(data: Any, text: str) -> bool:
    if text.count("[") + text.count("{") <= _MAX_JSON_DEPTH:
        return True
    level = [data]
    for _ in range(_MAX_JSON_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return True
    return False


def _children(item: Any) -> list[Any]:
    children = item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ()
    return [child for child in children if isinstance(child, (Mapping, list))]
