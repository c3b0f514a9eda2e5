"""The system prompt: built of what plugins contribute, once for each channel, so that the provider's cache holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field
from sideband.hooks import HookRegistry, Sections
from sideband.settings import trusted_project

__all__ = ["Prompts"]


@define(eq=False)
class Prompts:
    """The system prompts of one agent, by channel.

    Args:
        hooks: the agent's.
        home: the host's folder.
        folder: the working directory of the session.
    """

    hooks: HookRegistry = field(repr=False)
    home: Path
    folder: Path
    _built: dict[tuple[str, str], str] = field(factory=dict, init=False)

    async def get(self, channel: str, session: str, tools: tuple[str, ...], skills: Sequence[Mapping[str, Any]]) -> str:
        """The prompt for a channel of a session. Built when it is first asked for; the same bytes until ``clear``."""
        key = (channel, session)
        if key not in self._built:
            event = Sections(
                channel=channel,
                session=session,
                tools=tools,
                skills=skills,
                folder=self.folder,
                project=trusted_project(self.home, self.folder),
            )
            found = await self.hooks.collect(event)
            self._built[key] = "\n\n".join(one.value.text for one in found if one.value.text)
        return self._built[key]

    def clear(self) -> None:
        """Forget them, since what they are made of has changed."""
        self._built.clear()
