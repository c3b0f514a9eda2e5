"""How results of commands are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ENDS = {
    "timeout": "killed because its time was over",
    "output": "killed because it printed too much",
    "stop": "stopped",
}


def text_of(content: str | bytes) -> str:
    """Return output as text; what is not UTF-8 is replaced."""
    return content if isinstance(content, str) else content.decode("utf-8", "replace")


def state_of(found: Mapping[str, Any]) -> str:
    """Return the state of a program in the background.

    Example:
        >>> state_of({"running": False, "end": "exit", "exit_code": 1, "signal": None, "seconds": 2.04})
        'exit code 1 after 2.0 s'
    """
    after = f"after {found['seconds']:.1f} s"
    if found["running"]:
        return f"still running {after}"
    if found["end"] in _ENDS:
        return f"{_ENDS[found['end']]} {after}"
    return f"{ended(found)} {after}"


def ended(found: Mapping[str, Any]) -> str:
    """Return how a program has ended by itself."""
    return f"killed by {found['signal']}" if found["signal"] else f"exit code {found['exit_code']}"


def with_note(text: str, note: str) -> str:
    r"""Return output with a last line about it.

    Example:
        >>> with_note("done", "exit code 0"), with_note("", "exit code 0")
        ('done\n[exit code 0]', '[no output; exit code 0]')
    """
    if not text:
        return f"[no output; {note}]"
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{note}]"
