"""Frames: one JSON object per line, validated in both directions. Both ends of the wire use this module.

The format is stricter than JSON: keys are unique, numbers are finite, text is UTF-8 without lone surrogates, nesting,
length and the number of values are limited, and bytes are encoded as ``{"__bytes__": base64}``.
"""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

MAX_FRAME = 16 * 1024 * 1024
"""The maximum size of one line in bytes, including its line feed."""

MAX_NESTING = 64
"""The maximum nesting depth of objects and lists, including the message itself."""

MAX_VALUES = 250_000
"""The maximum number of values in one line, counting all members of lists and objects. Parsing more would take seconds
and gigabytes."""

_BYTES = "__bytes__"
_OPENING = b'{"__bytes__":'
_ESCAPE = 0x5C
_WHITE_SPACE = " \t\n\r"


class BadFrame(ValueError):
    """The line is not a valid frame. The message states the reason and never quotes the line."""


class Unsendable(ValueError):
    """A value cannot be encoded as a frame. The message states the reason."""


class TooLarge(Unsendable):
    """A value is too long or has too many values."""


class NotJson(Unsendable):
    """A value is not JSON data, but may be convertible to it."""


def encode(message: dict[str, Any]) -> bytes:
    """Encode a message as a line.

    Raises:
        NotJson: if it contains a value that JSON cannot represent.
        Unsendable: if it is nested too deeply, or is too long.
    """
    try:
        line = _encode(message).encode() + b"\n"
    except UnicodeEncodeError:
        raise NotJson("a string has a lone surrogate, which UTF-8 cannot encode") from None
    except (TypeError, ValueError) as error:
        raise NotJson(str(error)) from None
    except RecursionError:
        raise Unsendable(f"it is nested deeper than {MAX_NESTING} levels") from None
    if len(line) > MAX_FRAME:
        raise TooLarge(f"its size of {len(line):,} bytes exceeds the limit of {MAX_FRAME:,}")
    if len(line) > MAX_VALUES and _has_too_many_values(line):
        raise TooLarge(f"it has more than {MAX_VALUES:,} values")
    if line.count(b"{") + line.count(b"[") > MAX_NESTING and _is_too_deep(message):
        raise Unsendable(f"it is nested deeper than {MAX_NESTING} levels")
    if _OPENING in line:
        _refuse_look_alikes(message)
    return line


def decode(line: bytes, *, trusted: bool = False) -> dict[str, Any]:
    """Decode the message in a line.

    Args:
        line: the line.
        trusted: whether the other end has encoded it with ``encode``, so that keys are unique and numbers finite.

    Raises:
        BadFrame: if the line is not one strict JSON object within the limits.
    """
    is_large = len(line) > MAX_VALUES
    if is_large and _has_too_many_values(line):
        raise BadFrame(f"a line has more than {MAX_VALUES:,} values")
    # Without a callback for each object, which takes longer than to parse it.
    is_plain = trusted and _OPENING not in line
    decoder = _plain_decoder if is_plain else _patient_decoder if is_large else _decoder
    try:
        message = _parsed(line.decode(), decoder)
    except UnicodeDecodeError:
        raise BadFrame("a line is not UTF-8") from None
    except RecursionError:
        raise BadFrame(f"nested deeper than {MAX_NESTING} levels") from None
    except BadFrame:
        raise
    except ValueError as error:
        raise BadFrame(f"a line is not JSON: {_reason(error)}") from None
    if type(message) is not dict:
        raise BadFrame("a line is not an object")
    if line.count(b"{") + line.count(b"[") > MAX_NESTING and _is_too_deep(message):
        raise BadFrame(f"nested deeper than {MAX_NESTING} levels")
    if b"\\u" in line and _has_lone_surrogate(message):
        raise BadFrame("a string has a lone surrogate")
    return message


def _parsed(text: str, decoder: json.JSONDecoder) -> Any:
    if not text.startswith("{"):
        return decoder.decode(text)
    # Without the search for white space before the object, which takes as long as a short object.
    try:
        message, end = decoder.scan_once(text, 0)  # type: ignore[attr-defined]
    except StopIteration:
        raise BadFrame("a line is not JSON: Expecting value") from None
    if text[end:].strip(_WHITE_SPACE):
        raise BadFrame("a line is not JSON: Extra data")
    return message


class LineBuffer:
    """A splitter of received bytes into lines, which rejects a line that is too long before it is complete."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def is_open(self) -> bool:
        """Whether a line is incomplete."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without their line feeds.

        Raises:
            BadFrame: if a line is longer than ``MAX_FRAME``.
        """
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._rest:
            # Use one buffer, because a list of single bytes would take fifty times as much memory.
            lines[0] = bytes(self._rest) + lines[0]
            self._rest = bytearray()
        if rest:
            self._rest += rest
        if len(self._rest) >= MAX_FRAME or (lines and len(lines[0]) >= MAX_FRAME):
            raise BadFrame(f"a line is longer than {MAX_FRAME:,} bytes")
        return lines


def _bytes_as_base64(value: object) -> dict[str, str]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {_BYTES: binascii.b2a_base64(value, newline=False).decode("ascii")}
    kind = type(value)
    raise TypeError(f"a value of type `{kind.__module__}.{kind.__qualname__}` cannot be sent")


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadFrame("an object has a duplicate key")
    if len(pairs) == 1 and pairs[0][0] == _BYTES:
        return _bytes_from_base64(pairs[0][1])
    return found


def _bytes_from_base64(value: Any) -> bytes:
    if type(value) is not str:
        raise BadFrame("`__bytes__` is not a string")
    try:
        return binascii.a2b_base64(value.encode("ascii"), strict_mode=True)
    except ValueError:
        raise BadFrame("`__bytes__` is not base64") from None


def _refuse_look_alikes(message: dict[str, Any]) -> None:
    """Reject objects that look like encoded bytes but are invalid, because the other end would reject the message."""
    waiting: list[Any] = [message]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            waiting += _children(node)
            continue
        if len(node) == 1 and _BYTES in node and not isinstance(node[_BYTES], (bytes, bytearray, memoryview)):
            try:
                _bytes_from_base64(node[_BYTES])
            except BadFrame as problem:
                raise Unsendable(f"an object looks like encoded bytes, but {problem}") from None
        waiting += _children(node.values())


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadFrame("a number is too large")
    return number


def _no_constant(name: str) -> Any:
    raise BadFrame(f"`{name}` is not valid JSON")


def _reason(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else "a number is too long"


def _integer(text: str) -> int:
    return int(text)


def _has_too_many_values(line: bytes) -> bool:
    if _marks(line, 0, len(line)) <= MAX_VALUES:
        return False
    # Many of these characters may be inside strings. Skip strings by searching for their closing quotes.
    found = start = 0
    while found <= MAX_VALUES:
        quote = line.find(b'"', start)
        found += _marks(line, start, quote if quote >= 0 else len(line))
        if quote < 0:
            break
        start = _end_of_text(line, quote + 1)
    return found > MAX_VALUES


def _marks(line: bytes, start: int, end: int) -> int:
    """Count the characters that precede a value."""
    return line.count(b",", start, end) + line.count(b"[", start, end) + line.count(b"{", start, end)


def _end_of_text(line: bytes, start: int) -> int:
    while (quote := line.find(b'"', start)) >= 0:
        escapes = quote
        while escapes > start and line[escapes - 1] == _ESCAPE:
            escapes -= 1
        start = quote + 1
        if not (quote - escapes) % 2:
            return start
    return len(line)


def _children(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, (dict, list, tuple))]


def _is_too_deep(message: dict[str, Any]) -> bool:
    level: list[Any] = [message]
    for _ in range(MAX_NESTING):
        level = [child for node in level for child in _children(node.values() if isinstance(node, dict) else node)]
        if not level:
            return False
    return True


def _has_lone_surrogate(message: dict[str, Any]) -> bool:
    try:
        json.dumps(message, ensure_ascii=False, default=lambda _: None).encode()
    except UnicodeEncodeError:
        return True
    return False


def _make_encode() -> Callable[[Any], str]:
    """Return a JSON encoder. Its C encoder is created once, while ``JSONEncoder`` creates one for each message."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_bytes_as_base64
        ).encode
    # Without the check for circular references, which fail because of their nesting depth.
    pieces = make(None, _bytes_as_base64, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda message: "".join(pieces(message, 0))


_encode = _make_encode()
_plain_decoder = json.JSONDecoder()
_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant)
# Parsing thousands of long numbers in C holds the GIL. A Python callback for each number releases it regularly.
_patient_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_int=_integer, parse_constant=_no_constant
)
