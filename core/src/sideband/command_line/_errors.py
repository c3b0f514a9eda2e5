"""Report the error that ended a command, as a readable message or as JSON."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from ..errors import SidebandError, place_of
from ..exit_codes import ExitCode
from ..plugins._objects import unwrapped
from ..state import default_home
from ._output import write_message

DEBUG = "SIDEBAND_DEBUG"


class Interrupted(SidebandError):
    """The user interrupted the command."""

    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("interrupted")


class Terminated(SidebandError, InterruptedError):
    """A signal of another process ended the command. Its effects are recorded."""

    code = "terminated"
    exit_code = ExitCode.TERMINATED

    def __init__(self) -> None:
        super().__init__("terminated", hint="`sideband audit tail` shows the effects of the command")


class OperatingSystemFailed(SidebandError):
    """The operating system reported an error that no part of sideband handles."""

    code = "os"

    def __init__(self, error: OSError) -> None:
        paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
        self.broken_pipe = isinstance(error, BrokenPipeError)
        super().__init__(f"{': '.join(paths) or type(error).__name__}: {error.strerror or error}", hint=_hint(paths))


class InternalError(SidebandError):
    """Sideband or a plugin has a bug."""

    code = "internal"

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"internal error: {type(error).__name__}: {error}",
            hint=f"this is a bug in sideband or in a plugin, please report it; set {DEBUG}=1 to show the traceback",
        )


def known_error(error: BaseException) -> SidebandError:
    """Return the error that the command line reports for ``error``."""
    error = unwrapped(error)
    if isinstance(error, SidebandError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted()
    return OperatingSystemFailed(error) if isinstance(error, OSError) else InternalError(error)


def print_error(known: SidebandError, error: BaseException, *, as_json: bool) -> None:
    """Print ``known``, the error that is reported for ``error``: as JSON to stdout, or as text to stderr.

    The text is rendered, because it may be from a skill or a server, and all lines of a message but the first are
    indented.
    """
    if os.environ.get(DEBUG):
        import traceback

        write_message("".join(traceback.format_exception(error)).rstrip())
    place = place_of(known)
    if as_json:
        # ASCII-only JSON is valid in every encoding of a terminal.
        data = {**known.as_dict(), "raised_at": place} if place else known.as_dict()
        sys.stdout.write(json.dumps({"error": data}, default=str) + "\n")
        return
    raised = getattr(known, "traceback", "")
    if raised:
        write_message(f"  {str(raised).rstrip()}")
    write_message(f"error: {known.message} [{known.code}]")
    if place:
        write_message(f"raised in: {place}")
    if known.hint:
        write_message(f"hint: {known.hint}")


def _hint(paths: list[str]) -> str:
    with suppress(SidebandError):
        if any(Path(path).is_relative_to(default_home()) for path in paths):
            return "set SIDEBAND_HOME to a writable folder"
    return ""
