"""A chat command, and its interface to the chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

if TYPE_CHECKING:
    from sideband_agent import Agent, RunResult

    from ._frontend import ChatFrontend


class ChatControl(Protocol):
    """The interface of a chat to its chat commands."""

    @property
    def agent(self) -> Agent:
        """The agent of the chat."""

    @property
    def frontend(self) -> ChatFrontend:
        """The frontend of the chat."""

    @property
    def is_working(self) -> bool:
        """Whether a run is in progress."""

    def help(self) -> str:
        """Return all chat commands as a table."""

    async def send(self, text: str) -> None:
        """Send a message to the model, or queue it for the next step if a run is in progress."""

    async def begin(self, work: Callable[[], Awaitable[RunResult | None]]) -> None:
        """Start a run while the user can continue to type."""


@frozen
class RegisteredChatCommand:
    """A built-in chat command or one of a plugin.

    Attributes:
        name: the name, without the slash.
        summary: one line for ``/help``.
        run: called with the chat and the text after the name; returns the text to show, if any.
        usage: the arguments, for ``/help``.
        plugin: the plugin that defines it; empty for a built-in one.
    """

    name: str
    summary: str
    run: Callable[[ChatControl, str], Awaitable[str | None]] = field(repr=False)
    usage: str = ""
    plugin: str = ""
