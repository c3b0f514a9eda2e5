"""The places in a plugin's code that caused its load to fail."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sideband.plugins import PluginError

_MACHINERY = frozenset({"_frozen_importlib", "_frozen_importlib_external", "anyio", "importlib", "sideband"})


def error_data(error: PluginError) -> dict[str, Any] | None:
    """Return the exception that code of a plugin raised: its type and text, file, line and traceback.

    Returns:
        ``None`` if the plugin was refused without an exception of its own.
    """
    import traceback

    from sideband import SidebandError

    cause = error.__cause__
    if cause is None or isinstance(cause, SidebandError):
        return None
    trace = _without_machinery(cause.__traceback__)
    file, line = _place(trace)
    if isinstance(cause, SyntaxError):
        file, line = cause.filename, cause.lineno
    text = "".join(traceback.format_exception(type(cause), cause, trace)).rstrip()
    return {"type": type(cause).__name__, "message": str(cause), "file": file, "line": line, "traceback": text}


def _without_machinery(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins in the plugin."""
    while trace is not None and _is_machinery(trace):
        trace = trace.tb_next
    return trace


def _place(trace: TracebackType | None) -> tuple[str | None, int | None]:
    """Return the last file and line outside of sideband, whose decorators raise errors about the plugin's code."""
    place: tuple[str | None, int | None] = (None, None)
    while trace is not None:
        if not _is_machinery(trace):
            place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


def _is_machinery(trace: TracebackType) -> bool:
    return trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] in _MACHINERY
