"""What the command line says about whatever ended a command: one readable message, or the same as data."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ..state import default_home

DEBUG = "SIDEBAND_DEBUG"

# Beside the control characters those that turn the direction of a line, and so can show it as another.
_CONTROL = {
    code: "�"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if code not in (9, 10)
}


class Interrupted(SidebandError):
    """A person ended the command."""

    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("interrupted before it was done")


class OperatingSystemFailed(SidebandError):
    """The operating system refused something that no part of sideband expected it to."""

    code = "os"

    def __init__(self, error: OSError) -> None:
        paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
        super().__init__(f"{': '.join(paths) or type(error).__name__}: {error.strerror or error}", hint=_hint(paths))


class InternalError(SidebandError):
    """A part of sideband, or a plugin, has a defect."""

    code = "internal"

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"internal error: {type(error).__name__}: {error}",
            hint=f"it is a defect: please report it; with {DEBUG}=1 in the environment it shows where it happened",
        )


def known_error(error: BaseException) -> SidebandError:
    """The error that the command line reports for ``error``."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    if isinstance(error, SidebandError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted()
    return OperatingSystemFailed(error) if isinstance(error, OSError) else InternalError(error)


def print_error(known: SidebandError, error: BaseException, *, as_json: bool) -> None:
    """Print ``known``, which stands for ``error``: as data on standard output, else on standard error.

    Without control characters: what a skill or a server says must not move the cursor. Of its lines none begins like
    one of the host's.
    """
    if os.environ.get(DEBUG):
        import traceback  # noqa: PLC0415  slow to import, and rarely needed

        _write_error("".join(traceback.format_exception(error)))
    if as_json:
        # ASCII is JSON in every encoding that a terminal may have.
        sys.stdout.write(json.dumps({"error": known.as_dict()}, default=str) + "\n")
        return
    raised = getattr(known, "traceback", "")
    if raised:
        _write_error(f"  {_indented(str(raised).rstrip())}\n")
    _write_error(f"error: {_indented(known.message)} [{known.code}]\n")
    if known.hint:
        _write_error(f"hint: {_indented(known.hint)}\n")


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _write_error(text: str) -> None:
    sys.stderr.write(text.translate(_CONTROL))


def open_streams() -> None:
    """Make the standard streams safe to use: closed ones lead nowhere, and what an encoding can't say is escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  open as long as the process
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Write what is buffered; what can't be written goes nowhere, so that the interpreter's end is quiet."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _hint(paths: list[str]) -> str:
    with suppress(SidebandError):
        if any(Path(path).is_relative_to(default_home()) for path in paths):
            return "set SIDEBAND_HOME to a folder that you can write to"
    return ""
