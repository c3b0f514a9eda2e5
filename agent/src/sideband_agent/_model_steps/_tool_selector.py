"""Which tools a model request sends: all that are offered, unless plugins select some of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field
from sideband.hooks import HookRegistry, ToolCandidate, ToolSelection
from sideband.messages import Message, to_data
from sideband.settings import ToolSettings
from sideband.tools import Tool, ToolView

from .._compaction import Compactor
from .._history import CHARACTERS_PER_TOKEN, VisibleHistory
from .._run import Run
from .._session_tools import SessionTools


@define(eq=False)
class ToolSelector:
    """Selects the tools of each model request of a session.

    Requests stay equal to the byte while the selection does: the same view is then sent again.

    Args:
        hooks: the agent's hooks, which select.
        tools: the tools of the session.
        history: the messages that the model sees.
        compactor: measures the conversation.
        settings: the table ``[tools]``.
    """

    hooks: HookRegistry = field(repr=False)
    tools: SessionTools = field(repr=False)
    history: VisibleHistory = field(repr=False)
    compactor: Compactor = field(repr=False)
    settings: ToolSettings = field(repr=False)
    _offered: ToolView | None = field(default=None, init=False, repr=False)
    _allowed: ToolView | None = field(default=None, init=False, repr=False)
    _candidates: tuple[ToolCandidate, ...] = field(default=(), init=False, repr=False)
    _always: tuple[str, ...] = field(default=(), init=False, repr=False)
    _known: list[tuple[Message, Any]] = field(factory=list, init=False, repr=False)
    _selected: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    _sent: ToolView = field(factory=ToolView, init=False, repr=False)

    async def select(self, run: Run) -> None:
        """Set the tools that the next request sends. Nothing is called if no plugin selects tools."""
        tools = self.tools
        offered = tools.offered
        if not self.hooks.has(ToolSelection.hook) or not offered.tools:
            tools.sent = offered
            return
        if offered is not self._offered or tools.allowed is not self._allowed:
            self._offered, self._allowed, self._selected = offered, tools.allowed, None
            self._candidates = tuple(self._candidate(one) for one in offered.tools)
            self._always = tuple(one.model_name for one in offered.narrow(self.settings.always).tools)
        messages = self.history.messages()
        event = ToolSelection(
            self._candidates,
            messages=[self._as_data(number, message) for number, message in enumerate(messages)],
            tokens=await self._budget(run),
            requested=tuple(one.name for one in self._candidates if one.name in tools.requested),
            suggest_over=self.settings.suggest_over,
            suggest_with=self.settings.suggest_with,
            always=self._always,
        )
        self._known = list(zip(messages, event.messages, strict=True))
        selected = (await self.hooks.update(event)).selected
        if selected != self._selected:
            self._selected, names = selected, frozenset(selected)
            self._sent = ToolView(tuple(one for one in offered.tools if one.model_name in names))
        tools.sent = self._sent

    def _as_data(self, number: int, message: Message) -> Mapping[str, Any]:
        """Return a message as data. It is converted once: a conversation may be long, and each request selects."""
        known = self._known[number] if number < len(self._known) else None
        return known[1] if known is not None and known[0] is message else to_data(message)

    def _candidate(self, tool: Tool) -> ToolCandidate:
        return ToolCandidate(
            tool.model_name,
            tool.description,
            tool.source,
            tokens=-(-tool.schema_size // CHARACTERS_PER_TOKEN),
            category=tool.category,
            allowed=self.tools.allowed.get(tool.name) is not None,
        )

    async def _budget(self, run: Run) -> int:
        """Return how many tokens the definitions of tools may take, so that the request fits the model's window."""
        window = await self.compactor.window(run.model)
        definitions = self.tools.sent.schema_size // CHARACTERS_PER_TOKEN
        messages = self.compactor.tokens(run.system_prompt) - definitions
        return max(0, window - messages - min(self.compactor.settings.compaction.reserve, window // 2))
