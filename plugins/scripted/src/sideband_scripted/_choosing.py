"""Choose the next turn of a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sideband.providers import ModelRequest

from ._errors import ScriptEnded

_SHOWN = 60
_Turn = TypeVar("_Turn")


def answer_count(request: ModelRequest) -> int:
    """Return the number of assistant messages in the conversation."""
    return sum(message.role == "assistant" for message in request.messages)


def turn_at(provider: str, turns: Sequence[_Turn], number: int, request: ModelRequest, *, repeat: bool) -> _Turn:
    """Return a turn of a script by its number.

    Args:
        provider: the name of the provider, for the error.
        turns: the script.
        number: the number of the turn, from 0.
        request: the request, for the error.
        repeat: whether the script starts again at its end.

    Raises:
        ScriptEnded: if the script has no such turn.
    """
    if repeat and turns:
        return turns[number % len(turns)]
    if number < len(turns):
        return turns[number]
    last = request.messages[-1].text if request.messages else ""
    raise ScriptEnded(provider, len(turns), last[:_SHOWN])
