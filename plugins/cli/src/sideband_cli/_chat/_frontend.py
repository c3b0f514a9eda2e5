"""Where a chat takes place: a terminal, or lines that are piped in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .._agent._activity import Sink

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from .._terminal._questions import Ask


class ChatFrontend(Sink, Protocol):
    """Reads what the user types, and shows what the chat says."""

    @property
    def takes_turns(self) -> bool:
        """Whether each message is answered before the next is read."""

    @property
    def ask(self) -> Ask | None:
        """Puts a question to the user; ``None`` if nobody can be asked."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Entered while the chat goes on."""

    async def read(self) -> str:
        """The next line; raises ``EOFError`` at the end."""

    def leave(self) -> None:
        """Let ``read`` raise."""

    def say(self, text: str) -> None:
        """Show what was asked for."""

    def refresh(self) -> None:
        """Show the status as it is now."""

    def suggest(self, text: str) -> None:
        """Put a text where the user can edit and send it."""
