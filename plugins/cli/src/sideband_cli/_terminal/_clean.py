"""Removal of control characters from untrusted text, so that it cannot control the terminal."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

# Also the bidirectional formatting characters, which can make a line look like another one.
_CONTROL = {
    code: "�"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if code not in (9, 10)
}
# json.dumps escapes the characters below 32, but not these.
_ESCAPED = {code: f"\\u{code:04x}" for code in range(127, 160)}


def clean(text: str) -> str:
    """Replace control characters except tabs and line feeds: untrusted text must not move the cursor."""
    return text.translate(_CONTROL)


def escape_controls(text: str) -> str:
    """Escape the control characters that JSON allows unescaped."""
    return text.translate(_ESCAPED)


def json_default(value: Any) -> Any:
    """Convert a value that JSON does not support: bytes to ``{"__bytes__": base64}``, others to text."""
    if isinstance(value, bytes):
        return {"__bytes__": b64encode(value).decode()}
    return str(value)
