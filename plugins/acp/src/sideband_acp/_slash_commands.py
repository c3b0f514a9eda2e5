"""The slash commands of a session: those of plugins, and one for each skill with instructions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput
from attrs import define, field
from sideband.errors import SidebandError
from sideband.hooks import ChatCommand, ChatCommands
from sideband.rendering import render, whole_characters

if TYPE_CHECKING:
    from sideband_agent import Agent

_CHANNEL = "acp"
_MOST = 200
_LONGEST = 300


@define(eq=False)
class SlashCommands:
    """The slash commands of one session.

    Args:
        agent: its agent.
    """

    agent: Agent = field(repr=False)
    _known: bool = field(default=False, init=False)
    _of_plugins: dict[str, tuple[str, ChatCommand]] = field(factory=dict, init=False, repr=False)
    _skills: dict[str, str] = field(factory=dict, init=False, repr=False)

    async def find(self) -> list[AvailableCommand]:
        """Find the commands again, and return them for the client. Of two with one name, none is used."""
        found = await self.agent.hooks.collect(ChatCommands(_CHANNEL))
        counts = Counter(one.value.name for one in found)
        self._of_plugins = {one.value.name: (one.plugin, one.value) for one in found if counts[one.value.name] == 1}
        skills = await self.agent.skills()
        self._skills = {str(one["name"]): str(one["description"]) for one in skills if one["name"] not in counts}
        self._known = True
        own = [_available(name, one.summary, one.usage) for name, (_, one) in self._of_plugins.items()]
        return [*own, *(_available(name, summary) for name, summary in self._skills.items())][:_MOST]

    async def answer(self, text: str) -> str | None:
        """Run the command of a plugin that a text begins with, and return its reply; ``None`` without one.

        Raises:
            SidebandError: if the command fails.
        """
        name, _, rest = text[1:].partition(" ") if text.startswith("/") else ("", "", "")
        if name and not self._known:  # the client has not waited for them
            await self.find()
        if name not in self._of_plugins:
            return None
        plugin, command = self._of_plugins[name]
        if command.run is None:  # a message that the plugin replaces
            return None
        ctx = self.agent.hooks.context_of(plugin, ChatCommands(_CHANNEL))
        try:
            return await command.run(rest.strip(), ctx) or ""
        except SidebandError:
            raise
        except Exception as error:
            raise SidebandError(
                f"the command `/{name}` failed: {type(error).__name__}: {error}",
                hint=f"report it to the author of the plugin `{plugin}`",
                plugin=plugin,
            ) from error

    def expanded(self, text: str) -> str:
        """Return a text that begins with the name of a skill as a request to use it; any other text as it is."""
        name, _, rest = text[1:].partition(" ") if text.startswith("/") else ("", "", "")
        return f"Use the skill `{name}`. {rest.strip()}".strip() if name in self._skills else text


def _available(name: str, summary: str, usage: str = "") -> AvailableCommand:
    hint = AvailableCommandInput(root=UnstructuredCommandInput(hint=_shown(usage) or "text"))
    return AvailableCommand(name=name, description=_shown(summary), input=hint)


def _shown(text: str) -> str:
    return whole_characters(render(" ".join(text.split()), prose=True))[:_LONGEST]
