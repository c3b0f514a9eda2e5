"""Reads the events of an answer. It is an answer only if all of it came, and ended as the protocol ends it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import anyio
from attrs import define, field
from pydantic import ValidationError
from sideband.event_streams import EventStreamError, read_events
from sideband.messages import AssistantMessage, StopReason, TextPart, ThinkingPart, ToolCallPart, Usage
from sideband.providers import ProviderError, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from sideband.strict_json import parse_object, whole_characters

from ._errors import broken, stream_error

__all__ = ["Answer"]

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    # The service has stopped in the middle, at its own limit of steps for tools that it runs itself.
    "pause_turn": "length",
    "refusal": "refusal",
}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
_MOST_BLOCKS = 10_000
_DRAIN_SECONDS = 0.2


@define
class _Block:
    """One block of the answer, as far as it has come."""

    kind: str
    start: Mapping[str, Any]
    call: int
    pieces: list[str] = field(factory=list)
    half: str = ""
    signature: str = ""
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def add(self, piece: str) -> str:
        """Keep a piece, and return what of it can be shown: a half of a character waits for the other one."""
        piece, self.half = self.half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self.half = piece[:-1], piece[-1]
        piece = whole_characters(piece)
        self.pieces.append(piece)
        return piece


@define
class Answer:
    """One answer while it comes.

    Args:
        provider: who says so if something is wrong with it.
        headers: those of the response.
    """

    provider: str
    headers: Mapping[str, str] = field(factory=dict)
    _blocks: dict[int, _Block] = field(factory=dict, init=False)
    _usage: dict[str, int] = field(factory=dict, init=False)
    _calls: int = field(default=0, init=False)
    _stop: str = field(default="", init=False)
    _begun: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    async def read(self, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[StreamEvent, None]:
        """What it says, while it comes. ``message`` is the whole of it afterwards.

        Raises:
            StreamBroken: it ended before its end, or is malformed.
            ProviderRefused: the service broke it off with an error.
        """
        async with aclosing(chunks), aclosing(read_events(chunks)) as events:
            try:
                async for event in events:
                    delta = self._take(event.data)
                    if delta is not None:
                        yield delta
                    if self._ended:
                        await _drain(chunks)
                        return
            except EventStreamError as error:
                raise broken(self.provider, f"the answer is no whole stream of events: {error}") from error
        raise broken(self.provider, "the answer ended before its end")

    def message(self) -> AssistantMessage:
        """The whole answer, once it has ended."""
        parts = [self._part(block) for _, block in sorted(self._blocks.items())]
        return AssistantMessage(
            content=tuple(part for part in parts if part is not None), stop=self._stop_reason(), usage=self._used()
        )

    def _take(self, text: str) -> StreamEvent | None:
        try:
            event = parse_object(text, halves=True)
        except ValueError as error:
            raise broken(self.provider, f"an event of the answer can't be read: {error}") from error
        kind = event.get("type")
        if kind == "error":
            raise stream_error(self.provider, text, event.get("error"), self.headers)
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
            raise broken(self.provider, "the answer begins twice")
        self._begun = True
        self._count(_table(message, "usage"))

    def _open(self, index: int, start: Mapping[str, Any]) -> StreamEvent | None:
        if not self._begun or index in self._blocks or len(self._blocks) >= _MOST_BLOCKS:
            raise broken(self.provider, f"block {index} of the answer begins where it can't")
        kind = _text(start, "type")
        block = self._blocks[index] = _Block(kind, start, self._calls)
        if kind == "tool_use":
            if not _text(start, "id") or not _text(start, "name"):
                raise broken(self.provider, "a tool call of the answer has no id or no name")
            self._calls += 1
            return ToolCallDelta(index=block.call, name=_text(start, "name"))
        if kind == "thinking":
            block.signature = _text(start, "signature")
            return self._said(block, "thinking", _raw(start, "thinking"))
        return self._said(block, "text", _raw(start, "text"))

    def _grow(self, block: _Block, delta: Mapping[str, Any]) -> StreamEvent | None:
        kind = _text(delta, "type")
        if kind == "signature_delta":
            block.signature += _text(delta, "signature")
        elif kind == "text_delta":
            return self._said(block, "text", _raw(delta, "text"))
        elif kind == "thinking_delta":
            return self._said(block, "thinking", _raw(delta, "thinking"))
        elif kind == "input_json_delta" and block.kind == "tool_use":
            piece = block.add(_raw(delta, "partial_json"))
            return ToolCallDelta(index=block.call, arguments=piece) if piece else None
        return None

    def _said(self, block: _Block, kind: str, text: str) -> StreamEvent | None:
        """Keep a piece of text. What stands in a block of another kind is not known, and passed over."""
        shown = block.add(text) if block.kind == kind else ""
        if not shown:
            return None
        return TextDelta(text=shown) if kind == "text" else ThinkingDelta(text=shown)

    def _end(self) -> None:
        if not self._begun or not self._stop:
            raise broken(self.provider, "the answer ends without saying why")
        if not all(block.closed for block in self._blocks.values()):
            raise broken(self.provider, "the answer ends within a block")
        self._ended = True

    def _index(self, event: Mapping[str, Any]) -> int:
        index = event.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            raise broken(self.provider, "an event of the answer does not say which block it is about")
        return index

    def _opened(self, event: Mapping[str, Any]) -> _Block:
        block = self._blocks.get(self._index(event))
        if block is None or block.closed:
            raise broken(self.provider, "an event of the answer is about a block that is not open")
        return block

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Take over counts. Those of a later event are for the whole answer, and replace those of an earlier one."""
        details = _table(usage, "output_tokens_details")
        counts = {name: usage.get(theirs) for name, theirs in _USAGE.items()}
        counts["reasoning"] = details.get("thinking_tokens")
        for name, count in counts.items():
            if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
                self._usage[name] = count

    def _used(self) -> Usage:
        return Usage.model_validate(self._usage)

    def _stop_reason(self) -> StopReason:
        stop = _STOPS.get(self._stop, "end")
        if stop in {"end", "tool_calls"}:
            return "tool_calls" if self._calls else "end"
        return stop

    def _part(self, block: _Block) -> TextPart | ThinkingPart | ToolCallPart | None:
        if block.kind == "text":
            return TextPart(text=block.text) if block.text else None
        if block.kind == "thinking":
            return ThinkingPart(text=block.text, signature=block.signature or None)
        if block.kind == "redacted_thinking":
            return ThinkingPart(signature=_text(block.start, "data"), redacted=True)
        return _tool_call(block) if block.kind == "tool_use" else None


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read what is left if it comes at once: the connection can then be used again."""
    with anyio.move_on_after(_DRAIN_SECONDS), suppress(ProviderError):
        async for _ in chunks:
            pass


def _tool_call(block: _Block) -> ToolCallPart:
    call_id, name = _text(block.start, "id"), _text(block.start, "name")
    try:
        arguments = parse_object(block.text) if block.text.strip() else _table(block.start, "input")
        return ToolCallPart(id=call_id, name=name, arguments=dict(arguments))
    except ValidationError:
        problem = "they are no JSON object"
    except ValueError as error:
        problem = str(error)
    return ToolCallPart(id=call_id, name=name, problem=f"the arguments can't be read: {problem}")


def _table(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def _text(event: Mapping[str, Any], name: str) -> str:
    return whole_characters(_raw(event, name))


def _raw(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""
