"""What a server offers, what the user accepted of it, and how the two differ."""

from ._definitions import definitions_of
from ._differences import MAX_LINES, differences
from ._pins import Pin, Pins
from ._tool_names import tool_names, word_of

__all__ = ["MAX_LINES", "Pin", "Pins", "definitions_of", "differences", "tool_names", "word_of"]
