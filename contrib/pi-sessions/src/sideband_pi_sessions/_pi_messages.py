"""Converts between the messages in pi's session files and our messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sideband.messages import (
    AssistantMessage,
    Attachment,
    AudioPart,
    FilePart,
    ImagePart,
    ImageUrlPart,
    Message,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
)

_STOPS: dict[str, StopReason] = {
    "stop": "end",
    "toolUse": "tool_calls",
    "length": "length",
    "error": "error",
    "aborted": "aborted",
}
_PI_STOPS = {ours: theirs for theirs, ours in _STOPS.items()}
_APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses", "google": "google-generative-ai"}
_OTHER_API = "openai-completions"


def message_from_pi(original: Mapping[str, Any]) -> Message:
    """Convert a message of pi.

    Raises:
        KeyError, TypeError, ValueError: if it cannot be converted.
    """
    return _READERS[original["role"]](original)


def user_from_pi(content: Any, source: str = "user") -> UserMessage:
    """Convert the content of a message to the model. Raises the same errors as ``message_from_pi``."""
    return UserMessage(content=_content_from_pi(content), source=source)


def message_to_pi(message: Message, time: str) -> dict[str, Any]:
    """Convert a message to pi's format.

    Args:
        message: the message.
        time: the time of its entry.
    """
    stamp = {"timestamp": _milliseconds(time)}
    if isinstance(message, UserMessage):
        return {"role": "user", "content": _parts_to_pi(message.content), **stamp}
    if isinstance(message, ToolResultMessage):
        return {
            "role": "toolResult",
            "toolCallId": message.call,
            "toolName": message.tool,
            "content": _parts_to_pi(message.content),
            "isError": message.is_error,
            **stamp,
        }
    provider, _, model = message.model.partition(":")
    error = {} if message.error is None else {"errorMessage": str(message.error.get("message", ""))}
    return {
        "role": "assistant",
        "content": _parts_to_pi(message.content),
        "api": _APIS.get(provider, _OTHER_API),
        "provider": provider,
        "model": model,
        "usage": _usage_to_pi(message.usage),
        "stopReason": _PI_STOPS.get(message.stop, "stop"),
        **error,
        **stamp,
    }


def _assistant_from_pi(original: Mapping[str, Any]) -> AssistantMessage:
    problem = original.get("errorMessage")
    return AssistantMessage(
        content=tuple(_assistant_part(part) for part in original["content"]),
        model=f"{original['provider']}:{original['model']}",
        stop=_STOPS[original["stopReason"]],
        usage=_usage_from_pi(original.get("usage")),
        error=None if problem is None else {"message": str(problem)},
    )


def _result_from_pi(original: Mapping[str, Any]) -> ToolResultMessage:
    return ToolResultMessage(
        call=original["toolCallId"],
        tool=original["toolName"],
        content=_content_from_pi(original["content"]),
        is_error=original["isError"],
    )


def _command_from_pi(original: Mapping[str, Any]) -> UserMessage:
    """Describe a shell command that the user ran outside of the conversation."""
    lines = [f"I ran this command: {original['command']}"]
    output = str(original.get("output") or "")
    lines.append(f"Output:\n{output}" if output else "The output was empty.")
    if original.get("cancelled"):
        lines.append("The command was cancelled.")
    elif original.get("exitCode"):
        lines.append(f"The command failed with exit code {original['exitCode']}.")
    if original.get("truncated"):
        lines.append("The output is truncated.")
    return UserMessage(content="\n".join(lines), source="shell")


_READERS: dict[str, Callable[[Mapping[str, Any]], Message]] = {
    "user": lambda original: user_from_pi(original["content"]),
    "assistant": _assistant_from_pi,
    "toolResult": _result_from_pi,
    "bashExecution": _command_from_pi,
    "branchSummary": lambda original: user_from_pi(original["summary"], "branch"),
    "compactionSummary": lambda original: user_from_pi(original["summary"], "summary"),
}


def _content_from_pi(content: Any) -> tuple[TextPart | ImagePart, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(_content_part(part) for part in content)


def _content_part(part: Mapping[str, Any]) -> TextPart | ImagePart:
    if part["type"] == "image":
        return ImagePart(media_type=part["mimeType"], data=part["data"])
    if part["type"] == "text":
        return TextPart(text=part["text"])
    raise ValueError(f"unknown type of part: `{part['type']}`")


def _assistant_part(part: Mapping[str, Any]) -> TextPart | ThinkingPart | ToolCallPart:
    kind = part["type"]
    if kind == "text":
        return TextPart(text=part["text"])
    if kind == "thinking":
        return ThinkingPart(
            text=part["thinking"], signature=part.get("thinkingSignature"), redacted=part.get("redacted", False)
        )
    if kind == "toolCall":
        return ToolCallPart(id=part["id"], name=part["name"], arguments=part["arguments"])
    raise ValueError(f"unknown type of part: `{kind}`")


def _parts_to_pi(parts: Sequence[TextPart | Attachment | ThinkingPart | ToolCallPart]) -> list[dict[str, Any]]:
    return [_part_to_pi(part) for part in parts]


def _part_to_pi(part: TextPart | Attachment | ThinkingPart | ToolCallPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "image", "data": part.data, "mimeType": part.media_type}
    if isinstance(part, ImageUrlPart):
        return {"type": "text", "text": f"(an image, {part.url})"}
    if isinstance(part, FilePart | AudioPart):  # pi has no such parts
        name = part.name if isinstance(part, FilePart) else "a recording"
        return {"type": "text", "text": f"({name}, {part.media_type}, omitted)"}
    if isinstance(part, ToolCallPart):
        return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": part.arguments}
    signature = {} if part.signature is None else {"thinkingSignature": part.signature}
    redacted = {"redacted": True} if part.redacted else {}
    return {"type": "thinking", "thinking": part.text, **signature, **redacted}


def _usage_from_pi(original: Any) -> Usage:
    usage = original if isinstance(original, Mapping) else {}
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, Mapping) else None
    return Usage(
        input=_count(usage.get("input")),
        output=_count(usage.get("output")),
        cache_read=_count(usage.get("cacheRead")),
        cache_write=_count(usage.get("cacheWrite")),
        cost=total if isinstance(total, (int, float)) and total >= 0 else None,
    )


def _usage_to_pi(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.context,
        # pi stores the cost per kind of token; only the total is known here.
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": usage.cost or 0},
    }


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _milliseconds(time: str) -> int:
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError:
        return round(datetime(1970, 1, 1, tzinfo=UTC).timestamp())
