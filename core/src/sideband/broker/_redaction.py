"""Keeps secret values and sensitive keys out of everything that is written or returned."""

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

SHORTEST = 4
"""Shorter values occur in ordinary text by chance; masking them would destroy it and tell more than it hides."""
# The encoded middle of a value is only looked for when it is long enough to be no coincidence.
_SHORTEST_ENCODED = 6

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
# Smaller ones occur by chance; what is larger than a float can tell apart is compared as both.
_NUMBER = re.compile(r"-?[1-9][0-9]{3,300}(?:\.[0-9]{1,300})?\Z")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")


class Unserializable(TypeError):
    """A value that JSON can't carry; the message says where it is."""


@lru_cache(maxsize=4096)
def _is_sensitive(key: str) -> bool:
    return _NOT_LETTERS.sub("", key.lower()) in _SENSITIVE


class _NotPlain(Exception):
    """Something else than a text, a number, a truth value, nothing, or a dict or list of these."""


@frozen
class FormIndex:
    """The forms of known values, by their first characters.

    Attributes:
        heads: the forms that begin with these four characters.
        starts: the first one, two and three characters of all forms.
    """

    heads: Mapping[str, tuple[str, ...]]
    starts: frozenset[str]

    @classmethod
    def of(cls, forms: Iterable[str]) -> FormIndex:
        """The index of these forms."""
        heads: dict[str, list[str]] = {}
        for form in forms:
            heads.setdefault(form[:SHORTEST], []).append(form)
        starts = frozenset(head[:length] for head in heads for length in range(1, SHORTEST))
        return cls({head: tuple(found) for head, found in heads.items()}, starts)


class Redaction:
    """Knows the secret values of one host, and replaces them by ``[redacted:NAME]`` in text, bytes and JSON data.

    A value is found in plain, URL-encoded, base64 (at any alignment, both alphabets), hexadecimal and JSON-escaped
    form. Values under a sensitive key (``password``, ``Authorization``) are replaced whatever they are.

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
        """The forms of the known values; another object once there are more."""
        if self._index is None:
            self._index = FormIndex.of(form for form, _ in self._texts)
        return self._index

    def protect(self, value: str | bytes, name: str, *, origins: Iterable[str] = ()) -> None:
        """Make a value known. Values under 4 bytes are not looked for: they occur by chance.

        Args:
            value: the secret.
            name: what is written in its place.
            origins: where it may be sent to, besides those that are known already.
        """
        raw = value.encode() if isinstance(value, str) else bytes(value)
        if len(raw) < SHORTEST:
            return
        self._origins[raw] = self._origins.get(raw, frozenset()).union(origins)
        if raw in self._names:
            return
        self._names[raw] = name
        mask = placeholder(name)
        forms = {form for form in _forms(raw) if len(form) >= SHORTEST}
        # The longest first: a form that contains another one must not be cut up by it.
        self._texts = sorted({*self._texts, *((form, mask) for form in forms)}, key=lambda pair: -len(pair[0]))
        self._index = None
        as_bytes = {*((form.encode(), mask.encode()) for form in forms), (raw, mask.encode())}
        self._bytes = sorted({*self._bytes, *as_bytes}, key=lambda pair: -len(pair[0]))
        self._searched += [(form, raw) for form, _ in as_bytes]
        self._numbers.update((number, name) for number in _numbers(raw))

    def unbound(self, content: str | bytes, audience: str | None) -> str | None:
        """The name of a known value that stands in ``content`` and must not be sent to ``audience``.

        Args:
            content: what is about to be sent.
            audience: the origin that would get it; ``None`` for a place that is for no secret at all.
        """
        found = content.encode("utf-8", "replace") if isinstance(content, str) else content
        for form, raw in self._searched:
            if form in found and audience not in self._origins[raw]:
                return self._names[raw]
        return None

    def cut(self, before: bytes, after: bytes) -> str | None:
        """The name of a known value that begins in ``before`` and ends in ``after``, which follows it."""
        for form, raw in self._searched:
            reach = len(form) - 1
            if form in before[-reach:] + after[:reach]:
                return self._names[raw]
        return None

    def add_pattern(self, pattern: str, name: str) -> None:
        """Replace what the regular expression ``pattern`` matches too, in text and in bytes."""
        mask = placeholder(name)
        self._patterns.append((re.compile(pattern), mask))
        self._byte_patterns.append((re.compile(pattern.encode()), mask.encode()))

    def text(self, text: str) -> str:
        """``text`` without any known value."""
        return _masked(text, self._texts, self._patterns)

    def values(self, text: str) -> str:
        """``text`` without any known value, whatever patterns say."""
        return _masked(text, self._texts, ())

    def matches(self, text: str) -> str:
        """``text`` without what the patterns match."""
        return _masked(text, (), self._patterns)

    def spans(self, text: str) -> Sequence[tuple[int, int]] | None:
        """From where to where the patterns match; ``None`` if there are no patterns."""
        if not self._patterns:
            return None
        return [match.span() for pattern, _ in self._patterns for match in pattern.finditer(text)]

    def error(self, error: SidebandError) -> None:
        """Take known values out of what an error says, in place."""
        error.clean(self.text)

    def data(self, value: Any, *, sensitive_keys: bool = True) -> Any:
        """Plain JSON data (and ``bytes``) made from ``value``, without any known value in strings, keys and bytes.

        Args:
            value: anything that JSON or pydantic can represent.
            sensitive_keys: whether values under sensitive keys are replaced too.

        Raises:
            Unserializable: a part of it can't be carried by JSON.
        """
        try:
            return self._plain(value, sensitive_keys)
        except _NotPlain:
            return self._walk(value, sensitive_keys, "result")

    def _plain(self, value: Any, sensitive_keys: bool) -> Any:
        """``_walk`` for what nearly all values are: plain data, whose types need no second look.

        Raises:
            _NotPlain: a part of it needs one.
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

    def _walk(self, value: Any, sensitive_keys: bool, where: str) -> Any:  # noqa: PLR0911  one return for each JSON type
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self.text(str(value))
        if isinstance(value, int):
            return self._number(int(value))
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Unserializable(f"{where} is {value}, which JSON can't carry")
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
            raise Unserializable(f"{where} is a {type(value).__name__}, which JSON can't carry") from error
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
    """The numbers that tell a value: databases and JSON may have it as a number, with a fraction or without."""
    text = raw.decode("ascii", "replace")
    if _NUMBER.match(text):
        if math.isfinite(number := abs(float(text))):
            yield number
        if "." not in text:
            yield abs(int(text))


def _forms(raw: bytes) -> Iterator[str]:
    """The forms in which a value is looked for in text."""
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
    """As in JSON and in the ``repr`` of Python, and once more escaped: JSON in JSON, JSON in the text of an error."""
    units = text.encode("utf-16-be").hex()
    everything = "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
    yield from (everything, everything.upper().replace("\\U", "\\u"))
    for once in (repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield from (once, once.replace("/", "\\/"), json.dumps(once)[1:-1])
        twice = once.replace("\\", "\\\\")
        yield from (twice, twice.replace("'", "\\'"))


def _markup_forms(text: str) -> Iterator[str]:
    """As in HTML and XML: a page that says what was wrong with a request repeats parts of it."""
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
    """The value's own characters in base64 when it starts at each of the three alignments of a longer text."""
    for encode in (b64encode, urlsafe_b64encode):
        for offset in range(3):
            encoded = encode(b"\0" * offset + raw).decode().rstrip("=")
            first = (0, 2, 3)[offset]
            # A last character that also carries bits of what follows differs from text to text.
            last = len(encoded) if (offset + len(raw)) % 3 == 0 else len(encoded) - 1
            if last - first >= _SHORTEST_ENCODED:
                yield encoded[first:last]
