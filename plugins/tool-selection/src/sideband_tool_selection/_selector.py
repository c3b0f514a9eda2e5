"""Select the tools of requests, by words, by embeddings or by a model, and remember what was sent."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import define, field
from sideband.contexts import AgentContext
from sideband.hooks import ToolCandidate, ToolSelection

from ._config import Config
from ._expand_tool import EXPAND
from ._last_messages import LastMessages
from ._selection import Preferences, selected

if TYPE_CHECKING:
    from sideband_word_ranking import WordIndex

    from ._embedding_selection import EmbeddingRanker

_SESSIONS = 1_000
_INDEXES = 16
_OWN = "session"
_log = logging.getLogger("sideband.tool_selection")


@define
class _Session:
    """What the last request of a session was selected by, and what it sent."""

    names: Sequence[str] = ()
    text: str = ""
    candidates: Sequence[ToolCandidate] = ()
    ranked: Sequence[str] = ()


@define
class Selector:
    """Selects tools for all sessions of a host. Its memory is bounded; what it forgets changes no rights.

    Args:
        config: the settings.
    """

    config: Config
    _sessions: OrderedDict[str, _Session] = field(factory=OrderedDict, init=False)
    _indexes: OrderedDict[Sequence[ToolCandidate], WordIndex] = field(factory=OrderedDict, init=False)

    _embeddings: EmbeddingRanker | None = field(default=None, init=False)

    async def select(self, event: ToolSelection, ctx: AgentContext) -> list[str]:
        """Return the names of the tools to send with a request."""
        plain = [name for name in event.selected if name != EXPAND]
        allowed = [one for one in event.candidates if one.allowed and one.name != EXPAND]
        can_expand = any(one.name == EXPAND and one.allowed for one in event.candidates)
        always = {one.name for one in allowed}.intersection(event.always)
        if len(allowed) - len(always) <= event.suggest_over or not can_expand:
            return plain
        known = LastMessages.of(event.messages, inputs=self.config.expires_after, requested=self.config.expanded)
        session = self._session(ctx.session.id)
        if (session.text, session.candidates) != (known.text, event.candidates):
            session.ranked = await self._ranked(event, known, ctx)
            session.text, session.candidates = known.text, event.candidates
        preferences = Preferences(
            kept=frozenset([*event.always, *event.requested, *known.requested, *known.called, *_own(event)]),
            ranked=session.ranked,
            previous=session.names,
            limit=event.suggest_over + len(always),
            least=self.config.least,
            tokens=event.tokens,
        )
        wanted = {*plain, *known.requested}  # a plugin before this one may have removed some
        names = [name for name in selected(event.candidates, preferences) if name in wanted]
        session.names = names
        return names if len(names) == len(allowed) else [*names, EXPAND]

    def close(self) -> None:
        """Free the memory."""
        for index in self._indexes.values():
            index.close()

    def _session(self, id: str) -> _Session:  # noqa: A002  the name of the attribute
        session = self._sessions.setdefault(id, _Session())
        self._sessions.move_to_end(id)
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return session

    async def _ranked(self, event: ToolSelection, known: LastMessages, ctx: AgentContext) -> Sequence[str]:
        index = self._index(event.candidates)
        positions = [*index.rank(known.newest), *index.rank(known.text)]
        by_words = [event.candidates[position].name for position in positions]
        if event.suggest_with == "embeddings":
            return [*await self._ranker().rank(event, known.text, self.config.model, ctx), *by_words]
        if event.suggest_with != "model":
            return by_words
        from ._model_selection import ask_model  # noqa: PLC0415  used only if it is configured

        named = await ask_model(event, known.text, self.config.model or ctx.model, ctx)
        return [*named, *by_words]

    def _ranker(self) -> EmbeddingRanker:
        from ._embedding_selection import EmbeddingRanker  # noqa: PLC0415  used only if it is configured

        if self._embeddings is None:
            self._embeddings = EmbeddingRanker()
        return self._embeddings

    def _index(self, candidates: Sequence[ToolCandidate]) -> WordIndex:
        from sideband_word_ranking import WordIndex  # noqa: PLC0415  most agents have few tools

        index = self._indexes.get(candidates)
        if index is None:
            index = self._indexes[candidates] = WordIndex((one.name, one.description) for one in candidates)
        self._indexes.move_to_end(candidates)
        if len(self._indexes) > _INDEXES:
            self._indexes.popitem(last=False)[1].close()
        return index


def _own(event: ToolSelection) -> list[str]:
    """Return the tools that the program offered to this agent, unless it offered many."""
    found = [one.name for one in event.candidates if one.source == _OWN]
    return found if len(found) <= event.suggest_over else []
