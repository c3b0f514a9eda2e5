"""Text styles, if the stream supports them."""

from __future__ import annotations

import os
from typing import TextIO


def has_colours(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that supports escape sequences, and ``NO_COLOR`` is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def dim(text: str, stream: TextIO) -> str:
    """Return dimmed text if the stream supports it. The text must not contain control characters."""
    return f"\x1b[2m{text}\x1b[22m" if text and has_colours(stream) else text
