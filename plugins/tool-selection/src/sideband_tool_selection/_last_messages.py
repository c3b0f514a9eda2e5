"""What a conversation says about tools: the last inputs, and the tools that were called or requested lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ._expand_tool import EXPAND

_INPUTS = 3
_LONGEST_INPUT = 2_000
_CALLED = 20


@frozen
class LastMessages:
    """The part of a conversation that selects tools. It is derived from the messages, so it survives a restart.

    Attributes:
        newest: the last input of the user.
        text: the last inputs, the newest last.
        called: the names of the tools that the model called lately, the newest first.
        requested: the names of the tools that the model requested lately, the newest first.
    """

    newest: str
    text: str
    called: tuple[str, ...]
    requested: tuple[str, ...]

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, Any]], *, inputs: int, requested: int) -> LastMessages:
        """Read the messages from the newest to the oldest.

        Args:
            messages: the messages, oldest first.
            inputs: the number of inputs for which calls and requests count.
            requested: the maximum number of requested tools.
        """
        texts: list[str] = []
        called: dict[str, None] = {}
        wanted: dict[str, None] = {}
        seen = 0
        for message in reversed(messages):
            role = message.get("role")
            if role == "user":
                seen += 1
                if len(texts) < _INPUTS:
                    texts.append(_text(message)[-_LONGEST_INPUT:])
                if seen >= inputs:
                    break
            elif role == "assistant":
                called.update(dict.fromkeys(_calls(message)))
            elif role == "tool" and message.get("tool") == EXPAND:
                names = message.get("metadata", {}).get("expanded", ())
                wanted.update(dict.fromkeys(name for name in names if isinstance(name, str)))
        called.pop(EXPAND, None)
        newest = texts[0] if texts else ""
        return cls(newest, "\n".join(reversed(texts)), tuple(called)[:_CALLED], tuple(wanted)[:requested])


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content", ())
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if part.get("type") == "text")


def _calls(message: Mapping[str, Any]) -> list[str]:
    return [part["name"] for part in message.get("content", ()) if part.get("type") == "tool_call"]
