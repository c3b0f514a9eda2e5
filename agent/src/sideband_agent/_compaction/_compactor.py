"""Compact a conversation: when it is due, on request, and when a model rejects it as too long."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import anyio
from attrs import define, field
from sideband.errors import SidebandError
from sideband.hooks import (
    Cancel,
    Compacted,
    CompactionEnd,
    CompactionStart,
    HookRegistry,
    SavePoint,
    SessionCompact,
)
from sideband.plugins import PluginContext
from sideband.settings import AgentSettings

from .._announcer import Announcer
from .._history import CHARACTERS_PER_TOKEN, TokenCount, VisibleHistory
from .._phase import CurrentPhase
from .._run import Run
from .._session_tools import SessionTools
from ..sessions import CompactionEntry, Entry, Session
from ._preparation import Preparation, carried_requests, is_due, prepare, sliding_window

_log = logging.getLogger("sideband.agent")
_Reason = Literal["due", "overflow", "requested"]
_USUAL_WINDOW = 200_000
"""Assumed if the provider does not report a context window; pi assumes the same."""
_SMALL = 2_000
"""A conversation of fewer tokens fits every model, so its window is not looked up."""


@define(eq=False)
class Compactor:
    """The compactor of an agent's session.

    Args:
        session: the session.
        history: the part of it that the model sees.
        tools: the tools of the session.
        settings: the agent's settings.
        hooks: the agent's hooks, which write summaries or deny a compaction.
        announcer: emits events.
        phase: the agent's phase.
        host: dispatches the op that lists models.
    """

    session: Session = field(repr=False)
    history: VisibleHistory = field(repr=False)
    tools: SessionTools = field(repr=False)
    settings: AgentSettings = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    phase: CurrentPhase = field(repr=False)
    host: PluginContext = field(repr=False)
    _windows: dict[str, int] = field(factory=dict, init=False)
    _wanted: str | None = field(default=None, init=False)
    _count: TokenCount = field(factory=TokenCount, init=False)

    def ask(self, instructions: str) -> None:
        """Request a compaction at the next opportunity."""
        self._wanted = instructions

    def tokens(self, system_prompt: str = "") -> int:
        """Estimate the tokens of the conversation, including the system prompt and the tools."""
        messages = self.history.messages()
        trusted = len(messages) - self.session.context().fresh
        overhead = self.tools.sent.schema_size + len(system_prompt)
        return self._count.of(messages, trusted_from=trusted, overhead=overhead // CHARACTERS_PER_TOKEN)

    def asked_window(self, model: str) -> int | None:
        """Return the context window of a model in tokens, or ``None`` before it has been looked up."""
        return self._windows.get(model)

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens. Looked up once for each model."""
        if model not in self._windows:
            self._windows[model] = self.settings.context_window or await self._reported_window(model) or _USUAL_WINDOW
        return self._windows[model]

    async def compact_if_due(self, run: Run, *, at_end: bool = False) -> bool:
        """Compact if the conversation is too long for the model of a run, or if a compaction was requested.

        Args:
            run: the run.
            at_end: whether the run has ended and its save point has been emitted.
        """
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            tokens = self.tokens(run.system_prompt)
            if tokens < _SMALL or not is_due(tokens, await self.window(run.model), self.settings.compaction):
                return False
        with self.phase.compacting():
            reason: _Reason = "due" if wanted is None else "requested"
            return await self._compact(run.model, reason, wanted or "", system_prompt=run.system_prompt, save=at_end)

    async def compact_within_run(self, run: Run) -> bool:
        """Compact because the model of a run rejected the conversation as too long."""
        with self.phase.compacting():
            return await self._compact(run.model, "overflow", "", system_prompt=run.system_prompt)

    async def compact(self, model: str, instructions: str) -> bool:
        """Compact between runs on a user's request. Return whether the conversation was compacted."""
        self._wanted = None
        return await self._compact(model, "requested", instructions, save=True)

    async def _compact(
        self, model: str, reason: _Reason, instructions: str, *, system_prompt: str = "", save: bool = False
    ) -> bool:
        path, tokens = self.session.path(), self.tokens(system_prompt)
        prepared = prepare(
            path,
            self.settings.compaction,
            window=await self.window(model),
            tokens=tokens,
            overflow=reason == "overflow",
            read_only=[one.model_name for one in self.tools.offered.tools if one.read_only],
        )
        if prepared is None:
            return False
        status = "aborted"
        try:
            await self.announcer.emit(CompactionStart, self.session.id, reason, tokens)
            stored = await self._replace(prepared, path, instructions)
            status = "denied" if stored is None else "completed"
        except Exception:
            status = "failed"
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self.announcer.emit_made(
                    CompactionEnd, lambda: CompactionEnd(self.session.id, status, self.tokens(system_prompt))
                )
        if save and stored is not None:
            await self.announcer.emit(SavePoint, self.session.id, stored)
        return stored is not None

    async def _replace(self, prepared: Preparation, path: Sequence[Entry], instructions: str) -> str | None:
        """Store the summary, and return the id of its entry; ``None`` if a plugin denied the compaction."""
        answer = await self.hooks.first(prepared.event(self.session.id, instructions))
        if isinstance(answer, Cancel):
            _log.info("plugin `%s` denied the compaction: %s", answer.plugin, answer.reason)
            return None
        entry = _entry(prepared, answer or sliding_window(prepared.event(self.session.id)))
        if entry.first_kept != prepared.first_kept:
            carried = carried_requests(path, entry.first_kept or "")
            entry = entry.model_copy(update={"carried": carried})
        (stored,) = await self.session.append(entry)
        # changes made by `context` hooks applied to messages that have now been removed
        await self.history.begin()
        await self.announcer.emit(SessionCompact, self.session.id, stored, plugin=entry.plugin)
        return stored

    async def _reported_window(self, model: str) -> int | None:
        """Return the context window that the model's provider reports, or ``None``."""
        try:
            listed = await self.host.dispatch("llm.models", {"provider": model.partition(":")[0]})
        except SidebandError as error:
            _log.info("the context window of `%s` is unknown: %s", model, error.message)
            return None
        return next((one["context_window"] for one in listed["models"] if one["name"] == model), None)


def _entry(prepared: Preparation, compacted: Compacted) -> CompactionEntry:
    first_kept = compacted.first_kept
    if first_kept is not None and first_kept not in prepared.cut_points:
        _log.warning("ignored the cut point of plugin `%s`: it separates a call from its result", compacted.plugin)
        first_kept = None
    return CompactionEntry(
        summary=compacted.summary,
        first_kept=first_kept or prepared.first_kept,
        carried=prepared.carried,
        tokens_before=prepared.tokens_before,
        details=dict(compacted.details) or None,
        plugin=compacted.plugin or None,
        read_files=prepared.files.read,
        modified_files=prepared.files.modified,
    )
