"""The turns of a script, one for each model call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from attrs import field, frozen
from sideband.messages import StopReason, ToolCallPart, Usage
from sideband.providers import ModelRequest


@frozen
class Turn:
    """An answer of the model.

    Args:
        text: its text.
        thinking: the thinking before the text.
        tool_calls: its tool calls, each ``(name, arguments)``, ``(name, arguments, id)``, or a ``ToolCallPart``.
            Without an id, a call gets one that is unique in the conversation.
        usage: the usage of the call in tokens; estimated at four characters per token if ``None``.
        stop: the reason why it ends; if ``None``, ``tool_calls`` if there are any, otherwise ``end``.

    Example:
        >>> Turn(tool_calls=[("github__stars", {"repo": "owner/name"})]).stop_reason
        'tool_calls'
    """

    text: str = ""
    thinking: str = ""
    tool_calls: Sequence[tuple[Any, ...] | ToolCallPart] = ()
    usage: Usage | None = None
    stop: StopReason | None = None

    @property
    def stop_reason(self) -> StopReason:
        """The reason why it ends."""
        return self.stop or ("tool_calls" if self.tool_calls else "end")


@frozen
class Broken:
    """A stream that breaks off.

    Args:
        after: the number of deltas before the break, at most those of ``turn``.
        turn: the turn that is interrupted.
    """

    after: int = 1
    turn: Turn | str = "This answer is never going to be complete."


@frozen(eq=False)
class Hang:
    """A model that does not answer.

    Args:
        after: the number of deltas before it hangs.
        turn: the turn that is interrupted.

    Attributes:
        reached: set when it begins to wait. A test waits for it before it aborts.
    """

    after: int = 0
    turn: Turn | str = "This answer is never going to be complete."
    reached: anyio.Event = field(factory=anyio.Event, init=False)


_Played = str | Turn | Broken | Hang | Exception
ScriptedTurn = _Played | Callable[[ModelRequest], _Played | Awaitable[_Played]]
"""A text, a ``Turn``, a ``Broken``, a ``Hang``, an exception to raise, or a function that returns one of them."""
