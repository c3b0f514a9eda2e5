"""Tool calls that models write as text.

Servers convert the calls of a model to the protocol if they know its format. Otherwise, the calls are in the text.
``_search`` decides which parts of a text are calls, ``_formats`` lists the formats, and each other parser reads one
family of formats.
"""

from ._calls import FoundCall, OfferedTools
from ._search import find_calls

__all__ = ["FoundCall", "OfferedTools", "find_calls"]
