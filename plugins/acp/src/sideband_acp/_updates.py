"""The updates of a session that wait to be sent, in order, however slowly the client reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)
from attrs import define, field

from ._text import block

Update = (
    AgentMessageChunk
    | AgentPlanUpdate
    | AgentThoughtChunk
    | AvailableCommandsUpdate
    | ConfigOptionUpdate
    | CurrentModeUpdate
    | SessionInfoUpdate
    | ToolCallProgress
    | ToolCallStart
    | UsageUpdate
    | UserMessageChunk
)


@define
class _Item:
    """An update and about how many characters it has."""

    update: Update
    size: int


@define(eq=False)
class Updates:
    """The updates of one session.

    Args:
        send: sends one.
        most: the maximum number of characters that wait.
        on_excess: called once more of them wait.
    """

    _send: Callable[[Update], Awaitable[None]]
    most: int
    on_excess: Callable[[], None]
    _waiting: deque[_Item] = field(factory=deque, init=False, repr=False)
    _size: int = field(default=0, init=False)
    _sending: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)
    _news: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _sent: anyio.Event = field(factory=anyio.Event, init=False, repr=False)

    def put(self, update: Update) -> None:
        """Send an update once those before it are sent. A text is joined with the one before it."""
        if self._ended:
            return
        item = _Item(update, _size(update))
        last = self._waiting[-1] if self._waiting else None
        joined = _joined(last, item) if last is not None else None
        if last is not None and joined is not None:
            self._size -= last.size
            self._waiting.pop()
            item = joined
        self._waiting.append(item)
        self._size += item.size
        self._news.set()
        if self._size > self.most:
            self.end()
            self.on_excess()

    async def sent(self) -> None:
        """Return once all updates so far are sent, or cannot be."""
        while (self._waiting or self._sending) and not self._ended:
            await self._sent.wait()

    async def send(self) -> None:
        """Send updates until the client leaves."""
        try:
            while not self._ended:
                while self._waiting:
                    item = self._waiting.popleft()
                    self._size -= item.size
                    self._sending = True
                    await self._send(item.update)
                    self._sending = False
                self._note_sent()
                self._news = anyio.Event()
                await self._news.wait()
        except ConnectionError:
            return
        finally:
            self.end()

    def end(self) -> None:
        """Send no more."""
        self._ended = True
        self._waiting.clear()
        self._news.set()
        self._note_sent()

    def _note_sent(self) -> None:
        self._sent.set()
        self._sent = anyio.Event()


def _joined(last: _Item, item: _Item) -> _Item | None:
    """Return two texts as one, or the newer of two outputs of a tool call; ``None`` if both must be sent."""
    before, after = last.update, item.update
    if isinstance(before, AgentMessageChunk | AgentThoughtChunk) and type(before) is type(after):
        first, second = _text_of(before), _text_of(after)
        if first is None or second is None or before.message_id != after.message_id:
            return None
        return _Item(before.model_copy(update={"content": block(first + second)}), last.size + item.size)
    if isinstance(before, ToolCallProgress) and isinstance(after, ToolCallProgress):
        is_output = before.status is None and after.status is None
        return item if is_output and before.tool_call_id == after.tool_call_id else None
    return None


def _text_of(update: Update) -> str | None:
    content = getattr(update, "content", None)
    return content.text if isinstance(content, TextContentBlock) else None


def _size(update: Update) -> int:
    text = _text_of(update)
    return len(update.model_dump_json()) if text is None else len(text)
