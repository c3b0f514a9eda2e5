"""Makes a conversation shorter: when it is due, when somebody asks for it, and when a model says that it must be."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attrs import define, field
from sideband.errors import SidebandError
from sideband.hooks import Cancel, Compacted, SavePoint, SessionCompact

from .._errors import ModelMissing
from .._history._tokens import CHARACTERS_PER_TOKEN, context_tokens
from .._history._visible import Conversation
from ..sessions import CompactionEntry
from ._preparation import Preparation, carried_requests, fresh_messages, is_due, prepare, sliding_window

if TYPE_CHECKING:
    from .._agent import Agent

__all__ = ["Compactor"]

_log = logging.getLogger("sideband.agent")
_USUAL_WINDOW = 200_000
"""What is assumed of a model whose provider does not say; pi assumes the same."""
_SMALL = 2_000
"""A conversation of fewer tokens fits every model: what its window is need not be asked."""


@define(eq=False)
class Compactor:
    """Compacts the session of an agent.

    Args:
        agent: whose.
        conversation: what its model sees.
    """

    agent: Agent = field(repr=False)
    conversation: Conversation = field(repr=False)
    _windows: dict[str, int] = field(factory=dict, init=False)
    _wanted: str | None = field(default=None, init=False)

    def ask(self, instructions: str) -> None:
        """Compact at the next chance."""
        self._wanted = instructions

    @property
    def window(self) -> int | None:
        """The context window of the model that answers now, in tokens; ``None`` while it was not asked for."""
        try:
            return self._windows.get(self.agent.model)
        except ModelMissing:
            return None

    def tokens(self) -> int:
        """About how many tokens the conversation has, the system prompt and the tools included."""
        messages = self.conversation.messages()
        trusted = len(messages) - fresh_messages(self.agent.session.newest_first())
        prompt = sum(len(one.model_dump_json()) for one in self.agent.offered.schemas()) + len(self.agent.system_prompt)
        return context_tokens(messages, trusted_from=trusted, overhead=prompt // CHARACTERS_PER_TOKEN)

    async def compact_if_due(self, *, at_end: bool = False) -> bool:
        """Compact if the conversation is too long for the model, or somebody has asked for it.

        Args:
            at_end: whether the run has ended, and its save point is told already.
        """
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            tokens = self.tokens()
            if tokens < _SMALL or not is_due(tokens, await self.known_window(), self.agent.settings.compaction):
                return False
        with self.agent.compacting():
            return await self._compact(wanted or "", save=at_end)

    async def compact_within_run(self) -> bool:
        """Compact because a model has refused the conversation as too long."""
        with self.agent.compacting():
            return await self._compact("", overflow=True)

    async def compact(self, instructions: str) -> bool:
        """Compact because a user asks for it; whether there was something to shorten."""
        self._wanted = None
        return await self._compact(instructions, save=True)

    async def _compact(self, instructions: str, *, overflow: bool = False, save: bool = False) -> bool:
        agent = self.agent
        path = agent.session.path()
        prepared = prepare(
            path,
            agent.settings.compaction,
            window=await self.known_window(),
            tokens=self.tokens(),
            overflow=overflow,
            read_only=[one.model_name for one in agent.offered.tools if one.read_only],
        )
        if prepared is None:
            return False
        answer = await agent.hooks.first(prepared.event(agent.session.id, instructions))
        if isinstance(answer, Cancel):
            _log.info("`%s` is against a compaction now: %s", answer.plugin, answer.reason)
            return False
        entry = _entry(prepared, answer or sliding_window(prepared.event(agent.session.id)))
        if entry.first_kept != prepared.first_kept:
            carried = carried_requests(path, entry.first_kept or "")
            entry = entry.model_copy(update={"carried": carried})
        (stored,) = await agent.session.append(entry)
        # What plugins made of the conversation was about one that is not there any more.
        await self.conversation.begin()
        await agent.announcer.tell(SessionCompact(agent.session.id, stored, plugin=entry.plugin))
        if save:
            await agent.announcer.tell(SavePoint(agent.session.id, stored))
        return True

    async def known_window(self) -> int:
        """The context window of the model that answers now; asked for once for each."""
        model = self.agent.model
        if model not in self._windows:
            self._windows[model] = self.agent.settings.context_window or await self._asked(model) or _USUAL_WINDOW
        return self._windows[model]

    async def _asked(self, model: str) -> int | None:
        """The window as the model's provider knows it."""
        try:
            listed = await self.agent.host.context_for("agent").dispatch(
                "llm.models", {"provider": model.partition(":")[0]}
            )
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
