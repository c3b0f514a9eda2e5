"""Messages as pi's session files have them, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sideband.messages import (
    AssistantMessage,
    ImagePart,
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


def message_from_pi(told: Mapping[str, Any]) -> Message:
    """The message that pi's one stands for.

    Raises:
        KeyError, TypeError, ValueError: it is none that can be expressed.
    """
    return _READERS[told["role"]](told)


def user_from_pi(content: Any, source: str = "user") -> UserMessage:
    """What is told to a model. Raises what ``message_from_pi`` raises."""
    return UserMessage(content=_shown_from_pi(content), source=source)


def message_to_pi(message: Message, time: str) -> dict[str, Any]:
    """A message as pi has it.

    Args:
        message: the message.
        time: when its entry was stored.
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


def _assistant_from_pi(told: Mapping[str, Any]) -> AssistantMessage:
    problem = told.get("errorMessage")
    return AssistantMessage(
        content=tuple(_said_from_pi(part) for part in told["content"]),
        model=f"{told['provider']}:{told['model']}",
        stop=_STOPS[told["stopReason"]],
        usage=_usage_from_pi(told.get("usage")),
        error=None if problem is None else {"message": str(problem)},
    )


def _result_from_pi(told: Mapping[str, Any]) -> ToolResultMessage:
    return ToolResultMessage(
        call=told["toolCallId"],
        tool=told["toolName"],
        content=_shown_from_pi(told["content"]),
        is_error=told["isError"],
    )


def _command_from_pi(told: Mapping[str, Any]) -> UserMessage:
    """A command that the user ran beside the conversation."""
    lines = [f"I ran this command: {told['command']}"]
    output = str(told.get("output") or "")
    lines.append(f"It printed:\n{output}" if output else "It printed nothing.")
    if told.get("cancelled"):
        lines.append("It was cancelled.")
    elif told.get("exitCode"):
        lines.append(f"It ended with exit code {told['exitCode']}.")
    if told.get("truncated"):
        lines.append("Only a part of what it printed is shown.")
    return UserMessage(content="\n".join(lines), source="shell")


_READERS: dict[str, Callable[[Mapping[str, Any]], Message]] = {
    "user": lambda told: user_from_pi(told["content"]),
    "assistant": _assistant_from_pi,
    "toolResult": _result_from_pi,
    "bashExecution": _command_from_pi,
    "branchSummary": lambda told: user_from_pi(told["summary"], "branch"),
    "compactionSummary": lambda told: user_from_pi(told["summary"], "summary"),
}


def _shown_from_pi(content: Any) -> tuple[TextPart | ImagePart, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(_shown_part(part) for part in content)


def _shown_part(part: Mapping[str, Any]) -> TextPart | ImagePart:
    if part["type"] == "image":
        return ImagePart(media_type=part["mimeType"], data=part["data"])
    if part["type"] == "text":
        return TextPart(text=part["text"])
    raise ValueError(f"a part of the unknown type `{part['type']}`")


def _said_from_pi(part: Mapping[str, Any]) -> TextPart | ThinkingPart | ToolCallPart:
    kind = part["type"]
    if kind == "text":
        return TextPart(text=part["text"])
    if kind == "thinking":
        return ThinkingPart(
            text=part["thinking"], signature=part.get("thinkingSignature"), redacted=part.get("redacted", False)
        )
    if kind == "toolCall":
        return ToolCallPart(id=part["id"], name=part["name"], arguments=part["arguments"])
    raise ValueError(f"a part of the unknown type `{kind}`")


def _parts_to_pi(parts: Sequence[TextPart | ImagePart | ThinkingPart | ToolCallPart]) -> list[dict[str, Any]]:
    return [_part_to_pi(part) for part in parts]


def _part_to_pi(part: TextPart | ImagePart | ThinkingPart | ToolCallPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "image", "data": part.data, "mimeType": part.media_type}
    if isinstance(part, ToolCallPart):
        return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": part.arguments}
    signature = {} if part.signature is None else {"thinkingSignature": part.signature}
    redacted = {"redacted": True} if part.redacted else {}
    return {"type": "thinking", "thinking": part.text, **signature, **redacted}


def _usage_from_pi(told: Any) -> Usage:
    usage = told if isinstance(told, Mapping) else {}
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
        # pi tells the cost of each kind of token; only their sum is known here.
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": usage.cost or 0},
    }


def _count(told: Any) -> int:
    return told if isinstance(told, int) and told >= 0 else 0


def _milliseconds(time: str) -> int:
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except ValueError:
        return round(datetime(1970, 1, 1, tzinfo=UTC).timestamp())
