"""Redact JSON text like the data parsed from it."""

from __future__ import annotations

import json
import re

from ._placeholder import placeholder
from ._sensitive_keys import is_sensitive

# Matches every string, so that no match begins within one. A colon follows keys only.
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:\s*)?')
_HIDDEN = f'"{placeholder()}"'


def redact_json_text(text: str) -> str:
    """Return a JSON text in which the values under sensitive keys are redacted as they are in data.

    Args:
        text: valid JSON.

    Example:
        >>> redact_json_text('{"user": "ada",  "password": ["x"]}')
        '{"user": "ada",  "password": "[redacted]"}'
    """
    decode = json.JSONDecoder().raw_decode
    parts: list[str] = []
    done = 0
    for match in _STRING.finditer(text):
        key = match[1] if match[2] and match.start() >= done else ""
        if is_sensitive(json.loads(f'"{key}"', strict=False) if "\\" in key else key):
            value, end = decode(text, match.end())
            if value is not None and not isinstance(value, bool):
                parts += [text[done : match.end()], _HIDDEN]
                done = end
    return "".join([*parts, text[done:]])
