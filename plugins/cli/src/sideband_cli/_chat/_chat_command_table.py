"""The table of a chat's commands: lookup by name, execution and ``/help``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from sideband import SidebandError

from .._errors import ChatCommandUnknown
from .._terminal._tables import format_table
from ._chat_command import ChatControl, RegisteredChatCommand

if TYPE_CHECKING:
    from sideband_agent import Agent


class ChatCommandTable:
    """Chat commands by name. Built-in ones cannot be replaced; a name that two plugins use is left out.

    Args:
        own: the built-in chat commands.
        added: the chat commands of plugins.

    Attributes:
        problems: the chat commands that were left out, with the reasons.
    """

    def __init__(self, own: Iterable[RegisteredChatCommand] = (), added: Iterable[RegisteredChatCommand] = ()) -> None:
        self._by_name = {one.name: one for one in own}
        by_name: dict[str, list[RegisteredChatCommand]] = {}
        for one in added:
            by_name.setdefault(one.name, []).append(one)
        self.problems: list[str] = []
        for name, found in sorted(by_name.items()):
            self._add(name, found)

    def _add(self, name: str, found: list[RegisteredChatCommand]) -> None:
        plugins = " and ".join(f"`{one.plugin}`" for one in found)
        if name in self._by_name:
            self.problems.append(f"ignoring the command `/{name}` of {plugins}: the name is built in")
        elif len(found) > 1:
            self.problems.append(f"ignoring the command `/{name}`: defined by {plugins}")
        else:
            self._by_name[name] = found[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        return tuple(sorted(self._by_name))

    @property
    def summaries(self) -> list[tuple[str, str]]:
        """The names with their summaries, sorted."""
        return [(name, one.summary) for name, one in sorted(self._by_name.items())]

    def has(self, line: str) -> bool:
        """Return whether the command of a line is known."""
        return line.removeprefix("/").partition(" ")[0] in self._by_name

    async def run(self, chat: ChatControl, line: str) -> str | None:
        """Run the command of a line such as ``/name the stars``.

        Raises:
            ChatCommandUnknown: if the command is unknown.
        """
        name, _, argument = line.removeprefix("/").partition(" ")
        found = self._by_name.get(name)
        if found is None:
            raise ChatCommandUnknown(name, self._by_name)
        return await found.run(chat, argument.strip())

    def help(self) -> str:
        """Return all chat commands as a table."""
        rows = [
            [f"/{one.name} {one.usage}".rstrip(), one.summary + (f" ({one.plugin})" if one.plugin else "")]
            for _, one in sorted(self._by_name.items())
        ]
        return format_table(["command", "description"], rows, wrapped=True)


async def plugin_chat_commands(agent: Agent, channel: str = "cli") -> list[RegisteredChatCommand]:
    """Return the chat commands of plugins."""
    from sideband.hooks import ChatCommands

    event = ChatCommands(channel)
    return [
        RegisteredChatCommand(
            name=found.value.name,
            summary=found.value.summary,
            run=_sent(found.value.name)
            if found.value.run is None
            else _bound(found.plugin, found.value.run, agent.hooks.context_of(found.plugin, event)),
            usage=found.value.usage,
            plugin=found.plugin,
        )
        for found in await agent.hooks.collect(event)
    ]


def _bound(
    plugin: str, run: Callable[[str, Any], Awaitable[str | None]], ctx: Any
) -> Callable[[ChatControl, str], Awaitable[str | None]]:
    async def bound(_: ChatControl, argument: str) -> str | None:
        try:
            return await run(argument, ctx)
        except SidebandError:
            raise
        except Exception as error:
            raise SidebandError(f"the command failed: {type(error).__name__}: {error}", plugin=plugin) from error

    return bound


def _sent(name: str) -> Callable[[ChatControl, str], Awaitable[str | None]]:
    """Return what sends a command as a message, which its plugin replaces at the beginning of a run."""

    async def sent(chat: ChatControl, argument: str) -> None:
        line = f"/{name} {argument}".rstrip()
        if chat.is_working:
            chat.agent.follow_up(line)
            chat.frontend.line("queued for the end of this run")
        else:
            await chat.send(line)

    return sent
