"""Redact secret values, and values under sensitive keys, in everything that is written or returned."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from attrs import frozen
from pydantic_core import to_jsonable_python

from ..errors import SidebandError
from ._form_search import FormSearch, is_long, unbroken
from ._forms import encoded_forms
from ._placeholder import placeholder
from ._sensitive_keys import is_sensitive

_HIDDEN = placeholder()

MIN_LENGTH = 4
"""The length below which values are not redacted. They occur in ordinary text by chance: masking them would make text
unreadable and reveal more than it hides."""
# Smaller numbers occur by chance. Integers beyond the precision of a float are compared both as int and as float.
_NUMBER = re.compile(r"-?[1-9][0-9]{3,300}(?:\.[0-9]{1,300})?\Z")
_WHITE_SPACE = re.compile(r"[ \t\n\r]+")
# Where two pieces of JSON text meet, there are two of these characters, none of them within a string.
_JSON_BORDER = re.compile(r"[\[\]{},][\[\]{},]")
_GENERATIONS = count(1)


class Unserializable(TypeError):
    """A value cannot be represented in JSON. The message states its location."""


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
    form. If the form has at least 11 bytes, it may be broken into lines. Overlapping values are replaced together. Any
    value under a sensitive key (``password``, ``Authorization``) is replaced too.

    Example:
        >>> redactor = Redaction()
        >>> redactor.protect("s3cr3t-value", "demo")
        >>> redactor.text("token=s3cr3t-value")
        'token=[redacted:demo]'
        >>> redactor.data({"Authorization": "Bearer x", "seen": ["czNjcjN0LXZhbHVl"]})
        {'Authorization': '[redacted]', 'seen': ['[redacted:demo]']}

    Attributes:
        generation: a number that changes with each new value or pattern. No two objects have the same.
        crosses_json: whether a value may occur across the border of two pieces of JSON text, rather than within one.
    """

    def __init__(self) -> None:
        self.generation = next(_GENERATIONS)
        self.crosses_json = False
        self._names: dict[bytes, str] = {}
        self._numbers: dict[float, str] = {}
        self._origins: dict[bytes, frozenset[str]] = {}
        # The values that have a form, the first protected one first.
        self._values: dict[str, tuple[bytes, ...]] = {}
        self._only_in_bytes: set[str] = set()
        self._search = FormSearch()
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        self._byte_patterns: list[tuple[re.Pattern[bytes], bytes]] = []
        self._index: tuple[FormIndex, FormIndex, FormIndex] | None = None

    @property
    def index(self) -> tuple[FormIndex, FormIndex, FormIndex]:
        """The short forms of known values, and twice the long ones without white space. New after each new value."""
        if self._index is None:
            forms = self._values.keys() - self._only_in_bytes
            short = FormIndex.of(_text(form) for form in forms if not is_long(form))
            long = FormIndex.of(_WHITE_SPACE.sub("", _text(form)) for form in forms if is_long(form))
            self._index = (short, long, long)
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
        texts = {unbroken(_searched(form)) for form in encoded_forms(raw) if len(form) >= MIN_LENGTH}
        itself = unbroken(raw.decode("latin-1"))
        for form in {*texts, itself}:
            known = self._values.get(form, ())
            self._values[form] = (*known, raw)
            if form in texts:
                self._only_in_bytes.discard(form)
            elif not known:
                self._only_in_bytes.add(form)
            if not known:
                self._search.add(form)
            self.crosses_json = self.crosses_json or _JSON_BORDER.search(form) is not None
        self._numbers.update((number, name) for number in _numbers(raw))
        self._index = None
        # Last, because another thread may be searching: what it marks as searched now, it has searched for this value.
        self.generation = next(_GENERATIONS)

    def unbound(self, content: str | bytes, audience: str | None) -> str | None:
        """Return the name of a known value in ``content`` that must not be sent to ``audience``, or ``None``.

        Args:
            content: the content to be sent.
            audience: the origin that would receive it, or ``None`` for a destination that must not get any secret.
        """
        data = _searched(content) if isinstance(content, str) else content.decode("latin-1")
        for form in self._search.find(data):
            for raw in self._values[form]:
                if audience not in self._origins[raw]:
                    return self._names[raw]
        return None

    def cut(self, before: bytes, after: bytes) -> str | None:
        """Return the name of a known value that spans the boundary between ``before`` and ``after``, or ``None``."""
        spans = self._spans((before + after).decode("latin-1"))
        return next((name for start, end, name in spans if start < len(before) < end), None)

    def add_pattern(self, pattern: str, name: str) -> None:
        """Also replace all matches of the regular expression ``pattern``, in text and in bytes."""
        mask = placeholder(name)
        self._patterns.append((re.compile(pattern), mask))
        self._byte_patterns.append((re.compile(pattern.encode()), mask.encode()))
        self.generation = next(_GENERATIONS)

    def text(self, text: str) -> str:
        """Return ``text`` with known values and matches of patterns redacted."""
        text = self.values(text)
        return self.matches(text) if self._patterns else text

    def values(self, text: str) -> str:
        """Return ``text`` with known values redacted, but not matches of patterns."""
        if not self._values:
            return text
        data = _searched(text)
        if not self._search.find(data):
            return text
        return _text(_masked(data, self._spans(data, self._only_in_bytes)))

    def matches(self, text: str) -> str:
        """Return ``text`` with matches of patterns redacted, but not known values."""
        for pattern, mask in self._patterns:
            text = pattern.sub(mask, text)
        return text

    def value_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the start and end of each group of overlapping known values."""
        data = _searched(text)
        spans = self._spans(data, self._only_in_bytes)
        if len(data) == len(text):
            return [(start, end) for start, end, _ in spans]
        return [(len(_text(data[:start])), len(_text(data[:end]))) for start, end, _ in spans]

    def match_spans(self, text: str) -> Sequence[tuple[int, int]] | None:
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
            return self.text(value) if self._values or self._patterns else value
        if kind is dict:
            return {
                self._key(key): _HIDDEN
                if sensitive_keys and is_sensitive(key) and _can_be_secret(item)
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
        return self.text(key) if self._values or self._patterns else key

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
            return self._bytes(bytes(value))
        try:
            plain = to_jsonable_python(value)
        except ValueError as error:
            raise Unserializable(f"{where} is a {type(value).__name__}, which JSON cannot represent") from error
        return self._walk(plain, sensitive_keys, where)

    def _items(self, value: Mapping[Any, Any], sensitive_keys: bool, where: str) -> Iterator[tuple[str, Any]]:
        for key, item in value.items():
            name = key if isinstance(key, str) else str(self._walk(key, sensitive_keys, f"a key of {where}"))
            if sensitive_keys and is_sensitive(name) and _can_be_secret(item):
                yield self.text(name), _HIDDEN
            else:
                yield self.text(name), self._walk(item, sensitive_keys, f"{where}.{name[:40]}")

    def _bytes(self, data: bytes) -> bytes:
        text = data.decode("latin-1")
        data = _masked(text, self._spans(text)).encode("latin-1")
        for pattern, mask in self._byte_patterns:
            data = pattern.sub(mask, data)
        return data

    def _spans(self, data: str, ignored: Collection[str] = ()) -> Sequence[tuple[int, int, str]]:
        """Return the start and end of each group of overlapping values, with the name of the longest one."""
        spans: list[tuple[int, int, str]] = []
        for start, end, form in sorted(self._search.spans(data)) if self._values else ():
            if form in ignored:
                continue
            if spans and start < spans[-1][1]:
                first, last, known = spans.pop()
                spans.append((first, max(last, end), max(known, form, key=len)))
            else:
                spans.append((start, end, form))
        return [(start, end, self._names[self._values[form][0]]) for start, end, form in spans]

    def _number(self, number: float) -> float | str:
        if self._numbers and (name := self._numbers.get(abs(number))):
            return placeholder(name)
        return number


def _can_be_secret(value: Any) -> bool:
    return value is not None and not isinstance(value, bool)


def _masked(data: str, spans: Iterable[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, name in spans:
        parts += [data[at:start], _searched(placeholder(name))]
        at = end
    return "".join([*parts, data[at:]])


def _searched(text: str) -> str:
    """Return a text as it is searched: with one character per byte of UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text(data: str) -> str:
    """Return the text for the result of ``_searched``."""
    return data if data.isascii() else data.encode("latin-1").decode("utf-8", "surrogatepass")


def _numbers(raw: bytes) -> Iterator[float]:
    """Yield the numbers that a value represents. Databases and JSON may contain it as an integer or a float."""
    text = raw.decode("ascii", "replace")
    if _NUMBER.match(text):
        if math.isfinite(number := abs(float(text))):
            yield number
        if "." not in text:
            yield abs(int(text))
