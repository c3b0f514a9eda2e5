"""A chat command, and what it may do with the chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

if TYPE_CHECKING:
    from sideband_agent import Agent, RunResult

    from ._frontend import ChatFrontend


class ChatControl(Protocol):
    """The chat, as its chat commands see it."""

    @property
    def agent(self) -> Agent:
        """The agent that the user talks with."""

    @property
    def frontend(self) -> ChatFrontend:
        """Where the chat takes place."""

    @property
    def is_working(self) -> bool:
        """Whether a run is under way."""

    def help(self) -> str:
        """Return all chat commands as a table."""

    async def send(self, text: str) -> None:
        """Say something to the model: now, or, while it works, before its next step."""

    async def begin(self, work: Callable[[], Awaitable[RunResult | None]]) -> None:
        """Start a run, and let the user type meanwhile."""


@frozen
class RegisteredChatCommand:
    """One chat command, of the chat itself or of a plugin.

    Attributes:
        name: what follows the slash.
        summary: one line for ``/help``.
        run: does it, with the chat and the text after the name; returns what is shown.
        usage: what may follow the name.
        plugin: the plugin that it comes from; empty for those of the chat itself.
    """

    name: str
    summary: str
    run: Callable[[ChatControl, str], Awaitable[str | None]] = field(repr=False)
    usage: str = ""
    plugin: str = ""
