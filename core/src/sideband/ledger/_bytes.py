"""The JSON encoding of bytes: ``{"__bytes__": base64}``."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any


def bytes_as_json(value: Any) -> Any:
    """Encode bytes as JSON data. Use it as the ``default`` of a JSON encoder.

    Example:
        >>> import json
        >>> json.dumps({"raw": b"hi"}, default=bytes_as_json)
        '{"raw": {"__bytes__": "aGk="}}'
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return {"__bytes__": b64encode(value).decode("ascii")}
    raise TypeError(type(value).__name__)


def revive(value: Any) -> Any:
    """Return decoded JSON data with encoded bytes converted back to ``bytes``.

    Example:
        >>> revive([{"__bytes__": "aGk="}])
        [b'hi']
    """
    if isinstance(value, dict):
        encoded = value.get("__bytes__")
        if len(value) == 1 and isinstance(encoded, str):
            return b64decode(encoded)
        return {name: revive(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [revive(inner) for inner in value]
    return value
