"""Parser for calls whose name is part of the opening and whose arguments are a JSON object."""

from __future__ import annotations

import re
from collections.abc import Callable

from ._calls import OfferedTools, ParsedCalls, UnusableCall, checked_call
from ._json_calls import decode_object


def named_json(closing: re.Pattern[str]) -> Callable[[str, re.Match[str], OfferedTools], ParsedCalls]:
    """Return the parser of calls with this closing. The group ``name`` of the opening is the name of the tool."""

    def parse(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
        arguments, end = decode_object(text, opening.end())
        if (closed := closing.match(text, end)) is None:
            raise UnusableCall
        return ParsedCalls(closed.end(), (checked_call(opening["name"], arguments, tools),))

    return parse
