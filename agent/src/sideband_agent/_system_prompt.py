"""The system prompt, built once per session from the plugins' sections so that provider caches stay valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import define, field
from sideband.hooks import HookRegistry, Sections
from sideband.settings import trusted_project

from ._tools import OfferedSkills


@define(eq=False)
class SystemPrompt:
    """The system prompt of one session and channel.

    Args:
        hooks: the agent's hooks, which contribute sections.
        home: the host's state folder.
        folder: the working directory.
        channel: the channel through which the user talks to the agent.
        session: the id of the session.
        skills: the tools and skills that the model sees.
        text: the prompt, if it already exists: a child uses its parent's.
    """

    hooks: HookRegistry = field(repr=False)
    home: Path
    folder: Path
    channel: str
    session: str
    skills: OfferedSkills = field(repr=False)
    text: str | None = field(default=None, repr=False)

    async def get(self, text: Callable[[], str]) -> str:
        """Return the prompt. Built on the first call and identical afterwards.

        Args:
            text: returns the first input of the session.
        """
        if self.text is None and not self.hooks.has(Sections.hook):
            self.text = ""
        if self.text is None:
            event = Sections(
                channel=self.channel,
                session=self.session,
                tools=tuple(one.model_name for one in self.skills.tools.offered.tools),
                skills=await self.skills.all(),
                folder=self.folder,
                project=trusted_project(self.home, self.folder),
                text=text(),
            )
            found = await self.hooks.collect(event)
            self.text = "\n\n".join(one.value.text for one in found if one.value.text)
        return self.text
