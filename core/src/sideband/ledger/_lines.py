"""The format of a ledger line: encode, seal and parse.

A line is ``{"hash":"…",`` followed by the rest of its canonical JSON: sorted keys, no white space, ASCII. The hash is
the SHA-256 of the previous line's hash (64 characters) and the canonical JSON of the line without ``hash``. The bytes
on disk are canonical, so they can be verified without encoding them again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from attrs import frozen

from ._bytes import bytes_as_json

VERSION = 1
GENESIS = "0" * 64
_OPENING = b'{"hash":"'
_BODY = len(_OPENING) + 64 + len('",')
_MAX_DEPTH = 100
# Python refuses to convert much longer integers to decimal.
_MAX_NUMBER_BITS = 4096


@frozen
class Head:
    """The end of the ledger.

    Attributes:
        segment: the number of the segment with the last line.
        size: the offset of the end of the last line in bytes.
        seq: the number of the last line.
        hash: the hash of the last line.
    """

    segment: int
    size: int
    seq: int
    hash: str

    def as_dict(self) -> dict[str, Any]:
        """Return the head as JSON data."""
        return {"segment": self.segment, "size": self.size, "seq": self.seq, "hash": self.hash}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Head:
        """Return the head from the data that ``as_dict`` returned."""
        return cls(int(value["segment"]), int(value["size"]), int(value["seq"]), str(value["hash"]))


@frozen
class LedgerLine:
    """A parsed line. ``intact`` is whether its hash matches its content."""

    seq: int
    kind: str
    prev: str
    hash: str
    intact: bool
    fields: Mapping[str, Any]


class LineInvalid(ValueError):
    """These bytes are not an entry."""


def seal(fields: Mapping[str, Any], prev: str) -> tuple[bytes, str]:
    """Return the encoded line for ``fields`` (which include ``prev``) with its newline, and its hash."""
    body = _canonical(fields).encode("ascii")
    digest = sha256(prev.encode("ascii") + body).hexdigest()
    return b"".join((_OPENING, digest.encode("ascii"), b'",', body[1:], b"\n")), digest


def parse(raw: bytes) -> LedgerLine:
    """Parse a line, given without its newline.

    Raises:
        LineInvalid: if the line is not an entry. The message states the reason.
    """
    if not raw.startswith(_OPENING) or raw[_BODY - 2 : _BODY] != b'",':
        raise LineInvalid("the line does not begin with a hash")
    body = b"{" + raw[_BODY:]
    try:
        fields = json.loads(body)
        seq, kind, prev = fields["seq"], fields["kind"], fields["prev"]
    except (ValueError, RecursionError) as error:
        raise LineInvalid("the line is not valid JSON") from error
    except KeyError as error:
        raise LineInvalid(f"`{error.args[0]}` is missing") from error
    if not isinstance(seq, int) or not isinstance(kind, str) or not isinstance(prev, str):
        raise LineInvalid("`seq`, `kind` or `prev` has the wrong type")
    digest = raw[len(_OPENING) : _BODY - 2].decode("latin-1")
    intact = sha256(prev.encode("utf-8", "replace") + body).hexdigest() == digest
    return LedgerLine(seq=seq, kind=kind, prev=prev, hash=digest, intact=intact, fields=fields)


def _make_encode() -> Callable[[Any], str]:
    """Return a JSON encoder. Its C encoder is created once, while ``JSONEncoder`` creates one for each line."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, default=bytes_as_json).encode
    escape = json.encoder.encode_basestring_ascii
    pieces = make(None, bytes_as_json, escape, None, ":", ",", True, False, False)
    return lambda fields: "".join(pieces(fields, 0))


_encode = _make_encode()


def _canonical(fields: Mapping[str, Any]) -> str:
    try:
        return _encode(fields)
    except (TypeError, ValueError, RecursionError):
        # A record must not be lost because JSON cannot represent one of its values.
        return _encode(_plain(fields, 0))


def _plain(value: Any, depth: int) -> Any:
    """Return ``value`` with everything that JSON cannot represent replaced by a string that describes it."""
    if depth > _MAX_DEPTH:
        return "<nested too deeply>"
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner, depth + 1) for inner in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if value is None or isinstance(value, str | bytes | bytearray | memoryview):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else f"<{value}>"
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_NUMBER_BITS else hex(value)
    # Don't use the repr: it could contain secrets that the redactor has not seen.
    return f"<{type(value).__name__}>"
