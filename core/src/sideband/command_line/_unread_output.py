"""Notice that the output of a command is a pipe whose reader has closed it, as ``head`` does."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any


class UnreadOutput:
    """The state of the output.

    Args:
        end: called when the reader has closed a pipe, once for each write.
    """

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end
        self._thread = threading.get_ident()
        self.closed = False

    def write(self, error: OSError) -> None:
        """Handle a failed write. In another thread, it is an error: ``end`` need not be safe to call there."""
        self.closed = True
        if threading.get_ident() != self._thread:
            raise error
        self._end()


class _Pipe(FileIO):
    """A pipe that accepts data without a reader. An error would end only the callback that writes, not the command."""

    def __init__(self, descriptor: int, output: UnreadOutput) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._output = output

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self._output.write(error)
            return len(data)


@contextmanager
def unread_output(end: Callable[[], object]) -> Iterator[UnreadOutput]:
    """Call ``end`` when the command writes to a pipe whose reader has closed it, instead of raising an error."""
    output = UnreadOutput(end)
    with ExitStack() as streams:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, TextIOWrapper) and _is_pipe(stream):
                streams.enter_context(_replaced(name, stream, output))
        yield output


@contextmanager
def _replaced(name: str, stream: TextIOWrapper, output: UnreadOutput) -> Iterator[None]:
    stream.flush()
    pipe = TextIOWrapper(
        BufferedWriter(_Pipe(stream.fileno(), output)),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    setattr(sys, name, pipe)
    try:
        yield
    finally:
        setattr(sys, name, stream)
        pipe.flush()


def _is_pipe(stream: TextIOWrapper) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # not a file, or closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
