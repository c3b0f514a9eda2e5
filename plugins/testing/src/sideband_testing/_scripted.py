"""The fixture `scripted`: a model that answers what the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen
from sideband import Plugin
from sideband.providers import ModelRequest
from sideband_scripted import Scripted, ScriptedTurn

ScriptedMaker = Callable[..., "ScriptedPlugin"]
"""The fixture ``scripted``: a function that takes turns, and options of ``sideband_scripted.Scripted``."""


@frozen
class ScriptedPlugin(Plugin):
    """A provider whose model plays the turns of a test: what the fixture ``scripted`` returns.

    Example:
        >>> async def test_model_is_asked_once(scripted, sideband_host):
        ...     model = scripted("Hello.")
        ...     async with sideband_host(model) as host, Agent(host, model=model.model) as agent:
        ...         assert (await agent.invoke("Hi.")).text == "Hello."
        ...     assert len(model.requests) == 1
    """

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """The requests that the model got, oldest first."""
        return tuple(self.value.requests)

    @property
    def model(self) -> str:
        """The name of the model, such as ``scripted:test``."""
        return f"{self.name}:{self.value.model}"


def make_scripted(*turns: ScriptedTurn, **options: Any) -> ScriptedPlugin:
    """Return a provider that plays turns.

    Args:
        turns: the turns: texts, ``sideband_scripted.Turn``, errors to raise, and the others of that package.
        options: options of ``sideband_scripted.Scripted``, such as ``name``, ``repeat`` and ``context_window``.
    """
    scripted = Scripted(turns, **options)
    return ScriptedPlugin("provider", scripted.name, scripted, "sideband-scripted")
