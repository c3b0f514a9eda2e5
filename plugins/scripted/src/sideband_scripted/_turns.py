"""What a script is made of: one turn for each time that the model is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from attrs import field, frozen
from sideband.messages import StopReason, ToolCallPart, Usage
from sideband.providers import ModelRequest


@frozen
class Turn:
    """One answer.

    Args:
        text: what the model says.
        thinking: what it thinks before.
        tool_calls: the tools that it asks for, each ``(name, arguments)``, ``(name, arguments, id)``, or a
            ``ToolCallPart``. Without an id each gets one that is new in the conversation.
        usage: what the call uses, in tokens; ``None``: an estimate, four characters for a token.
        stop: why it ends; ``None``: ``tool_calls`` if there are any, else ``end``.

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
        """Why it ends."""
        return self.stop or ("tool_calls" if self.tool_calls else "end")


@frozen
class Broken:
    """A stream that breaks off.

    Args:
        after: how many deltas come before; at most those that ``turn`` has.
        turn: what would have been said.
    """

    after: int = 1
    turn: Turn | str = "This answer is never going to be complete."


@frozen(eq=False)
class Hang:
    """A model that does not answer.

    Args:
        after: how many deltas come before it falls silent.
        turn: what they are of.

    Attributes:
        reached: set as soon as it is silent. A test waits for it before it aborts.
    """

    after: int = 0
    turn: Turn | str = "This answer is never going to be complete."
    reached: anyio.Event = field(factory=anyio.Event, init=False)


_Played = str | Turn | Broken | Hang | Exception
ScriptedTurn = _Played | Callable[[ModelRequest], _Played | Awaitable[_Played]]
"""A text, a ``Turn``, a ``Broken``, a ``Hang``, an exception to raise, or what makes one of them from the request."""
