"""Parser for calls with a tag for each argument. Values are text; their types are those of the tool's parameters."""

from __future__ import annotations

import re
from typing import Any

from attrs import frozen

from ._calls import OfferedTools, ParsedCalls, UnusableCall, checked_call
from ._typed_values import json_or_text, property_schema, typed_value


@frozen
class TaggedValues:
    """A format of this kind.

    Attributes:
        argument: the opening of an argument. The group ``key`` is its name; the groups ``string`` and ``type``, if
            present, declare whether it is a string.
        value_end: the end of a value, with a lookahead for what may follow it, since values are not escaped.
        call_end: the end of the call.
    """

    argument: re.Pattern[str]
    value_end: re.Pattern[str]
    call_end: re.Pattern[str]

    def parse(self, text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
        """Parse a call.

        Raises:
            UnusableCall: if it is incomplete or cannot be used.
        """
        schema = tools.get(opening["name"], {})
        arguments, values, position = dict[str, Any](), list[tuple[int, int]](), opening.end()
        while (closed := self.call_end.match(text, position)) is None:
            argument = self.argument.match(text, position)
            end = self.value_end.search(text, argument.end()) if argument else None
            if argument is None or end is None or argument["key"] in arguments:
                raise UnusableCall
            value = text[argument.end() : end.start()]
            arguments[argument["key"]] = _converted(value, argument, schema)
            values.append((argument.end(), end.start()))
            position = end.end()
        call = checked_call(opening["name"], arguments, tools)
        return ParsedCalls(closed.end(), (call,), tuple(values))


def _converted(value: str, argument: re.Match[str], schema: Any) -> Any:
    groups = argument.groupdict()
    declared = groups.get("string") or groups.get("type")
    if declared is None:
        return typed_value(value, property_schema(schema, argument["key"], schema), schema)
    return value if declared in ("true", "string") else json_or_text(value)
