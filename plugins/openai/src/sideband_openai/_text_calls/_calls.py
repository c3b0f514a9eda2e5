"""The calls that parsers find, and the ways in which parsing fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from sideband_model_client import compact, parse_object

OfferedTools = Mapping[str, Mapping[str, Any]]
"""The JSON Schemas of the parameters by the name of the tool."""

NAME = r"(?P<name>[\w.-]{1,128})"
"""The pattern of a tool name."""

END_OF_TURN = (
    r"(?:<\|(?:im_end|end|endoftext|eot|eot_id|eom|eom_id|user|observation)\|>|<\uff5cend▁of▁sentence\uff5c>|</s>)"
)
"""The pattern of the tokens that end an answer, which some servers leave in the text."""


class UnusableCall(Exception):
    """The text contains a call that is malformed, incomplete, ambiguous or of an unknown tool."""


@frozen
class FoundCall:
    """A call found in text.

    Attributes:
        name: the name of the tool.
        arguments: the arguments by name.
    """

    name: str
    arguments: dict[str, Any]


@frozen
class ParsedCalls:
    """A parsed part of a text.

    Attributes:
        end: where it ends.
        calls: the calls in it. Without calls, the part is skipped.
        values: the start and end of each value whose end is known only from the tag after it, because such formats
            escape nothing.
        ends_thought: whether this is the end of reasoning that did not begin in the text.
    """

    end: int
    calls: tuple[FoundCall, ...] = ()
    values: tuple[tuple[int, int], ...] = ()
    ends_thought: bool = False


def checked_call(name: str, arguments: Any, tools: OfferedTools) -> FoundCall:
    """Return the call.

    Args:
        name: the name of the tool.
        arguments: the arguments, or their JSON text.
        tools: the tools that may be called.

    Raises:
        UnusableCall: if the tool is unknown, or JSON cannot represent the arguments as an object.
    """
    if name not in tools:
        raise UnusableCall
    try:
        return FoundCall(name, parse_object(arguments if isinstance(arguments, str) else compact(arguments)))
    except (ValueError, RecursionError):
        raise UnusableCall from None
