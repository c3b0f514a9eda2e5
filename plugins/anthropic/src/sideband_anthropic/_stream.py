"""Reader of a response stream. A response counts only if it is complete and ends as the protocol requires."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from attrs import define, field
from pydantic import ValidationError
from sideband.messages import AssistantMessage, StopReason, TextPart, ThinkingPart, ToolCallPart, Usage
from sideband.providers import StreamBroken, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from sideband_model_client import (
    EventStreamError,
    ServiceReply,
    TextPieces,
    broken,
    parse_object,
    read_events,
    refused_inside,
    token_count,
    whole_characters,
)

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    # The service stopped early, at its own step limit for server-side tools.
    "pause_turn": "length",
    "refusal": "refusal",
}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
_MAX_BLOCKS = 10_000


@define
class _ContentBlock:
    """A content block, possibly still incomplete."""

    kind: str
    start: Mapping[str, Any]
    call: int
    pieces: TextPieces = field(factory=TextPieces)
    signature: list[str] = field(factory=list)
    closed: bool = False

    @property
    def text(self) -> str:
        return self.pieces.text


@define
class MessagesReader:
    """Reads one response.

    Args:
        reply: the reply of the service.
    """

    reply: ServiceReply
    _blocks: dict[int, _ContentBlock] = field(factory=dict, init=False)
    _usage: dict[str, int] = field(factory=dict, init=False)
    _calls: int = field(default=0, init=False)
    _stop: str = field(default="", init=False)
    _begun: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    async def read(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts of the response as they arrive. Afterwards, ``message`` returns the whole.

        Raises:
            StreamBroken: if the stream is truncated or malformed.
            ProviderRefused: if the stream reports an error.
        """
        async with aclosing(read_events(self.reply.chunks)) as events:
            try:
                async for event in events:
                    delta = self._feed(self._parsed(event.data), event.data)
                    if delta is not None:
                        yield delta
                    if self._ended:
                        await self.reply.drain()
                        return
            except EventStreamError as error:
                raise self._broken(f"invalid event stream: {error}") from error
        raise self._broken("the stream ended before the response was complete")

    def read_whole(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield the parts of a message that the service did not stream.

        Raises:
            StreamBroken: if the message is malformed.
        """
        blocks = message.get("content")
        events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
        for index, block in enumerate(blocks if isinstance(blocks, list) else []):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        # Some servers leave the reason out. The end of the body shows that the message is complete.
        events.append({"type": "message_delta", "delta": {"stop_reason": _text(message, "stop_reason") or "end_turn"}})
        events.append({"type": "message_stop"})
        for event in events:
            delta = self._feed(event, "")
            if delta is not None:
                yield delta

    @property
    def usage(self) -> Usage | None:
        """The usage, as far as the service has reported it."""
        return Usage.model_validate(self._usage) if self._usage else None

    def message(self) -> AssistantMessage:
        """Return the complete response after its end."""
        parts = [self._part(block) for _, block in sorted(self._blocks.items())]
        return AssistantMessage(
            content=tuple(part for part in parts if part is not None),
            stop=self._stop_reason(),
            usage=self.usage or Usage(),
        )

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            return parse_object(text, halves=True)
        except ValueError as error:
            raise self._broken(f"invalid event: {error}") from error

    def _feed(self, event: Mapping[str, Any], text: str) -> StreamEvent | None:
        kind = event.get("type")
        if kind == "error":
            raise refused_inside(self.reply.access, event.get("error"), self.reply.headers, body=text)
        if kind == "message_start":
            self._begin(_table(event, "message"))
        elif kind == "content_block_start":
            return self._open(self._index(event), _table(event, "content_block"))
        elif kind == "content_block_delta":
            return self._grow(self._opened(event), _table(event, "delta"))
        elif kind == "content_block_stop":
            self._opened(event).closed = True
        elif kind == "message_delta":
            self._stop = _text(_table(event, "delta"), "stop_reason") or self._stop
            self._count(_table(event, "usage"))
        elif kind == "message_stop":
            self._end()
        return None

    def _begin(self, message: Mapping[str, Any]) -> None:
        if self._begun:
            raise self._broken("duplicate `message_start`")
        self._begun = True
        self._count(_table(message, "usage"))

    def _open(self, index: int, start: Mapping[str, Any]) -> StreamEvent | None:
        if not self._begun or index in self._blocks or len(self._blocks) >= _MAX_BLOCKS:
            raise self._broken(f"unexpected start of content block {index}")
        kind = _text(start, "type")
        block = self._blocks[index] = _ContentBlock(kind, start, self._calls)
        if kind == "tool_use":
            if not _text(start, "id") or not _text(start, "name"):
                raise self._broken("a tool call is missing its id or name")
            self._calls += 1
            return ToolCallDelta(index=block.call, name=_text(start, "name"))
        if kind == "thinking":
            block.signature.append(_text(start, "signature"))
            return self._add_text(block, "thinking", _raw(start, "thinking"))
        return self._add_text(block, "text", _raw(start, "text"))

    def _grow(self, block: _ContentBlock, delta: Mapping[str, Any]) -> StreamEvent | None:
        kind = _text(delta, "type")
        if kind == "signature_delta":
            block.signature.append(_text(delta, "signature"))
        elif kind == "text_delta":
            return self._add_text(block, "text", _raw(delta, "text"))
        elif kind == "thinking_delta":
            return self._add_text(block, "thinking", _raw(delta, "thinking"))
        elif kind == "input_json_delta" and block.kind == "tool_use":
            piece = block.pieces.add(_raw(delta, "partial_json"))
            return ToolCallDelta(index=block.call, arguments=piece) if piece else None
        return None

    def _add_text(self, block: _ContentBlock, kind: str, text: str) -> StreamEvent | None:
        """Add a piece of text to a block of the same kind. Text in a block of another kind is ignored."""
        shown = block.pieces.add(text) if block.kind == kind else ""
        if not shown:
            return None
        return TextDelta(text=shown) if kind == "text" else ThinkingDelta(text=shown)

    def _end(self) -> None:
        if not self._begun or not self._stop:
            raise self._broken("the response ended without a stop reason")
        if not all(block.closed for block in self._blocks.values()):
            raise self._broken("the response ended within a content block")
        self._ended = True

    def _broken(self, problem: str) -> StreamBroken:
        return broken(self.reply.access, problem)

    def _index(self, event: Mapping[str, Any]) -> int:
        index = event.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            raise self._broken("an event is missing its content block index")
        return index

    def _opened(self, event: Mapping[str, Any]) -> _ContentBlock:
        block = self._blocks.get(self._index(event))
        if block is None or block.closed:
            raise self._broken("an event refers to a content block that is not open")
        return block

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Store token counts. The counts of a later event are cumulative and replace earlier ones."""
        details = _table(usage, "output_tokens_details")
        counts = {name: usage.get(theirs) for name, theirs in _USAGE.items()}
        counts["reasoning"] = details.get("thinking_tokens")
        for name, value in counts.items():
            if (count := token_count(value)) is not None:
                self._usage[name] = count

    def _stop_reason(self) -> StopReason:
        stop = _STOPS.get(self._stop, "end")
        if stop in {"end", "tool_calls"}:
            return "tool_calls" if self._calls else "end"
        return stop

    def _part(self, block: _ContentBlock) -> TextPart | ThinkingPart | ToolCallPart | None:
        if block.kind == "text":
            return TextPart(text=block.text) if block.text else None
        if block.kind == "thinking":
            return ThinkingPart(text=block.text, signature="".join(block.signature) or None)
        if block.kind == "redacted_thinking":
            return ThinkingPart(signature=_text(block.start, "data"), redacted=True)
        return _tool_call(block) if block.kind == "tool_use" else None


def _tool_call(block: _ContentBlock) -> ToolCallPart:
    call_id, name = _text(block.start, "id"), _text(block.start, "name")
    try:
        arguments = parse_object(block.text) if block.text.strip() else _table(block.start, "input")
        return ToolCallPart(id=call_id, name=name, arguments=dict(arguments))
    except ValidationError:
        problem = "expected a JSON object"
    except ValueError as error:
        problem = str(error)
    return ToolCallPart(id=call_id, name=name, problem=f"invalid arguments: {problem}")


def _table(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def _text(event: Mapping[str, Any], name: str) -> str:
    return whole_characters(_raw(event, name))


def _raw(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""
