"""Makes a conversation shorter: when it is due, when somebody asks for it, and when a model says that it must be."""

from __future__ import annotations

import logging

from attrs import define, field
from sideband.errors import SidebandError
from sideband.hooks import Cancel, Compacted, HookRegistry, SavePoint, SessionCompact
from sideband.plugins import PluginContext
from sideband.settings import AgentSettings
from sideband.tools import ToolView

from .._announcer import Announcer
from .._history import CHARACTERS_PER_TOKEN, VisibleHistory, context_tokens
from .._phase import CurrentPhase
from .._run import Run
from ..sessions import CompactionEntry, Session
from ._preparation import Preparation, carried_requests, fresh_messages, is_due, prepare, sliding_window

_log = logging.getLogger("sideband.agent")
_USUAL_WINDOW = 200_000
"""What is assumed of a model whose provider does not say; pi assumes the same."""
_SMALL = 2_000
"""A conversation of fewer tokens fits every model: what its window is need not be asked."""


@define(eq=False)
class Compactor:
    """Compacts the session of an agent.

    Args:
        session: the session.
        history: what its model sees.
        tools: those that the model is told about.
        settings: when, and how much.
        hooks: write summaries, or say no.
        announcer: tells of compactions.
        phase: the agent's.
        host: asks providers for windows.
    """

    session: Session = field(repr=False)
    history: VisibleHistory = field(repr=False)
    tools: ToolView = field(repr=False)
    settings: AgentSettings = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    phase: CurrentPhase = field(repr=False)
    host: PluginContext = field(repr=False)
    _windows: dict[str, int] = field(factory=dict, init=False)
    _wanted: str | None = field(default=None, init=False)

    def ask(self, instructions: str) -> None:
        """Compact at the next chance."""
        self._wanted = instructions

    def tokens(self, system_prompt: str = "") -> int:
        """About how many tokens the conversation has, the system prompt and the tools included."""
        messages = self.history.messages()
        trusted = len(messages) - fresh_messages(self.session.newest_first())
        overhead = sum(len(one.model_dump_json()) for one in self.tools.schemas()) + len(system_prompt)
        return context_tokens(messages, trusted_from=trusted, overhead=overhead // CHARACTERS_PER_TOKEN)

    def asked_window(self, model: str) -> int | None:
        """The context window of a model, in tokens; ``None`` while it was not asked for."""
        return self._windows.get(model)

    async def window(self, model: str) -> int:
        """The context window of a model, in tokens; asked for once for each."""
        if model not in self._windows:
            self._windows[model] = self.settings.context_window or await self._told_window(model) or _USUAL_WINDOW
        return self._windows[model]

    async def compact_if_due(self, run: Run, *, at_end: bool = False) -> bool:
        """Compact if the conversation is too long for the model of a run, or somebody has asked for it.

        Args:
            run: the run.
            at_end: whether it has ended, and its save point is told already.
        """
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            tokens = self.tokens(run.system_prompt)
            if tokens < _SMALL or not is_due(tokens, await self.window(run.model), self.settings.compaction):
                return False
        with self.phase.compacting():
            return await self._compact(run.model, wanted or "", system_prompt=run.system_prompt, save=at_end)

    async def compact_within_run(self, run: Run) -> bool:
        """Compact because the model of a run has refused the conversation as too long."""
        with self.phase.compacting():
            return await self._compact(run.model, "", system_prompt=run.system_prompt, overflow=True)

    async def compact(self, model: str, instructions: str) -> bool:
        """Compact between runs because a user asks for it; whether there was something to shorten."""
        self._wanted = None
        return await self._compact(model, instructions, save=True)

    async def _compact(
        self, model: str, instructions: str, *, system_prompt: str = "", overflow: bool = False, save: bool = False
    ) -> bool:
        path = self.session.path()
        prepared = prepare(
            path,
            self.settings.compaction,
            window=await self.window(model),
            tokens=self.tokens(system_prompt),
            overflow=overflow,
            read_only=[one.model_name for one in self.tools.tools if one.read_only],
        )
        if prepared is None:
            return False
        answer = await self.hooks.first(prepared.event(self.session.id, instructions))
        if isinstance(answer, Cancel):
            _log.info("`%s` is against a compaction now: %s", answer.plugin, answer.reason)
            return False
        entry = _entry(prepared, answer or sliding_window(prepared.event(self.session.id)))
        if entry.first_kept != prepared.first_kept:
            carried = carried_requests(path, entry.first_kept or "")
            entry = entry.model_copy(update={"carried": carried})
        (stored,) = await self.session.append(entry)
        # What plugins made of the conversation was about one that is not there any more.
        await self.history.begin()
        await self.announcer.tell(SessionCompact(self.session.id, stored, plugin=entry.plugin))
        if save:
            await self.announcer.tell(SavePoint(self.session.id, stored))
        return True

    async def _told_window(self, model: str) -> int | None:
        """The window as the model's provider knows it."""
        try:
            listed = await self.host.dispatch("llm.models", {"provider": model.partition(":")[0]})
        except SidebandError as error:
            _log.info("how much `%s` can read is not known: %s", model, error.message)
            return None
        return next((one["context_window"] for one in listed["models"] if one["name"] == model), None)


def _entry(prepared: Preparation, compacted: Compacted) -> CompactionEntry:
    first_kept = compacted.first_kept
    if first_kept is not None and first_kept not in prepared.cut_points:
        _log.warning("`%s` wants to cut where it would part what belongs together: not there", compacted.plugin)
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
