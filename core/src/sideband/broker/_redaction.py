"""Redact secret values, and values under sensitive keys, in everything that is written or returned."""

from __future__ import annotations

import html
import json
import math
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, AnyStr
from urllib.parse import quote, quote_plus

from attrs import frozen
from pydantic_core import to_jsonable_python

from ..errors import SidebandError
from ._placeholder import placeholder

_HIDDEN = placeholder()

MIN_LENGTH = 4
"""The length below which values are not redacted. They occur in ordinary text by chance: masking them would make text
unreadable and reveal more than it hides."""
# The encoded middle of a value is searched for only if it is too long to occur by chance.
_MIN_ENCODED = 6

_SENSITIVE = frozenset(
    [
        "accesskey",
        "accesstoken",
        "apikey",
        "apitoken",
        "authorization",
        "authtoken",
        "bearertoken",
        "clientsecret",
        "cookie",
        "cookies",
        "idtoken",
        "passphrase",
        "passwd",
        "password",
        "privatekey",
        "proxyauthorization",
        "pwd",
        "refreshtoken",
        "secret",
        "secretkey",
        "sessiontoken",
        "setcookie",
        "xapikey",
        "xauthtoken",
        "xcsrftoken",
    ]
)
# Smaller numbers occur by chance. Integers beyond the precision of a float are compared both as int and as float.
_NUMBER = re.compile(r"-?[1-9][0-9]{3,300}(?:\.[0-9]{1,300})?\Z")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")


class Unserializable(TypeError):
    """A value cannot be represented in JSON. The message states its location."""


@lru_cache(maxsize=4096)
def _is_sensitive(key: str) -> bool:
    return _NOT_LETTERS.sub("", key.lower()) in _SENSITIVE


class _NotPlain(Exception):
    """A value is not a ``str``, ``int``, ``float``, ``bool``, ``None``, or a ``dict`` or ``list`` of these."""


@frozen
class FormIndex:
    """The encoded forms of known values, indexed by their first characters.

    Attributes:
        heads: the forms by their first four characters.
        starts: the first one, two and three characters of all forms.
    """

    heads: Mapping[str, tuple[str, ...]]
    starts: frozenset[str]

    @classmethod
    def of(cls, forms: Iterable[str]) -> FormIndex:
        """Return the index of these forms."""
        heads: dict[str, list[str]] = {}
        for form in forms:
            heads.setdefault(form[:MIN_LENGTH], []).append(form)
        starts = frozenset(head[:length] for head in heads for length in range(1, MIN_LENGTH))
        return cls({head: tuple(found) for head, found in heads.items()}, starts)


class Redaction:
    """The known secret values of a host. Replaces them with ``[redacted:NAME]`` in text, bytes and JSON data.

    A value is found in plain, URL-encoded, base64 (at any alignment, both alphabets), hexadecimal and JSON-escaped
    form. Any value under a sensitive key (``password``, ``Authorization``) is replaced too.

    Example:
        >>> redactor = Redaction()
        >>> redactor.protect("s3cr3t-value", "demo")
        >>> redactor.text("token=s3cr3t-value")
        'token=[redacted:demo]'
        >>> redactor.data({"Authorization": "Bearer x", "seen": ["czNjcjN0LXZhbHVl"]})
        {'Authorization': '[redacted]', 'seen': ['[redacted:demo]']}
    """

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._numbers: dict[float, str] = {}
        self._origins: dict[bytes, frozenset[str]] = {}
        self._searched: list[tuple[bytes, bytes]] = []
        self._texts: list[tuple[str, str]] = []
        self._bytes: list[tuple[bytes, bytes]] = []
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        self._byte_patterns: list[tuple[re.Pattern[bytes], bytes]] = []
        self._index: FormIndex | None = None

    @property
    def index(self) -> FormIndex:
        """The index of the known values. It is a new object after each new value."""
        if self._index is None:
            self._index = FormIndex.of(form for form, _ in self._texts)
        return self._index

    def protect(self, value: str | bytes, name: str, *, origins: Iterable[str] = ()) -> None:
        """Add a secret value. Values shorter than 4 bytes are ignored, because they occur by chance.

        Args:
            value: the secret.
            name: the name in the placeholder.
            origins: origins that the value may be sent to, in addition to those given earlier.
        """
        raw = value.encode() if isinstance(value, str) else bytes(value)
        if len(raw) < MIN_LENGTH:
            return
        self._origins[raw] = self._origins.get(raw, frozenset()).union(origins)
        if raw in self._names:
            return
        self._names[raw] = name
        mask = placeholder(name)
        forms = {form for form in _forms(raw) if len(form) >= MIN_LENGTH}
        # Replace the longest forms first, because a form may contain a shorter one.
        self._texts = sorted({*self._texts, *((form, mask) for form in forms)}, key=lambda pair: -len(pair[0]))
        self._index = None
        as_bytes = {*((form.encode(), mask.encode()) for form in forms), (raw, mask.encode())}
        self._bytes = sorted({*self._bytes, *as_bytes}, key=lambda pair: -len(pair[0]))
        self._searched += [(form, raw) for form, _ in as_bytes]
        self._numbers.update((number, name) for number in _numbers(raw))

    def unbound(self, content: str | bytes, audience: str | None) -> str | None:
        """Return the name of a known value in ``content`` that must not be sent to ``audience``, or ``None``.

        Args:
            content: the content to be sent.
            audience: the origin that would receive it, or ``None`` for a destination that must not get any secret.
        """
        found = content.encode("utf-8", "replace") if isinstance(content, str) else content
        for form, raw in self._searched:
            if form in found and audience not in self._origins[raw]:
                return self._names[raw]
        return None

    def cut(self, before: bytes, after: bytes) -> str | None:
        """Return the name of a known value that spans the boundary between ``before`` and ``after``, or ``None``."""
        for form, raw in self._searched:
            reach = len(form) - 1
            if form in before[-reach:] + after[:reach]:
                return self._names[raw]
        return None

    def add_pattern(self, pattern: str, name: str) -> None:
        """Also replace all matches of the regular expression ``pattern``, in text and in bytes."""
        mask = placeholder(name)
        self._patterns.append((re.compile(pattern), mask))
        self._byte_patterns.append((re.compile(pattern.encode()), mask.encode()))

    def text(self, text: str) -> str:
        """Return ``text`` with known values and matches of patterns redacted."""
        return _masked(text, self._texts, self._patterns)

    def values(self, text: str) -> str:
        """Return ``text`` with known values redacted, but not matches of patterns."""
        return _masked(text, self._texts, ())

    def matches(self, text: str) -> str:
        """Return ``text`` with matches of patterns redacted, but not known values."""
        return _masked(text, (), self._patterns)

    def spans(self, text: str) -> Sequence[tuple[int, int]] | None:
        """Return the start and end of each match of a pattern, or ``None`` if there are no patterns."""
        if not self._patterns:
            return None
        return [match.span() for pattern, _ in self._patterns for match in pattern.finditer(text)]

    def error(self, error: SidebandError) -> None:
        """Redact the strings of an error in place."""
        error.clean(self.text)

    def data(self, value: Any, *, sensitive_keys: bool = True) -> Any:
        """Convert ``value`` to plain JSON data (and ``bytes``), with strings, keys and bytes redacted.

        Args:
            value: anything that JSON or pydantic can represent.
            sensitive_keys: whether to redact values under sensitive keys.

        Raises:
            Unserializable: if a part of it cannot be represented in JSON.
        """
        try:
            return self._plain(value, sensitive_keys)
        except _NotPlain:
            return self._walk(value, sensitive_keys, "result")

    def _plain(self, value: Any, sensitive_keys: bool) -> Any:
        """Convert plain data, which is a fast path of ``_walk`` for nearly all values.

        Raises:
            _NotPlain: if a part of it is not plain data.
        """
        kind = type(value)
        if kind is str:
            return self.text(value) if self._texts or self._patterns else value
        if kind is dict:
            return {
                self._key(key): _HIDDEN
                if sensitive_keys and item is not None and _is_sensitive(key)
                else self._plain(item, sensitive_keys)
                for key, item in value.items()
            }
        if kind is list or kind is tuple:
            return [self._plain(item, sensitive_keys) for item in value]
        if value is None or kind is bool:
            return value
        if kind is int or (kind is float and math.isfinite(value)):
            return self._number(value)
        raise _NotPlain

    def _key(self, key: Any) -> str:
        if type(key) is not str:
            raise _NotPlain
        return self.text(key) if self._texts or self._patterns else key

    def _walk(self, value: Any, sensitive_keys: bool, where: str) -> Any:  # noqa: PLR0911  one return per JSON type
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self.text(str(value))
        if isinstance(value, int):
            return self._number(int(value))
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Unserializable(f"{where} is {value}, which JSON cannot represent")
            return self._number(float(value))
        if isinstance(value, Mapping):
            return dict(self._items(value, sensitive_keys, where))
        if isinstance(value, (list, tuple)):
            return [self._walk(item, sensitive_keys, where) for item in value]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _masked(bytes(value), self._bytes, self._byte_patterns)
        try:
            plain = to_jsonable_python(value)
        except ValueError as error:
            raise Unserializable(f"{where} is a {type(value).__name__}, which JSON cannot represent") from error
        return self._walk(plain, sensitive_keys, where)

    def _items(self, value: Mapping[Any, Any], sensitive_keys: bool, where: str) -> Iterator[tuple[str, Any]]:
        for key, item in value.items():
            name = key if isinstance(key, str) else str(self._walk(key, sensitive_keys, f"a key of {where}"))
            if sensitive_keys and item is not None and _is_sensitive(name):
                yield self.text(name), _HIDDEN
            else:
                yield self.text(name), self._walk(item, sensitive_keys, f"{where}.{name[:40]}")

    def _number(self, number: float) -> float | str:
        if self._numbers and (name := self._numbers.get(abs(number))):
            return placeholder(name)
        return number


def _masked(
    text: AnyStr, forms: Iterable[tuple[AnyStr, AnyStr]], patterns: Iterable[tuple[re.Pattern[AnyStr], AnyStr]]
) -> AnyStr:
    for form, mask in forms:
        if form in text:
            text = text.replace(form, mask)
    for pattern, mask in patterns:
        text = pattern.sub(mask, text)
    return text


def _numbers(raw: bytes) -> Iterator[float]:
    """Yield the numbers that a value represents. Databases and JSON may contain it as an integer or a float."""
    text = raw.decode("ascii", "replace")
    if _NUMBER.match(text):
        if math.isfinite(number := abs(float(text))):
            yield number
        if "." not in text:
            yield abs(int(text))


def _forms(raw: bytes) -> Iterator[str]:
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
    yield from _escaped_forms(text)
    yield from _markup_forms(text)


def _escaped_forms(text: str) -> Iterator[str]:
    """Yield a value as escaped in JSON and in Python's ``repr``, once and twice: JSON in JSON, JSON in a message."""
    units = text.encode("utf-16-be").hex()
    everything = "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
    yield from (everything, everything.upper().replace("\\U", "\\u"))
    for once in (repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield from (once, once.replace("/", "\\/"), json.dumps(once)[1:-1])
        twice = once.replace("\\", "\\\\")
        yield from (twice, twice.replace("'", "\\'"))


def _markup_forms(text: str) -> Iterator[str]:
    """Yield a value as escaped in HTML and XML. An error page may repeat parts of a request."""
    plain = html.escape(text, quote=False)
    for double in ('"', "&quot;", "&#34;"):
        for single in ("'", "&#x27;", "&#39;", "&apos;"):
            yield plain.replace('"', double).replace("'", single)


def _percent_forms(raw: bytes) -> Iterator[str]:
    everything = "".join(f"%{byte:02x}" for byte in raw)
    yield from (everything, everything.upper())
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
