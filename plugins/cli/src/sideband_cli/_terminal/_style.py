"""Text styles, if the stream supports them."""

from __future__ import annotations

import os
import re
from typing import TextIO

from ._highlighting import diff_style

_QUOTED = re.compile(r"([^│]{0,20}│ )(.+)\Z")


def has_colours(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that supports escape sequences, and ``NO_COLOR`` is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def dim(text: str, stream: TextIO) -> str:
    """Return dimmed text if the stream supports it. The text must not contain control characters."""
    return f"\x1b[2m{text}\x1b[22m" if text and has_colours(stream) else text


def with_diff_colors(line: str, stream: TextIO) -> str:
    """Color a line of a difference that is quoted behind a margin, if the stream supports it.

    Args:
        line: a line without control characters.
        stream: where it is shown.
    """
    found = _QUOTED.match(line) if has_colours(stream) else None
    style = diff_style(found[2]) if found else ""
    return f"{found[1]}\x1b[{style}m{found[2]}\x1b[0m" if found and style else line
