"""Which tools a model request sends: all that are offered, unless plugins select some of them."""

from __future__ import annotations

from attrs import define, field
from sideband.hooks import HookRegistry, ToolCandidate, ToolSelection
from sideband.messages import to_data
from sideband.tools import ToolView

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
    """

    hooks: HookRegistry = field(repr=False)
    tools: SessionTools = field(repr=False)
    history: VisibleHistory = field(repr=False)
    compactor: Compactor = field(repr=False)
    _offered: ToolView | None = field(default=None, init=False, repr=False)
    _candidates: tuple[ToolCandidate, ...] = field(default=(), init=False, repr=False)
    _selected: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    _sent: ToolView = field(factory=ToolView, init=False, repr=False)

    async def select(self, run: Run) -> None:
        """Set the tools that the next request sends. Nothing is called if no plugin selects tools."""
        tools = self.tools
        offered = tools.offered
        if not self.hooks.has(ToolSelection.hook) or not offered.tools:
            tools.sent = offered
            return
        if offered is not self._offered:
            self._offered, self._selected = offered, None
            self._candidates = tuple(
                ToolCandidate(one.model_name, one.description, one.source, -(-one.schema_size // CHARACTERS_PER_TOKEN))
                for one in offered.tools
            )
        event = ToolSelection(
            self._candidates,
            messages=[to_data(message) for message in self.history.messages()],
            tokens=await self._budget(run),
            requested=tuple(one.name for one in self._candidates if one.name in tools.requested),
        )
        selected = (await self.hooks.update(event)).selected
        if selected != self._selected:
            self._selected, names = selected, frozenset(selected)
            self._sent = ToolView(tuple(one for one in offered.tools if one.model_name in names))
        tools.sent = self._sent

    async def _budget(self, run: Run) -> int:
        """Return how many tokens the definitions of tools may take, so that the request fits the model's window."""
        window = await self.compactor.window(run.model)
        definitions = self.tools.sent.schema_size // CHARACTERS_PER_TOKEN
        messages = self.compactor.tokens(run.system_prompt) - definitions
        return max(0, window - messages - min(self.compactor.settings.compaction.reserve, window // 2))
