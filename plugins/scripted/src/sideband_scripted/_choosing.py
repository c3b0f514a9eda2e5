"""Which turn of a script comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sideband.providers import ModelRequest

from ._errors import ScriptEnded

_SHOWN = 60
_Turn = TypeVar("_Turn")


def spoken(request: ModelRequest) -> int:
    """How often the model has spoken in this conversation."""
    return sum(message.role == "assistant" for message in request.messages)


def turn_at(provider: str, turns: Sequence[_Turn], number: int, request: ModelRequest, *, repeat: bool) -> _Turn:
    """A turn of a script, by its number.

    Args:
        provider: who says so if there is none.
        turns: the script.
        number: from 0.
        request: what is asked.
        repeat: whether the script begins again at its end.

    Raises:
        ScriptEnded: there is no such turn.
    """
    if repeat and turns:
        return turns[number % len(turns)]
    if number < len(turns):
        return turns[number]
    last = request.messages[-1].text if request.messages else ""
    raise ScriptEnded(provider, len(turns), last[:_SHOWN])
