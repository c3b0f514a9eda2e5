"""Hosts with a scripted model, so that an agent can run in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sideband import Host, Plugin
from sideband_agent import Agent
from sideband_scripted import Scripted

from ._base import Conformance
from ._subject import resolve

MODEL = "scripted:test"


class AgentConformance(Conformance):
    """What plugins have in common that agents use: their host has a model, which says what a test wants."""

    @property
    def turns_of_model(self) -> list[Any]:
        """What the model says next, as in ``sideband_scripted.Scripted``; then it says `done`."""
        found: list[Any] = self.__dict__.setdefault("_turns_of_model", [])
        return found

    def _with_others(self, plugin: Plugin) -> list[Plugin]:
        turns = self.turns_of_model
        model = Scripted([lambda _: turns.pop(0) if turns else "done"], repeat=True)
        found = [*super()._with_others(plugin), Plugin("provider", "scripted", model)]
        return found if any(one.kind == "op" and one.name == "llm" for one in found) else [*found, resolve("op.llm")]

    @asynccontextmanager
    async def open_agent(self, host: Host, **options: Any) -> AsyncIterator[Agent]:
        """Open an agent that uses this model."""
        async with Agent(host, model=MODEL, folder=self.world, **options) as agent:
            yield agent
