"""Sanitize a model's answer so that it can be stored and sent again. Its tool calls are untrusted."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from operator import eq
from typing import Any

from attrs import define, field
from sideband.messages import AssistantMessage, ToolCallPart
from sideband.providers import ANSWER_LIMITS

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[!-~]+")
_LONGEST_PROBLEM = 500
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def fitted(answer: AssistantMessage, used: set[str]) -> AssistantMessage:
    """Return the answer with tool calls that every provider accepts, each with a unique id.

    A call that exceeds a limit or has an invalid name is kept with a ``problem``, so that the model sees the error; it
    is never run. A valid answer is returned unchanged.

    Args:
        answer: the answer of the model.
        used: the ids of earlier calls in the conversation, to which those of the answer are added.
    """
    fitting = _Fitting(used)
    content: list[Any] = []
    left_out = 0
    for part in answer.content:
        if not isinstance(part, ToolCallPart):
            content.append(part)
        elif fitting.calls < ANSWER_LIMITS.calls:
            content.append(fitting.fit(part))
        else:
            left_out += 1
            if left_out == 1:
                place, first = len(content), part
                content.append(part)
    if left_out:
        content[place] = fitting.stand_in(first, left_out)
    return answer if content == list(answer.content) else answer.model_copy(update={"content": tuple(content)})


def with_plain_names(message: AssistantMessage) -> AssistantMessage:
    """Return the message with tool names that every provider accepts. An imported message may have others."""
    names = {part.name: _name(part.name)[0] for part in message.tool_calls}
    if all(map(eq, names.keys(), names.values())):
        return message
    content = [
        part.model_copy(update={"name": names[part.name]}) if isinstance(part, ToolCallPart) else part
        for part in message.content
    ]
    return message.model_copy(update={"content": tuple(content)})


@define
class _Fitting:
    """A sanitiser for the calls of one answer."""

    used: set[str]
    calls: int = field(default=0, init=False)
    _characters: int = field(default=ANSWER_LIMITS.arguments, init=False)
    _values: int = field(default=ANSWER_LIMITS.values, init=False)

    def fit(self, part: ToolCallPart) -> ToolCallPart:
        """Return the sanitized call."""
        self.calls += 1
        name, problem = _name(part.name)
        problem = problem or part.problem or self._problem(part.arguments)
        identity = {"id": self._id(part.id), "name": name}
        kept = part if identity == {"id": part.id, "name": part.name} else part.model_copy(update=identity)
        if problem is None:
            return kept
        arguments = part.arguments if problem == part.problem and self._problem(part.arguments) is None else {}
        return kept.model_copy(update={"problem": problem[:_LONGEST_PROBLEM], "arguments": arguments})

    def stand_in(self, part: ToolCallPart, count: int) -> ToolCallPart:
        """Return one call that represents all dropped ones."""
        kept = self.fit(part)
        problem = (
            f"an answer may have {ANSWER_LIMITS.calls} tool calls; this one and {count - 1:,} more after it were "
            "dropped"
        )
        return kept.model_copy(update={"arguments": {}, "problem": problem})

    def _id(self, given: str) -> str:
        usable = len(given) <= ANSWER_LIMITS.id and _ID.fullmatch(given) and given not in self.used
        own = given if usable else next(one for one in self._other_ids(given) if one not in self.used)
        self.used.add(own)
        return own

    def _other_ids(self, given: str) -> Iterator[str]:
        """Yield ids that are the same when a recorded run is replayed."""
        for number in count(len(self.used)):
            yield f"call_{hashlib.sha256(f'{number} {given}'.encode(errors='replace')).hexdigest()[:16]}"

    def _problem(self, arguments: Mapping[str, Any]) -> str | None:
        """Return why the arguments are rejected, or ``None``. Accepted ones are charged to the limits of the answer."""
        values = _count(arguments, self._values)
        if values is None:
            return f"the arguments are nested deeper than {ANSWER_LIMITS.depth} levels or have too many values"
        self._values -= values
        try:
            characters = len(_encode(arguments))
        except ValueError:
            return "the arguments contain a number that is not valid JSON"
        if characters > self._characters:
            return f"the arguments of the answer exceed the limit of {ANSWER_LIMITS.arguments:,} characters"
        self._characters -= characters
        return None


def _name(given: str) -> tuple[str, str | None]:
    """Return a name that every provider accepts, and what is wrong with the given one, or ``None``."""
    name = given.replace(".", "__")
    if name and len(name) <= ANSWER_LIMITS.name and not _NOT_IN_NAMES.search(name):
        return name, None
    plain = _NOT_IN_NAMES.sub("_", name[: ANSWER_LIMITS.name]) or "_"
    return plain, f"invalid tool name: expected up to {ANSWER_LIMITS.name} letters, digits, `_` and `-`"


def _count(arguments: Mapping[str, Any], most: int) -> int | None:
    """Return the number of values in the arguments, or ``None`` if more than ``most`` or nested too deeply."""
    level: list[Any] = [arguments]
    count = 0
    for _ in range(ANSWER_LIMITS.depth):
        level = [inner for one in level for inner in (one.values() if isinstance(one, Mapping) else one)]
        count += len(level)
        if count > most:
            return None
        level = [one for one in level if isinstance(one, Mapping | list | tuple)]
        if not level:
            return count
    return None
