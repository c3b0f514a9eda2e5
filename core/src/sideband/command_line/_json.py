"""JSON for standard output."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import Any, TextIO

from ..rendering import render

# json.dumps escapes the control characters below 32, but not these.
_UNSAFE = re.compile(r"[\x7f-\x9f\ud800-\udfff]")


def json_text(data: Any, stream: TextIO, *, indent: int | None = None) -> str:
    r"""Return data as JSON for a stream.

    At a terminal, the characters that ``render`` escapes are written as ``\uXXXX``. A pipe gets them as they are,
    except for control characters and lone surrogates. Both are the same data.

    Args:
        data: the data; bytes become ``{"__bytes__": base64}``, other values that JSON does not support become text.
        stream: where the text will be written.
        indent: the indentation; ``None`` for a single line.
    """
    as_ascii = (stream.encoding or "").lower() not in ("utf-8", "utf8")
    text = json.dumps(data, ensure_ascii=as_ascii, indent=indent, default=json_default)
    if not stream.isatty():
        return _UNSAFE.sub(lambda found: _escaped(found[0]), text)
    return "\n".join(render(line, escape=_escaped) for line in text.split("\n"))


def json_default(value: Any) -> Any:
    """Convert a value that JSON does not support: bytes to ``{"__bytes__": base64}``, others to text."""
    if isinstance(value, bytes):
        return {"__bytes__": b64encode(value).decode()}
    return str(value)


def _escaped(character: str) -> str:
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]
