"""Results that are too long for a model: it sees a part, and the full text is stored under a handle."""

from __future__ import annotations

import hashlib

from attrs import define, field
from sideband.store import Store
from sideband.tools import RESULT_LIMITS

from .._history import CHARACTERS_PER_TOKEN
from ._truncation import cut

_LEAST = 300


@define(eq=False)
class LongResults:
    """The long results of one session.

    Args:
        store: stores the full texts.
        session: the id of the session. Only the session and its forks can read them.
        parent: the id of the session that it was forked from.
        tokens: the maximum number of tokens of one result that a model sees.
    """

    store: Store = field(repr=False)
    session: str
    parent: str | None
    tokens: int
    _limit: int = field(init=False)

    @_limit.default
    def _unlimited(self) -> int:
        return self.tokens

    def limit(self, tokens: int) -> None:
        """Lower the limit for the next results, to no less than 300 tokens."""
        self._limit = min(self.tokens, max(tokens, _LEAST))

    async def shown(self, text: str, *, share: int = 1) -> tuple[str, str | None]:
        """Return the part of a text that a model sees, and the handle of the full text if it was shortened.

        Args:
            text: the text, already redacted.
            share: the number of texts that share the limit.
        """
        limit = max(self._limit // share, _LEAST)
        if len(text) <= limit:  # a token has at least one character
            return text, None
        handle = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]  # the same in a replay of the run
        part = cut(text, limit, handle=handle)
        if not part.omitted:
            return part.text, None
        text = cut(text, RESULT_LIMITS.characters // CHARACTERS_PER_TOKEN).text
        await self.store.put(f"session/{self.session}/outputs/{handle}", {"text": text}, durable=False)
        return part.text, handle

    async def read(self, handle: str) -> str:
        """Return the full text.

        Raises:
            LookupError: if this session has no such result.
        """
        for session in (self.session, self.parent) if handle.isalnum() else ():
            found = await self.store.get(f"session/{session}/outputs/{handle}") if session else None
            if found is not None:
                return str(found.value["text"])
        raise LookupError(f"this session has no result with the handle `{handle[:40]}`")
