"""Reads server-sent events, the form in which servers of models stream their answers."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from attrs import frozen

__all__ = ["EventStreamError", "ServerSentEvent", "read_events"]

_LONGEST_EVENT = 16 << 20


@frozen
class ServerSentEvent:
    """One event.

    Attributes:
        event: its type; ``message`` if the server named none.
        data: its lines, joined.
    """

    event: str
    data: str


class EventStreamError(ValueError):
    """The bytes are no stream of events: they are no UTF-8, an event is too long, or the last one is cut off."""


async def read_events(chunks: AsyncIterable[bytes], *, longest: int = _LONGEST_EVENT) -> AsyncIterator[ServerSentEvent]:
    r"""The events in a stream of bytes, each as soon as it is complete.

    Line ends may be ``\r\n``, ``\n`` or ``\r``; comments and unknown fields are passed over.

    Args:
        chunks: bytes, cut anywhere.
        longest: the most bytes that one event may have.

    Raises:
        EventStreamError: it is no such stream, or ends within an event.

    Example:
        >>> async def texts(response):
        ...     return [event.data async for event in read_events(response.aiter_bytes())]
    """
    lines = _Lines(longest)
    name, data = "", list[str]()
    size = 0
    first = True
    async for chunk in chunks:
        for raw in lines.feed(chunk):
            line = _decoded(raw)
            if first:
                line, first = line.removeprefix("\ufeff"), False
            if not line:
                if data:
                    yield ServerSentEvent(name or "message", "\n".join(data))
                name, data, size = "", [], 0
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            size += len(raw)
            if size > longest:
                raise EventStreamError(f"an event has more than {longest:,} bytes")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
    if data or lines.rest:
        raise EventStreamError("the stream ends within an event")


class _Lines:
    r"""Cuts bytes into lines. A ``\r`` at the end of a chunk may be half of a ``\r\n``."""

    def __init__(self, longest: int) -> None:
        self.rest = b""
        self._longest = longest
        self._skip_newline = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._skip_newline and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_newline = False
        self._skip_newline = self._skip_newline or chunk.endswith(b"\r")
        *lines, self.rest = (self.rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if len(self.rest) > self._longest:
            raise EventStreamError(f"a line has more than {self._longest:,} bytes")
        return lines


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise EventStreamError(f"a line is no UTF-8: {error.reason}") from None
