"""Reads server-sent events, the form in which servers of models stream their answers.

EventStreamError(ValueError)    the bytes are not a stream of events
└── EventStreamCut              they end within an event
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

from attrs import frozen

_LONGEST_EVENT = 16 << 20


@frozen
class ServerSentEvent:
    """One event.

    Attributes:
        event: its type; ``message`` if the server does not name one.
        data: its lines, joined.

    Example:
        >>> ServerSentEvent("ping", "{}")
        ServerSentEvent(event='ping', data='{}')
    """

    event: str
    data: str


class EventStreamError(ValueError):
    """The bytes are not a stream of events: they are not UTF-8, an event is too long, or the last one is cut off.

    Example:
        >>> async def answer(access, reply):
        ...     try:
        ...         return [event.data async for event in read_events(reply.chunks)]
        ...     except EventStreamError as error:
        ...         raise broken(access, str(error)) from error
    """


class EventStreamCut(EventStreamError):
    """The stream ended within an event. All events before it were whole.

    Example:
        >>> str(EventStreamCut())
        'the stream ends within an event'
    """

    def __init__(self) -> None:
        super().__init__("the stream ends within an event")


async def read_events(
    chunks: AsyncIterable[bytes], *, longest: int = _LONGEST_EVENT
) -> AsyncGenerator[ServerSentEvent, None]:
    r"""Read the events in a stream of bytes, each as soon as it is complete.

    Line ends may be ``\r\n``, ``\n`` or ``\r``; comments and unknown fields are passed over. The time it takes grows
    with the bytes, however they are cut.

    Args:
        chunks: bytes, cut anywhere. They are not closed here.
        longest: the most bytes that one event may have.

    Raises:
        EventStreamError: the bytes are not such a stream; ``EventStreamCut`` if they end within an event.

    Example:
        >>> async def texts(reply):
        ...     return [event.data async for event in read_events(reply.chunks)]
    """
    lines, events = _LineCutter(longest), _EventBuilder(longest)
    async for chunk in chunks:
        for line in lines.feed(chunk):
            if (event := events.feed(line)) is not None:
                yield event
    if lines.begun or events.begun:
        raise EventStreamCut


class _LineCutter:
    r"""Cuts bytes into lines. A ``\r`` at the end of a chunk may be half of a ``\r\n``."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._skip_newline = False

    @property
    def begun(self) -> bool:
        """Whether a line has begun that has not ended."""
        return bool(self._pieces)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
        if self._skip_newline and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_newline = False
        if chunk.endswith(b"\r"):
            self._skip_newline = True
        first, *others = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._append(first)
        if not others:
            return []
        lines = [b"".join(self._pieces), *others[:-1]]
        self._pieces, self._size = [], 0
        self._append(others[-1])
        return lines

    def _append(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._longest:
            raise EventStreamError(f"a line has more than {self._longest:,} bytes")
        if piece:
            self._pieces.append(piece)


class _EventBuilder:
    """Puts lines together to events."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._first = True

    @property
    def begun(self) -> bool:
        """Whether an event has begun that has not ended."""
        return bool(self._data or self._name)

    def feed(self, line: bytes) -> ServerSentEvent | None:
        """The event that ends with this line, if one does."""
        text = _decoded(line)
        if self._first:
            text, self._first = text.removeprefix("\ufeff"), False
        if not text:
            return self._end()
        field, _, value = text.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        elif field == "event":
            self._name = value.removeprefix(" ")
        else:
            return None
        self._size += len(line)
        if self._size > self._longest:
            raise EventStreamError(f"an event has more than {self._longest:,} bytes")
        return None

    def _end(self) -> ServerSentEvent | None:
        event = ServerSentEvent(self._name or "message", "\n".join(self._data)) if self._data else None
        self._name, self._data, self._size = "", [], 0
        return event


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise EventStreamError(f"a line is no UTF-8: {error.reason}") from None
