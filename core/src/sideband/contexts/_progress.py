"""Emit the output of a tool or an op while it runs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from typing import Any, Protocol

from anyio.lowlevel import checkpoint

REPORTS = "progress"
"""The stream of the reports of a call."""

_STREAM = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")


class ProgressWriter(Protocol):
    """Takes the output of one tool or op. All methods may be called from any thread, and never wait."""

    def write(self, text: str, stream: str) -> None:
        """Add a text to a stream."""

    def close(self) -> None:
        """Take no more texts."""


current_writer: ContextVar[ProgressWriter | None] = ContextVar("sideband_progress_writer", default=None)
"""What takes the output of the running tool or op; ``None`` if nothing observes it."""


class _Checkpoint:
    """Lets other tasks run when it is awaited. Sync code ignores it."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, None]:
        return checkpoint().__await__()


_CHECKPOINT = _Checkpoint()


def emit_tool_progress(text: str, stream: str = "stdout") -> Awaitable[None]:
    """Emit output of the running tool or op to observers of the call, without waiting for them.

    It can be called in sync and async code, also in threads of ``anyio.to_thread.run_sync``. Without an observer, and
    outside a tool or an op, it does nothing. The text is redacted, is never stored, and is not sent to the model.

    Args:
        text: any part of the output. Parts are joined, so a line may arrive in several events.
        stream: the name of the stream, such as ``stdout``, ``stderr`` or ``info``: at most 32 lower-case letters,
            digits and ``_``. A call has at most 16 streams; the texts of further ones are in the stream ``other``.

    Returns:
        An awaitable. Async code may await it, so that observers run before a long computation continues.

    Raises:
        TypeError: if the text is not a ``str``.
        ValueError: if the name of the stream is invalid.

    Example:
        >>> from sideband.tools import emit_tool_progress
        >>> _ = emit_tool_progress("compiling", stream="info")
    """
    if not isinstance(text, str):
        raise TypeError(f"`text` must be a str, got a {type(text).__name__}")
    if not isinstance(stream, str) or not _STREAM.match(stream) or stream == REPORTS:
        raise ValueError(
            f"invalid name of a stream: {stream!r}; use a name such as `stdout` or `info`, of at most 32 lower-case "
            f"letters, digits and `_`, but not `{REPORTS}`"
        )
    writer = current_writer.get()
    if writer is not None and text:
        writer.write(text, stream)
    return _CHECKPOINT


def emit_tool_progress_closed() -> None:
    """End the output of the running tool or op. What it emits later is ignored.

    If a tool calls it, the streams of its call are closed now. They are closed anyway when the call ends.

    Example:
        >>> from sideband.tools import emit_tool_progress_closed
        >>> emit_tool_progress_closed()
    """
    writer = current_writer.get()
    if writer is not None:
        writer.close()
