"""Text and JSON that a terminal shows and does not obey, whatever a skill, a server or a model says."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

# Beside the control characters those that turn the direction of a line, and so can show it as another.
_CONTROL = {
    code: "�"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if code not in (9, 10)
}
# JSON itself escapes only the first half of the control characters.
_ESCAPED = {code: f"\\u{code:04x}" for code in range(127, 160)}


def clean(text: str) -> str:
    """Text without control characters: what a skill or a server says must not move the cursor."""
    return text.translate(_CONTROL)


def escape_controls(text: str) -> str:
    """JSON text in which no control character is left as it is."""
    return text.translate(_ESCAPED)


def json_default(value: Any) -> Any:
    """Return what JSON can say of a value that it has no form for: bytes as ``{"__bytes__": base64}``, else text."""
    if isinstance(value, bytes):
        return {"__bytes__": b64encode(value).decode()}
    return str(value)
