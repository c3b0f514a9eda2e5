"""Conversion of messages that both protocols share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sideband.messages import AssistantMessage, AudioPart, UserMessage
from sideband.providers import ModelRequest
from sideband_model_client import compact

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


def is_empty(message: AssistantMessage) -> bool:
    """Return whether an answer is not sent, because it failed or has neither text nor calls."""
    return message.stop == "error" or not (message.text or message.tool_calls)


def call_id(given: str) -> str:
    """Return a tool call id that services accept. Ids from other providers may be longer or have other characters."""
    return given if _ID.fullmatch(given) else f"call_{sha256(given.encode()).hexdigest()[:32]}"


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON text, which both protocols expect."""
    return compact(arguments)


def has_audio(request: ModelRequest) -> bool:
    """Return whether the request contains a recording."""
    return any(
        isinstance(part, AudioPart)
        for message in request.messages
        if isinstance(message, UserMessage)
        for part in message.content
    )


def is_strict(schema: object) -> bool:
    """Return whether a service can enforce a schema: every object is closed and requires all of its properties."""
    if isinstance(schema, list):
        return all(is_strict(one) for one in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        if schema.get("additionalProperties") is not False or set(properties) != set(required):
            return False
    return all(is_strict(one) for one in schema.values())
