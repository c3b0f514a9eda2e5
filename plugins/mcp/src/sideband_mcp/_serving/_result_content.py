"""The result of a tool call, as the protocol has it."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from sideband.messages import ImagePart, TextPart, ToolResultMessage

_PREFIX = "sideband/"
_SHOWN = ("effect", "ms", "code", "output", "unknown", "denied")
"""The metadata that clients get: the id of the effect in the ledger, first of all."""


def result_of(message: ToolResultMessage) -> types.CallToolResult:
    """Return the result for a client."""
    content: list[types.ContentBlock] = []
    for part in message.content:
        if isinstance(part, ImagePart):
            content.append(types.ImageContent(data=part.data, mime_type=part.media_type))
        elif isinstance(part, TextPart):
            content.append(types.TextContent(text=part.text))
    hint = message.metadata.get("hint")
    if message.is_error and isinstance(hint, str) and hint not in message.text:
        content.append(types.TextContent(text=f"What to do: {hint}"))
    return types.CallToolResult(
        content=content,
        structured_content=_structured(message),
        is_error=message.is_error,
        _meta={f"{_PREFIX}{name}": message.metadata[name] for name in _SHOWN if name in message.metadata},
    )


def error_result(text: str, code: str) -> types.CallToolResult:
    """Return the result of a call that was not made."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True, _meta={f"{_PREFIX}code": code})


def _structured(message: ToolResultMessage) -> dict[str, Any] | None:
    """Return the result as data, if it is an object that was not shortened."""
    if message.is_error or "output" in message.metadata or len(message.content) != 1:
        return None
    text = message.text
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
