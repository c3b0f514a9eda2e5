"""The tools of an agent: those that its program offers, and calls in progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sideband.hooks import ClientServer, ClientServers
from sideband.host import ProvidedSource
from sideband.tools import Tool, ToolSource

from ._agent_state import AgentState
from ._direct_calls import DirectCalls
from ._errors import RunUnfinished
from ._history import unanswered

if TYPE_CHECKING:
    from sideband import Host


class AgentTools(AgentState):
    """What a program does with the tools of an agent.

    Attributes:
        host: the host of the agent.
    """

    host: Host

    def offer(self, tool: Tool | ToolSource) -> None:
        """Give this agent a tool, or a source of tools, of its own. It is available from the next turn on.

        It stays until it is withdrawn or the agent is closed, also in other sessions that the agent opens. A source has
        the scope ``session`` and is opened again for each of them. Child agents may use these tools like others.

        Raises:
            ToolRefused: if its name is invalid or taken, or the restrictions of the agent exclude it.
        """
        self._parts.tools.offer(tool)

    async def offer_servers(self, servers: Sequence[ClientServer]) -> Sequence[str]:
        """Give this agent the tools of programs that a client passes and its user has accepted.

        A plugin starts them, with its own rights and in isolation. They stay like what `offer` gives.

        Args:
            servers: the programs.

        Returns:
            The names of those that a plugin starts.

        Raises:
            ToolRefused: if a name is taken.
        """
        event = ClientServers(servers)
        found = await self.hooks.collect(event)
        for one in found:
            context = self.host.hooks.context_of(one.plugin, event)
            if context is not None:
                self._parts.tools.add(ProvidedSource(one.value, one.plugin, context))
        return [one.value.name for one in found]

    def withdraw(self, name: str) -> bool:
        """Remove a tool, or a source of tools, that was offered. Return whether there was one of this name.

        Calls in progress continue. Calls that have not begun are not run.
        """
        return self._parts.tools.withdraw(name)

    async def wait_for_sources(self) -> None:
        """Wait until each source of tools has listed its tools once, or failed to. No turn does that.

        The sources are those of the host and of the session. Use a timeout: a source may take a minute to open.
        """
        await self._parts.tools.wait_for_sources()

    @asynccontextmanager
    async def tool_calls(self, source: str = "api") -> AsyncIterator[DirectCalls]:
        """Begin a run whose tool calls this program makes, instead of a model. It ends with the block.

        The gates are those of calls of a model: the tools of the agent, guards, approvals, the budget, redaction and
        records. The calls and their results become part of the conversation. Calls in progress are cancelled at the end
        of the block, and an abort of the run cancels the block. A call that needs an approval, without an approver, is
        refused: its result says how to approve it.

        Args:
            source: where the calls come from: ``interactive``, ``api``, ``plugin``, ``schedule`` or ``agent``.

        Raises:
            AgentBusy: if another operation is in progress.
            RunUnfinished: if the last run waits for the results of tool calls.

        Example:
            >>> async def stars(agent: Agent) -> str:
            ...     async with agent.tool_calls() as calls:
            ...         return (await calls.start("github.stars", {"repo": "pytest-dev/pluggy"}).answer()).text
        """
        with self._claim("call tools"):
            if unanswered(self.session.messages()) is not None:
                raise RunUnfinished("call tools")
            async with self._parts.runner.open_calls(source, self._usual_model() or "") as calls:
                yield calls

    def cancel_call(self, call: str, reason: str = "") -> bool:
        """Cancel one tool call of the run. The other calls of its turn continue, and the model learns of it.

        A call that has begun may have been executed in part. Results that exist already are not changed.

        Args:
            call: the id of the call, as in ``ToolExecutionStart``.
            reason: why, for the model.

        Returns:
            Whether the call was in progress, or was about to begin.
        """
        return self._parts.runner.tools.cancel(call, self.host.redactor.text(reason))
