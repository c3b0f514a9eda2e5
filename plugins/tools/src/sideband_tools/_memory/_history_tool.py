"""The tool `history`: earlier messages of the session, and its compaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice

from anyio import to_thread
from sideband.messages import Message
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._errors import ParameterMissing
from ._models import HistoryParams
from ._ranking import beginnings, ranked

_MAX_FOUND = 10
_AROUND = 150
_CHARACTERS = 20_000


@tool("history", level=Level.SAFE, read_only=True)
async def history(params: HistoryParams, ctx: ToolContext) -> str:
    """Search and show the messages of this session, also those that were replaced by a summary, or compact it.

    Use it when you need a detail that a summary left out.
    """
    if params.action == "compact":
        ctx.compact(params.instructions)
        return "[older messages will be replaced by a summary before the next step]"
    messages = _earlier(ctx.session.all_messages())
    if params.action == "show":
        return _shown(messages, params.first, params.count)
    if params.query is None:
        raise ParameterMissing(params.action, "query")
    return await to_thread.run_sync(_found, messages, params.query)


def _earlier(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages before the one that contains this call."""
    number = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "assistant"), len(messages))
    return messages[:number]


def _text(message: Message) -> str:
    """Return the text of a message, with the calls of tools in it."""
    calls = [f"[called {one.name} {json.dumps(one.arguments)}]" for one in getattr(message, "tool_calls", ())]
    return "\n".join(filter(None, [message.text, *calls]))


def _shown(messages: Sequence[Message], first: int, count: int) -> str:
    chosen = list(islice(enumerate(messages, 1), first - 1, first - 1 + count))
    if not chosen:
        return f"[the session has {len(messages)} messages]"
    room = _CHARACTERS // len(chosen)
    return "\n\n".join(f"[message {number}, {one.role}]\n{_cut(_text(one), room)}" for number, one in chosen)


def _cut(text: str, room: int) -> str:
    hidden = len(text) - room
    return f"{text[:room]} [{hidden:,} characters omitted: show this message alone]" if hidden > 0 else text


def _found(messages: Sequence[Message], query: str) -> str:
    texts = [_text(one) for one in messages]
    best = ranked((("", one) for one in texts), query)
    if not best:
        return f"[no message contains a word of `{query}`]"
    words = beginnings(query)
    shown = "\n".join(f"{at + 1} {messages[at].role}: {_excerpt(texts[at], words)}" for at in best[:_MAX_FOUND])
    return f"{shown}\n[{len(best)} messages, the best first; `show` them by their numbers]"


def _excerpt(text: str, words: list[str]) -> str:
    """Return the surroundings of the first word that occurs, in one line."""
    lowered = text.lower()
    at = min((found for one in words if (found := lowered.find(one)) >= 0), default=0)
    part = " ".join(text[max(0, at - _AROUND) : at + _AROUND].split())
    return f"{'…' if at > _AROUND else ''}{part}{'…' if at + _AROUND < len(text) else ''}"
