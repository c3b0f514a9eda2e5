"""Messages between users, models and tools."""

from .models._messages import (
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
    parse_message,
    parse_messages,
    to_data,
)

__all__ = [
    "AssistantMessage",
    "ImagePart",
    "Message",
    "StopReason",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultMessage",
    "Usage",
    "UserMessage",
    "parse_message",
    "parse_messages",
    "to_data",
]
