"""The standard streams of a command, which may be closed, full, or a pipe that is read no longer."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path


def open_streams() -> None:
    """Make the standard streams safe: replace closed ones by the null device, and escape unencodable characters."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  open until the process exits
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Flush the output. A stream that fails is redirected to the null device, so that Python's exit prints no error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def output_is_closed() -> bool:
    """Return whether the reader of the output has closed the pipe. Other broken pipes are errors."""
    import select

    output = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            output.register(stream.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in output.poll(0))
