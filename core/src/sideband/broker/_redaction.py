"""Redact secret values, and values under sensitive keys, in everything that is written or returned."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import Any

from pydantic_core import to_jsonable_python

from ..errors import SidebandError
from ..ops import OpError
from ._form_beginnings import FormBeginnings
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
_STR = frozenset({str})
_CONSTANTS = frozenset({bool, type(None)})
_CONSTANTS_AND_INTEGERS = _CONSTANTS | {int}
_WHITE_SPACE = re.compile(r"[ \t\n\r]+")
# Where two pieces of JSON text meet, there are two of these characters, none of them within a string.
_JSON_BORDER = re.compile(r"[\[\]{},][\[\]{},]")
_GENERATIONS = count(1)


class Unserializable(TypeError):
    """A value cannot be represented in JSON. The message states its location."""


class _NotPlain(Exception):
    """A value is not a ``str``, ``int``, ``float``, ``bool``, ``None``, or a ``dict`` or ``list`` of these."""


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
    """

    def __init__(self) -> None:
        self.generation = next(_GENERATIONS)
        self._names: dict[bytes, str] = {}
        self._numbers: dict[float, str] = {}
        self._origins: dict[bytes, frozenset[str]] = {}
        # The values whose forms are not known yet. They are needed only when something is searched.
        self._waiting: list[bytes] = []
        self._preparing = Lock()
        # The values that have a form, the first protected one first.
        self._values: dict[str, tuple[bytes, ...]] = {}
        self._only_in_bytes: set[str] = set()
        self._crosses_json = False
        self._search = FormSearch()
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        self._byte_patterns: list[tuple[re.Pattern[bytes], bytes]] = []
        self._beginnings = (FormBeginnings(), FormBeginnings())
        self._streamed: list[str] = []  # the forms that texts may have and that are not in `_beginnings` yet

    @property
    def crosses_json(self) -> bool:
        """Whether a value may occur across the border of two pieces of JSON text, rather than within one."""
        self._prepare()
        return self._crosses_json

    @property
    def beginnings(self) -> tuple[FormBeginnings, FormBeginnings]:
        """The beginnings of short forms, and of long ones without white space, as text has them."""
        self._prepare()
        if self._streamed:
            with self._preparing:
                for form in self._streamed:
                    long = is_long(form)
                    self._beginnings[long].add(_WHITE_SPACE.sub("", _text(form)) if long else _text(form))
                # Only now, since other threads that see no waiting forms use the beginnings at once.
                self._streamed.clear()
        return self._beginnings

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
        self._waiting.append(raw)
        # Last, because another thread may be searching: what it marks as searched now, it has searched for this value.
        self.generation = next(_GENERATIONS)

    def _prepare(self) -> None:
        """Make the waiting values known to the search."""
        if not self._waiting:
            return
        with self._preparing:
            waiting = self._waiting[:]  # other threads may add more
            added: list[str] = []
            for raw in waiting:
                added += self._new_forms(raw)
                self._numbers.update((number, self._names[raw]) for number in _numbers(raw))
            self._crosses_json = self._crosses_json or any(map(_JSON_BORDER.search, added))
            self._search.add(added)
            # Only now, since other threads that see no waiting values search at once.
            del self._waiting[: len(waiting)]

    def _new_forms(self, raw: bytes) -> list[str]:
        """Note which forms a value has, and return those that no other value has."""
        texts = {unbroken(_searched(form)) for form in set(encoded_forms(raw)) if len(form) >= MIN_LENGTH}
        itself = unbroken(raw.decode("latin-1"))
        added = []
        for form in {*texts, itself}:
            known = self._values.get(form, ())
            self._values[form] = (*known, raw)
            if form not in texts:
                if not known:
                    self._only_in_bytes.add(form)
            elif not known or form in self._only_in_bytes:
                self._only_in_bytes.discard(form)
                self._streamed.append(form)
            if not known:
                added.append(form)
        return added

    def unbound(self, content: str | bytes, audience: str | None) -> str | None:
        """Return the name of a known value in ``content`` that must not be sent to ``audience``, or ``None``.

        Args:
            content: the content to be sent.
            audience: the origin that would receive it, or ``None`` for a destination that must not get any secret.
        """
        self._prepare()
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
        added = (re.compile(pattern), mask)
        if added in self._patterns:
            return
        self._patterns.append(added)
        self._byte_patterns.append((re.compile(pattern.encode()), mask.encode()))
        self.generation = next(_GENERATIONS)

    def text(self, text: str) -> str:
        """Return ``text`` with known values and matches of patterns redacted."""
        text = self.values(text)
        return self.matches(text) if self._patterns else text

    def values(self, text: str) -> str:
        """Return ``text`` with known values redacted, but not matches of patterns."""
        self._prepare()
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
        if not (spans := self._spans(data, self._only_in_bytes)):
            return ()
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
        if isinstance(error, OpError):
            error.clean_details(self.data)

    def data(self, value: Any, *, sensitive_keys: bool = True) -> Any:
        """Convert ``value`` to plain JSON data (and ``bytes``), with strings, keys and bytes redacted.

        Args:
            value: anything that JSON or pydantic can represent.
            sensitive_keys: whether to redact values under sensitive keys.

        Raises:
            Unserializable: if a part of it cannot be represented in JSON.
        """
        self._prepare()
        texts: list[str] = []
        try:
            plain = self._plain(value, sensitive_keys, texts)
            # Nearly all data has no values. Searching all of its texts at once is faster than one after the other.
            if self._values and self._search.find(_searched("\0".join(texts))):
                return self._plain(value, sensitive_keys, texts, self.text)
            return self._plain(value, sensitive_keys, texts, self.matches) if self._patterns else plain
        except _NotPlain:
            return self._walk(value, sensitive_keys, "result")

    def _plain(  # noqa: PLR0911  one return per JSON type
        self, value: Any, sensitive_keys: bool, texts: list[str], clean: Callable[[str], str] | None = None
    ) -> Any:
        """Copy plain data, which is a fast path of ``_walk`` for nearly all values.

        Texts are redacted by ``clean``. Without it, they are added to ``texts``.

        Raises:
            _NotPlain: if a part of it is not plain data.
        """
        kind = type(value)
        if kind is str:
            if clean is not None:
                return clean(value)
            texts.append(value)
            return value
        if kind is dict:
            if not _STR.issuperset(map(type, value)):
                raise _NotPlain
            hiding = sensitive_keys and any(map(is_sensitive, value))
            shown = _CONSTANTS if self._numbers else _CONSTANTS_AND_INTEGERS
            copied = value.copy()
            for key, item in value.items():
                if hiding and is_sensitive(key) and _can_be_secret(item):
                    copied[key] = _HIDDEN
                elif clean is None and type(item) is str:
                    texts.append(item)
                elif type(item) not in shown:
                    copied[key] = self._plain(item, sensitive_keys, texts, clean)
            if clean is not None:
                return {clean(key): item for key, item in copied.items()}
            texts += value
            return copied
        if kind is list or kind is tuple:
            return [self._plain(item, sensitive_keys, texts, clean) for item in value]
        if value is None or kind is bool:
            return value
        if kind is int or (kind is float and math.isfinite(value)):
            return self._number(value) if self._numbers else value
        raise _NotPlain

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
        self._prepare()
        spans: list[tuple[int, int, str]] = []
        for start, end, form in sorted(self._search.spans(data, ignored)):
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
