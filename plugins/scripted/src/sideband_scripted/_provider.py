"""The provider for scripts in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path

import anyio.to_thread
from attrs import define, field
from sideband.plugins import PluginContext
from sideband.providers import ModelInfo, ModelRequest, StreamEvent

from ._choosing import answer_count, turn_at
from ._errors import ScriptMissing, ScriptUnknown
from ._playing import play
from ._script_files import ModelScript, TurnScript, read_scripts


@define(eq=False)
class FileScripts:
    """A provider that plays the file named in ``[plugins.scripted]``, one script for each model.

    The turn is chosen by the number of assistant messages in the request, so no state is needed, and another process
    can resume a conversation.
    """

    name: str = "scripted"
    _tries: Counter[tuple[str, int]] = field(factory=Counter, init=False)

    async def models(self, ctx: PluginContext) -> list[ModelInfo]:
        """Return the models in the file; an empty list without a file. Raises ``ScriptInvalid``."""
        if ctx.config.script is None:
            return []
        return [script.info(name) for name, script in (await self._scripts(ctx.config.script)).items()]

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Play the next turn of the conversation."""
        if ctx.config.script is None:
            raise ScriptMissing(self.name)
        scripts = await self._scripts(ctx.config.script)
        if request.model not in scripts:
            raise ScriptUnknown(self.name, request.model, scripts)
        script, number = scripts[request.model], answer_count(request)
        written = turn_at(self.name, script.turns, number, request, repeat=script.repeat)
        turn = TurnScript(text=written) if isinstance(written, str) else written
        self._fail(turn, (request.model, number))
        async with aclosing(play(self.name, turn.turn(), request)) as events:
            async for event in events:
                yield event

    def _fail(self, turn: TurnScript, place: tuple[str, int]) -> None:
        tries = self._tries[place]
        if tries < len(turn.failures):
            self._tries[place] += 1
            raise turn.failures[tries].error(self.name)

    async def _scripts(self, path: Path) -> Mapping[str, ModelScript]:
        return await anyio.to_thread.run_sync(read_scripts, self.name, path)
