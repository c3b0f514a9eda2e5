"""Parser for server-sent events, the format in which model servers stream responses.

EventStreamError(ValueError)    the bytes are not a valid event stream
└── EventStreamCut              the stream ends within an event
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

from attrs import frozen

_MAX_EVENT_BYTES = 16 << 20


@frozen
class ServerSentEvent:
    """One event.

    Attributes:
        event: the event type; ``message`` if the server does not set one.
        data: the data lines, joined with newlines.

    Example:
        >>> ServerSentEvent("ping", "{}")
        ServerSentEvent(event='ping', data='{}')
    """

    event: str
    data: str


class EventStreamError(ValueError):
    """The bytes are not a valid event stream: not UTF-8, an event that is too long, or a truncated last event.

    Example:
        >>> async def texts(access, reply):
        ...     try:
        ...         return [event.data async for event in read_events(reply.chunks)]
        ...     except EventStreamError as error:
        ...         raise broken(access, str(error)) from error
    """


class EventStreamCut(EventStreamError):
    """The stream ended within an event. All earlier events were complete.

    Example:
        >>> str(EventStreamCut())
        'the stream ends within an event'
    """

    def __init__(self) -> None:
        super().__init__("the stream ends within an event")


async def read_events(
    chunks: AsyncIterable[bytes], *, longest: int = _MAX_EVENT_BYTES
) -> AsyncGenerator[ServerSentEvent, None]:
    r"""Yield the events in a byte stream, each as soon as it is complete.

    Lines may end with ``\r\n``, ``\n`` or ``\r``. Comments and unknown fields are ignored. The running time is linear
    in the number of bytes, however they are split into chunks.

    Args:
        chunks: the bytes, split anywhere. The caller must close the iterator.
        longest: the maximum size of an event in bytes.

    Raises:
        EventStreamError: if the bytes are not a valid event stream.
        EventStreamCut: if the stream ends within an event.

    Example:
        >>> async def texts(reply):
        ...     return [event.data async for event in read_events(reply.chunks)]
    """
    lines, events = _EventLines(longest), _EventBuilder(longest)
    async for chunk in chunks:
        for line in lines.feed(chunk):
            if (event := events.feed(line)) is not None:
                yield event
    if lines.begun or events.begun:
        raise EventStreamCut


class _EventLines:
    r"""Splits bytes into lines. A ``\r`` at the end of a chunk may be the first half of a ``\r\n``."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._skip_newline = False

    @property
    def begun(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._pieces)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this chunk."""
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
            raise EventStreamError(f"a line exceeds {self._longest:,} bytes")
        if piece:
            self._pieces.append(piece)


class _EventBuilder:
    """Assembles lines into events."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._first = True

    @property
    def begun(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._data or self._name)

    def feed(self, line: bytes) -> ServerSentEvent | None:
        """Return the event that ends with this line, if any."""
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
            raise EventStreamError(f"an event exceeds {self._longest:,} bytes")
        return None

    def _end(self) -> ServerSentEvent | None:
        event = ServerSentEvent(self._name or "message", "\n".join(self._data)) if self._data else None
        self._name, self._data, self._size = "", [], 0
        return event


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise EventStreamError(f"a line is not valid UTF-8: {error.reason}") from None
