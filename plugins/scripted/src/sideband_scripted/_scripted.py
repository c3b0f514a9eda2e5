"""The provider for scripts in Python."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from attrs import define, field
from sideband.plugins import PluginContext
from sideband.providers import ModelInfo, ModelRequest, Prices, StreamEvent

from ._choosing import answer_count, turn_at
from ._playing import play
from ._turns import ScriptedTurn

_FREE = Prices(input=0, output=0)


def _listed(turns: Iterable[ScriptedTurn]) -> list[ScriptedTurn]:
    """Return a list. mypy cannot infer the item type of ``converter=list``."""
    return list(turns)


@define(eq=False)
class Scripted:
    """A provider that plays turns. It is also a plugin, and accepts any model name.

    Args:
        turns: the first is played for the first request, and so on.
        name: the name of the provider and of the plugin.
        model: the model that ``models`` lists.
        context_window: its context window in tokens.
        repeat: whether the script starts again at its end.
        by_history: whether the turn is chosen by the number of assistant messages in the request instead of the number
            of requests, so that a resumed conversation continues where it was.
        prices: the prices of its tokens.

    Attributes:
        requests: all requests, oldest first.

    Example:
        >>> from sideband import Plugin
        >>> from sideband_scripted import Scripted, Turn
        >>> scripted = Scripted(["Hello.", Turn(tool_calls=[("echo", {"text": "hi"})]), "It said hi."])
        >>> Plugin("provider", "scripted", scripted).name
        'scripted'
    """

    turns: list[ScriptedTurn] = field(converter=_listed)
    name: str = field(default="scripted", kw_only=True)
    model: str = field(default="test", kw_only=True)
    context_window: int = field(default=200_000, kw_only=True)
    repeat: bool = field(default=False, kw_only=True)
    by_history: bool = field(default=False, kw_only=True)
    prices: Prices = field(default=_FREE, kw_only=True)
    requests: list[ModelRequest] = field(factory=list, init=False, repr=False)

    def sideband_providers(self) -> list[Scripted]:
        """Return this provider."""
        return [self]

    async def models(self, ctx: PluginContext) -> list[ModelInfo]:  # noqa: ARG002  part of the interface
        """Return the one model."""
        return [ModelInfo(id=self.model, context_window=self.context_window, thinking=True, prices=self.prices)]

    async def stream(
        self,
        request: ModelRequest,
        ctx: PluginContext,  # noqa: ARG002  part of the interface
    ) -> AsyncIterator[StreamEvent]:
        """Play the next turn."""
        number = answer_count(request) if self.by_history else len(self.requests)
        self.requests.append(request)
        turn = turn_at(self.name, self.turns, number, request, repeat=self.repeat)
        async with aclosing(play(self.name, turn, request)) as events:
            async for event in events:
                yield event
