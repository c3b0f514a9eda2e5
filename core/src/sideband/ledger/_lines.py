"""One line of the ledger: how it is written, sealed into the chain, and read.

A line is ``{"hash":"…",`` followed by the rest of its canonical JSON: keys sorted, no white space, ASCII. Its hash is
SHA-256 over the hash of the line before it (64 characters) and the canonical JSON of the line without ``hash``. Since
the bytes on disk are the canonical ones, whoever checks them needs no second encoder.
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
_DEEPEST = 100
# Python refuses to print much longer ones in decimal.
_LONGEST_NUMBER = 4096  # bits


@frozen
class Head:
    """The last line: which segment it is in, where it ends there (bytes), its number and its hash."""

    segment: int
    size: int
    seq: int
    hash: str

    def as_dict(self) -> dict[str, Any]:
        """The head as it is stored."""
        return {"segment": self.segment, "size": self.size, "seq": self.seq, "hash": self.hash}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Head:
        """The head that ``as_dict`` described."""
        return cls(int(value["segment"]), int(value["size"]), int(value["seq"]), str(value["hash"]))


@frozen
class LedgerLine:
    """A line as read: its fields, and whether its hash fits its content."""

    seq: int
    kind: str
    prev: str
    hash: str
    intact: bool
    fields: Mapping[str, Any]


class LineInvalid(ValueError):
    """These bytes are not an entry."""


def seal(fields: Mapping[str, Any], prev: str) -> tuple[bytes, str]:
    """The line for ``fields`` (which include ``prev``) with its newline, and its hash."""
    body = _canonical(fields).encode("ascii")
    digest = sha256(prev.encode("ascii") + body).hexdigest()
    return b"".join((_OPENING, digest.encode("ascii"), b'",', body[1:], b"\n")), digest


def parse(raw: bytes) -> LedgerLine:
    """Read a line, given without its newline.

    Raises:
        LineInvalid: it is not an entry; the message says why.
    """
    if not raw.startswith(_OPENING) or raw[_BODY - 2 : _BODY] != b'",':
        raise LineInvalid("it does not begin with a hash")
    body = b"{" + raw[_BODY:]
    try:
        fields = json.loads(body)
        seq, kind, prev = fields["seq"], fields["kind"], fields["prev"]
    except (ValueError, RecursionError) as error:
        raise LineInvalid("it is not JSON") from error
    except KeyError as error:
        raise LineInvalid(f"it has no {error.args[0]}") from error
    if not isinstance(seq, int) or not isinstance(kind, str) or not isinstance(prev, str):
        raise LineInvalid("seq, kind or prev is of the wrong type")
    digest = raw[len(_OPENING) : _BODY - 2].decode("latin-1")
    intact = sha256(prev.encode("utf-8", "replace") + body).hexdigest() == digest
    return LedgerLine(seq=seq, kind=kind, prev=prev, hash=digest, intact=intact, fields=fields)


def _make_encode() -> Callable[[Any], str]:
    """The encoder, made once: the one of ``JSONEncoder`` makes its inner parts anew for each line."""
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
        # A record must not be lost because of a value that JSON can't say.
        return _encode(_plain(fields, 0))


def _plain(value: Any, depth: int) -> Any:
    """``value`` with everything that JSON can't say replaced by a text that tells what it was."""
    if depth > _DEEPEST:
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
        return value if value.bit_length() <= _LONGEST_NUMBER else hex(value)
    # Not its repr: that could show what the redactor never saw.
    return f"<{type(value).__name__}>"
