"""Requests of servers to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from sideband.messages import AssistantMessage, ImagePart, Message, TextPart, UserMessage

_MAX_TOKENS = 4_096
"""The maximum length of an answer, whatever the server asks for."""


class SampleInvalid(Exception):
    """A server asked a model in a way that is not supported. The message is for the person."""


def request_of(sample: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the request for the op `llm.generate`. The preferences of the server for a model are not used.

    Raises:
        SampleInvalid: if a message is invalid.
    """
    try:
        messages = [_message(one).model_dump(mode="json") for one in sample["messages"]]
    except ValidationError as error:
        raise SampleInvalid(f"{error.error_count()} fields of its request to a model are invalid") from None
    return {
        "model": model,
        "messages": messages,
        "system": sample.get("systemPrompt") or "",
        "max_tokens": min(int(sample["maxTokens"]), _MAX_TOKENS),
        **({"temperature": sample["temperature"]} if sample.get("temperature") is not None else {}),
        **({"stop": sample["stopSequences"]} if sample.get("stopSequences") else {}),
    }


def _message(one: Mapping[str, Any]) -> Message:
    content = one["content"] if isinstance(one["content"], list) else [one["content"]]
    if one["role"] == "assistant":
        return AssistantMessage(content="".join(_texts(content)))
    return UserMessage(content=[_part(part) for part in content])


def _texts(content: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(part.get("text", "")) for part in content]


def _part(part: Mapping[str, Any]) -> TextPart | ImagePart:
    if part.get("type") == "image":
        return ImagePart(data=part["data"], media_type=part["mimeType"])
    return TextPart(text=str(part.get("text", f"[{part.get('type')} is not supported]")))
