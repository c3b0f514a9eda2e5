"""Run programs for the user of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import CancelScope
from sideband.ops import Origin

from ._agent_state import AgentState
from ._announcer import Announcer
from ._errors import InputEmpty, RunUnfinished
from ._history import unanswered
from ._user_programs import ProgramOutput, run_user_program

if TYPE_CHECKING:
    from sideband import Host


class AgentPrograms(AgentState):
    """The programs that the user of an agent runs.

    Attributes:
        host: the host of the agent.
        folder: the working directory.
    """

    host: Host
    folder: Path
    _announcer: Announcer

    async def run_program(
        self, arguments: Sequence[str], *, exclude_from_context: bool = False, seconds: float = 600.0
    ) -> ProgramOutput:
        """Run a program for the user, with the op ``shell.run``, and add it and its output to the conversation.

        The user is the principal of the effect. The program may change the working directory, has no access to the
        network, and runs in the isolation of programs. Guards decide on it like on any effect.

        Args:
            arguments: the program and its arguments, which no shell interprets.
            exclude_from_context: whether nothing is added to the conversation.
            seconds: the timeout in seconds.

        Raises:
            AgentBusy: if another operation is in progress.
            InputEmpty: if there are no arguments.
            RunUnfinished: if the last run waits for the results of tool calls. Nothing has run.
            OpError: if the program could not run, such as ``OpNotFound`` if no plugin provides the op.
        """
        if not arguments:
            raise InputEmpty
        with self._claim("run a program"):
            if not exclude_from_context and unanswered(self.session.messages()) is not None:
                raise RunUnfinished("run a program")
            output = await run_user_program(
                arguments,
                broker=self.host.broker,
                announcer=self._announcer,
                origin=Origin(session=self.session.id, channel=self.session.channel),
                folder=self.folder,
                seconds=seconds,
                tokens=self.settings.output_tokens,
                excluded=exclude_from_context,
                settings=self.host.settings.settings.tools,
            )
            if not exclude_from_context:
                message = output.message()
                with CancelScope(shield=True):  # it has happened, so the model must learn it
                    await self.session.append_message(message)
                await self._announcer.emit_message(message)
        return output
