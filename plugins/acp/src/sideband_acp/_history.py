"""The history of a session, as the updates that a client shows it with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AudioContentBlock,
    ImageContentBlock,
    TextContentBlock,
    ToolCallStart,
    UserMessageChunk,
)
from sideband.messages import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    ImageUrlPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)
from sideband.rendering import render

from ._changes import Changes
from ._text import block, span
from ._tool_calls import Content, described, result_content
from ._updates import Update

_NO_RESULT = "it was interrupted"


def history(messages: Sequence[Message], changes: Changes) -> Iterator[Update]:
    """Yield the updates for the messages of a session, oldest first."""
    results = {one.call: one for one in messages if isinstance(one, ToolResultMessage)}
    for number, message in enumerate(messages):
        name = f"history-{number}"
        if isinstance(message, UserMessage) and message.source == "user":
            for content in _given(message):
                yield UserMessageChunk(session_update="user_message_chunk", content=content, message_id=name)
        elif isinstance(message, AssistantMessage):
            for part in message.content:
                if isinstance(part, ToolCallPart):
                    yield _call(part, results.get(part.id), changes)
                elif (found := _said(part, name)) is not None:
                    yield found


def _said(part: TextPart | ThinkingPart, name: str) -> Update | None:
    if not part.text:
        return None
    content = block(render(part.text, prose=True))
    if isinstance(part, ThinkingPart):
        return AgentThoughtChunk(session_update="agent_thought_chunk", content=content, message_id=name)
    return AgentMessageChunk(session_update="agent_message_chunk", content=content, message_id=name)


def _given(message: UserMessage) -> Iterator[TextContentBlock | ImageContentBlock | AudioContentBlock]:
    for part in message.content:
        match part:
            case TextPart():
                yield block(render(part.text, prose=True))
            case ImagePart():
                yield ImageContentBlock(type="image", data=part.data, mime_type=part.media_type)
            case AudioPart():
                yield AudioContentBlock(type="audio", data=part.data, mime_type=part.media_type)
            case FilePart():
                yield block(f"[{span(part.name)}]")
            case ImageUrlPart():
                yield block(f"[{span(part.url)}]")


def _call(part: ToolCallPart, result: ToolResultMessage | None, changes: Changes) -> ToolCallStart:
    call = described(part.id, part.name, part.arguments, changes)
    failed = result is None or result.is_error
    content: Content = [] if failed else [*changes.of_past_call(call.tool, part.arguments)]
    if not content:
        parts = [one.model_dump() for one in result.content] if result else [{"type": "text", "text": _NO_RESULT}]
        content = result_content(parts)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=call.id,
        title=call.title,
        kind=call.kind,
        status="failed" if failed else "completed",
        content=content,
        locations=call.locations,
        raw_input=call.arguments,
    )
