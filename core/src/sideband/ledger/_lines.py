"""The format of a ledger line: encode, seal and parse.

A line is ``{"hash":"…",`` followed by the rest of its canonical JSON: sorted keys, no white space, ASCII. The hash is
the SHA-256 of the previous line's hash (64 characters) and the canonical JSON of the line without ``hash`` and
``content``. The bytes on disk are canonical, so they can be verified without encoding them again.

What may be erased later is at the end, in ``, "content":{…}``. The hashed part has the SHA-256 of that object, which
includes a random salt: erased content cannot be guessed with its digest. The space before ``"content"`` is the only
white space of a line, so that the member is found without parsing. Lines of format 1 have no such member.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from attrs import frozen

from ._bytes import bytes_as_json

VERSION = 2
READABLE = (1, 2)
GENESIS = "0" * 64
ERASABLE = frozenset({"decisions", "error", "note", "params", "params_digest", "result"})
"""The fields that are written to the content of a line, because they may hold personal data."""
_RESERVED = frozenset({"content", "content_sha256", "hash", "prev", "seq", "time", "v"})
_OPENING = b'{"hash":"'
_BODY = len(_OPENING) + 64 + len('",')
_CONTENT = b', "content":'
_MAX_DEPTH = 100
# Python refuses to convert much longer integers to decimal.
_MAX_NUMBER_BITS = 4096

Content = Literal["none", "present", "erased", "changed"]


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
    """A parsed line.

    Attributes:
        intact: whether the hash matches the hashed part.
        content: ``present``, ``erased``, ``changed`` (it does not match its digest), or ``none`` if it never had any.
        fields: the fields of the hashed part and of the content, if the content is present.
    """

    seq: int
    kind: str
    prev: str
    hash: str
    intact: bool
    content: Content
    fields: Mapping[str, Any]


class LineInvalid(ValueError):
    """These bytes are not an entry."""


class Draft(NamedTuple):
    """A line that only lacks its place in the chain: the parts of its JSON before and after what depends on the place.

    Attributes:
        before: the members before ``prev``, each followed by a comma.
        middle: the members between ``prev`` and ``seq``.
        after: the members between ``seq`` and ``time``.
        end: the members after ``v``, each preceded by a comma.
        content: the member ``content`` with everything before it, or an empty string.
        keyed: for an effect with a key, the effect, the key and the principal; for its outcome, the effect only.
        late: the members between ``time`` and ``v``, each followed by a comma.
    """

    before: str
    middle: str = ""
    after: str = ""
    end: str = ""
    content: str = ""
    keyed: tuple[str, ...] = ()
    late: str = ""


def draft(fields: Mapping[str, Any], *, salt: str | None = None) -> Draft:
    """Return the draft of a line with these fields. ``salt`` is random by default.

    Raises:
        ValueError: if a field has a name that the chain or the format sets.
    """
    if reserved := sorted(_RESERVED & fields.keys()):
        raise ValueError(f"`{reserved[0]}` is set when the line is written")
    content, digest = draft_content({name: value for name, value in fields.items() if name in ERASABLE}, salt=salt)
    hashed = [(name, value) for name, value in fields.items() if name not in ERASABLE]
    if digest:
        hashed.append(("content_sha256", digest))
    members = [(name, f'"{name}":{canonical(value)}') for name, value in sorted(hashed, key=lambda member: member[0])]
    return Draft(
        before="".join(f"{text}," for name, text in members if name < "prev"),
        middle="".join(f"{text}," for name, text in members if "prev" < name < "seq"),
        after="".join(f"{text}," for name, text in members if "seq" < name < "time"),
        late="".join(f"{text}," for name, text in members if "time" < name < "v"),
        end="".join(f",{text}" for name, text in members if name > "v"),
        content=content,
    )


def draft_content(fields: dict[str, Any], *, salt: str | None = None) -> tuple[str, str]:
    """Return the text of the content and its digest, both empty without content. Add the salt to ``fields``."""
    if not fields:
        return "", ""
    fields["salt"] = salt or os.urandom(16).hex()
    text = canonical(fields)
    return f', "content":{text}', sha256(text.encode("ascii")).hexdigest()


def seal(line: Draft, seq: int, time: str, prev: str) -> tuple[bytes, str]:
    """Return the encoded line with its newline, and its hash."""
    before, middle, after, end, content, _, late = line
    hashed = f'{before}"prev":"{prev}",{middle}"seq":{seq},{after}"time":"{time}",{late}"v":{VERSION}{end}'
    digest = sha256(f"{prev}{{{hashed}}}".encode("ascii")).hexdigest()
    return f'{{"hash":"{digest}",{hashed}{content}}}\n'.encode("ascii"), digest


def hashed_part(raw: bytes) -> tuple[bytes, bytes | None]:
    """Return the JSON that the hash of a line covers, and that of its content, or ``None`` without content.

    Raises:
        LineInvalid: if the line does not begin with a hash.
    """
    if not raw.startswith(_OPENING) or raw[_BODY - 2 : _BODY] != b'",':
        raise LineInvalid("the line does not begin with a hash")
    end = raw.find(_CONTENT, _BODY)
    if end < 0:
        return b"{" + raw[_BODY:], None
    return b"{" + raw[_BODY:end] + b"}", raw[end + len(_CONTENT) : -1]


def parse(raw: bytes) -> LedgerLine:
    """Parse a line, given without its newline. Content that does not match its digest is ignored.

    Raises:
        LineInvalid: if the line is not an entry. The message states the reason.
    """
    body, content = hashed_part(raw)
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
    state = _state(content, fields.get("content_sha256"))
    if state == "present" and content is not None:
        fields = {**_erasable(content), **fields}
    return LedgerLine(seq=seq, kind=kind, prev=prev, hash=digest, intact=intact, content=state, fields=fields)


def _state(content: bytes | None, committed: object) -> Content:
    if content is None or content.rstrip() == b"null":
        return "none" if committed is None else "erased"
    return "present" if sha256(content).hexdigest() == committed else "changed"


def _erasable(content: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(content)
        return {name: fields[name] for name in ERASABLE if name in fields}
    except (ValueError, RecursionError, TypeError) as error:
        raise LineInvalid("the content is not valid JSON") from error


def _make_encode() -> Callable[[Any], str]:
    """Return a JSON encoder. Its C encoder is created once, while ``JSONEncoder`` creates one for each line."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, default=bytes_as_json).encode
    escape = json.encoder.encode_basestring_ascii
    pieces = make(None, bytes_as_json, escape, None, ":", ",", True, False, False)
    return lambda fields: "".join(pieces(fields, 0))


_encode = _make_encode()


def canonical(fields: Any) -> str:
    """Return the canonical JSON of a value."""
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
