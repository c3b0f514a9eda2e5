"""The slash commands of the chat itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sideband import UsageError

from ._agent_words import describe_usage, one_line
from ._chat_commands import SlashCommand
from ._chat_session_commands import session_commands
from ._output import first_sentence, format_table
from ._status_line import describe_context

if TYPE_CHECKING:
    from sideband_agent import Agent

    from ._chat_loop import Chat

__all__ = ["own_commands"]


def own_commands(chat: Chat, agent: Agent) -> list[SlashCommand]:
    """All of them, for one chat and its agent."""
    own = _Commands(chat, agent)
    return [
        SlashCommand("help", "list the commands", own.help),
        SlashCommand("quit", "leave; so does Ctrl-D", own.quit),
        SlashCommand("later", "say something once this run is done", own.later, "TEXT"),
        SlashCommand("retry", "go on with a run that did not end", own.retry),
        SlashCommand("model", "show the model, or use another one", own.model, "[PROVIDER:MODEL]"),
        SlashCommand("models", "list the models that can be used", own.models, "[TEXT]"),
        SlashCommand("tools", "list the tools that the model may call", own.tools),
        SlashCommand("compact", "make the conversation shorter", own.compact, "[WHAT TO KEEP]"),
        SlashCommand("cost", "show what the session has used", own.cost),
        SlashCommand("status", "show model, session, context and cost", own.status),
        *session_commands(chat, agent),
    ]


class _Commands:
    def __init__(self, chat: Chat, agent: Agent) -> None:
        self._chat = chat
        self._agent = agent

    async def help(self, _: str) -> str:
        keys = (
            "A backslash at the end of a line goes on with the next one. Ctrl-C ends a run.\n"
            "What is sent while the agent works is seen before its next step."
        )
        return f"{self._chat.commands.help()}\n\n{keys}"

    async def quit(self, _: str) -> None:
        self._chat.conversation.leave()

    async def later(self, text: str) -> None:
        if not text:
            raise UsageError("there is nothing to say", hint="/later TEXT")
        if self._chat.is_working:
            self._agent.follow_up(text)
            self._chat.conversation.line("queued: it is said once this run is done")
        else:
            await self._chat.send(text)

    async def retry(self, _: str) -> None:
        if self._chat.is_working:
            raise UsageError("a run is under way already", hint="Ctrl-C ends it")
        await self._chat.begin(self._agent.resume)

    async def model(self, name: str) -> str:
        if not name:
            return self._agent.model
        await self._agent.select_model(name)
        return f"the model is {self._agent.model}"

    async def models(self, text: str) -> str:
        found: dict[str, Any] = await self._agent.host.op("llm.models", {})
        rows = [
            [one["name"], one["context_window"] or ""] for one in found["models"] if text.lower() in one["name"].lower()
        ]
        return format_table(["model", "context"], rows) if rows else "there are none: see `sideband models list`"

    async def tools(self, _: str) -> str:
        rows = [[one.name, first_sentence(one.description), one.source] for one in self._agent.tools.tools]
        return format_table(["tool", "what it does", "from"], rows) if rows else "it may call none"

    async def compact(self, instructions: str) -> str:
        before = self._agent.context_tokens
        if not await self._agent.compact(instructions):
            return "there is nothing to shorten yet"
        return f"shortened from about {before:,} to {self._agent.context_tokens:,} tokens"

    async def cost(self, _: str) -> str:
        return describe_usage(self._agent.usage)

    async def status(self, _: str) -> str:
        session = self._agent.session
        rows = [
            ["model", self._agent.model],
            ["session", f"{session.id} {one_line(session.name or '')}".rstrip()],
            ["context", describe_context(self._agent)],
            ["used", describe_usage(self._agent.usage)],
            ["tools", str(len(self._agent.tools.tools))],
            ["state", "working" if self._chat.is_working else "waiting for you"],
        ]
        return format_table(["", ""], rows).split("\n", 2)[2]
