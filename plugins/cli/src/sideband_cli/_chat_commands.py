"""What can be asked for with a slash: found by its name, run, and told about in `/help`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from sideband import SidebandError
from sideband.exit_codes import ExitCode

from ._output import format_table

if TYPE_CHECKING:
    from sideband_agent import Agent

__all__ = ["ChatCommandUnknown", "SlashCommand", "SlashCommands", "plugin_commands"]


class ChatCommandUnknown(SidebandError, LookupError):
    """There is no such command; the message names the closest one."""

    code = "chat.command"
    exit_code = ExitCode.USAGE

    def __init__(self, name: str, known: Iterable[str]) -> None:
        close = get_close_matches(name, list(known), 1)
        super().__init__(
            f"there is no command `/{name}`" + (f"; did you mean `/{close[0]}`?" if close else ""),
            hint="`/help` lists them; to say this to the model, begin the message with a space",
        )


@frozen
class SlashCommand:
    """One command.

    Attributes:
        name: what follows the slash.
        summary: one line for the list.
        run: does it, with the text after the name; returns what is shown.
        usage: what may follow the name.
        plugin: the plugin that it comes from; empty for those of the chat itself.
    """

    name: str
    summary: str
    run: Callable[[str], Awaitable[str | None]] = field(repr=False)
    usage: str = ""
    plugin: str = ""


class SlashCommands:
    """Commands by their names. The chat's own can't be replaced; of two plugins with one name, neither gets it.

    Args:
        own: those of the chat itself.
        added: those of plugins.

    Attributes:
        problems: the commands that were left out, and why.
    """

    def __init__(self, own: Iterable[SlashCommand], added: Iterable[SlashCommand] = ()) -> None:
        self._commands = {one.name: one for one in own}
        rivals: dict[str, list[SlashCommand]] = {}
        for one in added:
            rivals.setdefault(one.name, []).append(one)
        self.problems: list[str] = []
        for name, found in sorted(rivals.items()):
            self._add(name, found)

    def _add(self, name: str, found: list[SlashCommand]) -> None:
        plugins = " and ".join(f"`{one.plugin}`" for one in found)
        if name in self._commands:
            self.problems.append(f"the command `/{name}` of {plugins} is left out: the chat has one of that name")
        elif len(found) > 1:
            self.problems.append(f"the command `/{name}` is left out: {plugins} have it")
        else:
            self._commands[name] = found[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        return tuple(sorted(self._commands))

    async def run(self, line: str) -> str | None:
        """Run what a line such as ``/name the stars`` asks for.

        Raises:
            ChatCommandUnknown: there is no such command.
        """
        name, _, argument = line.removeprefix("/").partition(" ")
        command = self._commands.get(name)
        if command is None:
            raise ChatCommandUnknown(name, self._commands)
        return await command.run(argument.strip())

    def help(self) -> str:
        """All commands as a table."""
        rows = [
            [f"/{one.name} {one.usage}".rstrip(), one.summary + (f" ({one.plugin})" if one.plugin else "")]
            for _, one in sorted(self._commands.items())
        ]
        return format_table(["command", "what it does"], rows, wrapped=True)


async def plugin_commands(agent: Agent, channel: str = "cli") -> list[SlashCommand]:
    """The commands that plugins add."""
    from sideband.hooks import ChatCommands

    event = ChatCommands(channel)
    return [
        SlashCommand(
            name=found.value.name,
            summary=found.value.summary,
            run=_bound(found.plugin, found.value.run, agent.hooks.context_of(found.plugin, event)),
            plugin=found.plugin,
        )
        for found in await agent.hooks.collect(event)
    ]


def _bound(
    plugin: str, run: Callable[[str, Any], Awaitable[str | None]], ctx: Any
) -> Callable[[str], Awaitable[str | None]]:
    async def bound(argument: str) -> str | None:
        try:
            return await run(argument, ctx)
        except SidebandError:
            raise
        except Exception as error:
            raise SidebandError(f"the command failed: {type(error).__name__}: {error}", plugin=plugin) from error

    return bound
