"""The interface of chat frontends: a terminal, or lines from a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .._agent._activity import Sink

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from sideband.messages import ImagePart

    from .._terminal._questions import Ask
    from .._terminal._styled import Fragment


class ChatFrontend(Sink, Protocol):
    """Reads the user's input and shows the chat's output."""

    @property
    def takes_turns(self) -> bool:
        """Whether each message is answered before the next is read."""

    @property
    def ask(self) -> Ask | None:
        """A function that asks the user a question; ``None`` without a terminal."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that is entered for the duration of the chat."""

    async def read(self) -> str:
        """Return the next message or chat command; raise ``EOFError`` at the end of the input."""

    def leave(self) -> None:
        """Make ``read`` raise ``EOFError``."""

    def say(self, text: str) -> None:
        """Show the output of a chat command."""

    def show(self, lines: Iterable[Sequence[Fragment]]) -> None:
        """Show lines with styles, or without them where they are not supported."""

    def refresh(self) -> None:
        """Redraw the status."""

    def ring(self) -> None:
        """Ring the bell of the terminal: it waits for the user."""

    def take_images(self, text: str) -> list[ImagePart]:
        """Return the images that the user pasted into this message, and forget all others."""

    def suggest(self, text: str) -> None:
        """Put a text into the prompt, where the user can edit and send it."""
