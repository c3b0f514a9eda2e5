"""The last turns of a session, shown when a chat continues it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sideband.messages import AssistantMessage, UserMessage

if TYPE_CHECKING:
    from sideband.messages import Message

_MAX_TURNS = 2
_MAX_LINES = 20
_MAX_LENGTH = 2_000


def last_turns(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return what the user said in the last turns, and the last answer in each. Long texts are cut.

    Args:
        messages: the messages of the session, oldest first.
    """
    turns: list[tuple[str, str]] = []
    for one in messages:
        if isinstance(one, UserMessage) and one.source == "user":
            turns.append((_beginning(one.text), ""))
        elif isinstance(one, AssistantMessage) and one.text.strip() and turns:
            turns[-1] = turns[-1][0], _ending(one.text)
    return turns[-_MAX_TURNS:]


def _beginning(text: str) -> str:
    lines = _lines(text)
    return "\n".join([*lines[:_MAX_LINES], *_omitted(len(lines))])[:_MAX_LENGTH]


def _ending(text: str) -> str:
    lines = _lines(text)
    return "\n".join([*_omitted(len(lines)), *lines[-_MAX_LINES:]])[-_MAX_LENGTH:]


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _omitted(count: int) -> Iterator[str]:
    if count > _MAX_LINES:
        yield f"(… {count - _MAX_LINES:,} lines omitted …)"
