"""Whether a stream shows colours, and the one that is used."""

from __future__ import annotations

import os
from typing import TextIO


def has_colours(stream: TextIO) -> bool:
    """Whether escape sequences mean something to whoever reads ``stream``, and are wanted."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def dim(text: str, stream: TextIO) -> str:
    """Text that stands back behind other text, where that can be shown. It must be clean already."""
    return f"\x1b[2m{text}\x1b[22m" if text and has_colours(stream) else text
