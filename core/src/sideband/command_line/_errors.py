"""Report the error that ended a command, as a readable message or as JSON."""

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

# Control characters, and characters that change the text direction and can make a line look like another one.
_CONTROL = {
    code: "�"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if code not in (9, 10)
}


class Interrupted(SidebandError):
    """The user interrupted the command."""

    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("interrupted")


class OperatingSystemFailed(SidebandError):
    """The operating system reported an error that no part of sideband handles."""

    code = "os"

    def __init__(self, error: OSError) -> None:
        paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
        super().__init__(f"{': '.join(paths) or type(error).__name__}: {error.strerror or error}", hint=_hint(paths))


class InternalError(SidebandError):
    """Sideband or a plugin has a bug."""

    code = "internal"

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"internal error: {type(error).__name__}: {error}",
            hint=f"this is a bug, please report it; set {DEBUG}=1 to show the traceback",
        )


def known_error(error: BaseException) -> SidebandError:
    """Return the error that the command line reports for ``error``."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    if isinstance(error, SidebandError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted()
    return OperatingSystemFailed(error) if isinstance(error, OSError) else InternalError(error)


def print_error(known: SidebandError, error: BaseException, *, as_json: bool) -> None:
    """Print ``known``, the error that is reported for ``error``: as JSON to stdout, or as text to stderr.

    Control characters are replaced, so that text from a skill or server cannot move the cursor. Continuation lines are
    indented, so that they cannot look like messages of the host.
    """
    if os.environ.get(DEBUG):
        import traceback  # noqa: PLC0415  slow to import, and rarely needed

        _write_error("".join(traceback.format_exception(error)))
    if as_json:
        # ASCII-only JSON is valid in every encoding of a terminal.
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


def _hint(paths: list[str]) -> str:
    with suppress(SidebandError):
        if any(Path(path).is_relative_to(default_home()) for path in paths):
            return "set SIDEBAND_HOME to a writable folder"
    return ""
