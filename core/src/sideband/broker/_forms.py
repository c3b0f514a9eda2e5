"""The encoded forms of a value, in which servers and programs repeat it."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

# The encoded middle of a value is searched for only if it is too long to occur by chance.
_MIN_ENCODED = 6
_UNESCAPED = re.compile(rb"[A-Za-z0-9_.~-]*\Z")


def encoded_forms(raw: bytes) -> Iterator[str]:
    """Yield the encoded forms of a value to search for in text."""
    yield from (raw.hex(), raw.hex().upper())
    yield from _base64_forms(raw)
    yield from _percent_forms(raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    yield text
    if text.strip() != text:
        yield text.strip()
    yield from _unicode_forms(text)
    if not _UNESCAPED.match(raw):
        yield from _escaped_forms(text)
        yield from _markup_forms(text)


def _unicode_forms(text: str) -> Iterator[str]:
    units = text.encode("utf-16-be").hex("+", 2)
    yield from ("\\u" + units.replace("+", "\\u"), "\\u" + units.upper().replace("+", "\\u"))


def _escaped_forms(text: str) -> Iterator[str]:
    """Yield a value as escaped in JSON and in Python's ``repr``, once and twice: JSON in JSON, JSON in a message."""
    for once in (repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield from (once, once.replace("/", "\\/"), json.dumps(once)[1:-1])
        twice = once.replace("\\", "\\\\")
        yield from (twice, twice.replace("'", "\\'"))


def _markup_forms(text: str) -> Iterator[str]:
    """Yield a value as escaped in HTML and XML. An error page may repeat parts of a request."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for double in ('"', "&quot;", "&#34;"):
        for single in ("'", "&#x27;", "&#39;", "&apos;"):
            yield plain.replace('"', double).replace("'", single)


def _percent_forms(raw: bytes) -> Iterator[str]:
    everything = "%" + raw.hex("%")
    yield from (everything, everything.upper())
    if _UNESCAPED.match(raw):
        return
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield encoded
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), encoded)


def _base64_forms(raw: bytes) -> Iterator[str]:
    """Yield the base64 characters that depend on the value alone, for each of the three alignments in longer data."""
    for encode in (b64encode, urlsafe_b64encode):
        for offset in range(3):
            encoded = encode(b"\0" * offset + raw).decode().rstrip("=")
            first = (0, 2, 3)[offset]
            # The last character may also encode bits of the following data, so it varies.
            last = len(encoded) if (offset + len(raw)) % 3 == 0 else len(encoded) - 1
            if last - first >= _MIN_ENCODED:
                yield encoded[first:last]
