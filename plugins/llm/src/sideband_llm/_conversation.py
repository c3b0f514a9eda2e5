"""A conversation with a model on behalf of a skill: model calls as child effects, and answers as typed data."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, NoReturn

from attrs import define, field
from sideband.contexts import HandlerContext
from sideband.messages import AssistantMessage, Message, Usage, UserMessage, parse_message, to_data
from sideband.providers import ToolSchema

from ._output_schema import OutputSchema

_FENCED = re.compile(r"\s*```[a-zA-Z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_MAX_DATA = 1 << 20
_WHY_STOPPED = {
    "length": "it was cut because it reached the maximum length",
    "refusal": "the model refused to answer",
}


@define(eq=False)
class Conversation:
    """The messages of a conversation, and what its model calls have used.

    Args:
        ctx: the context of the op. The model calls are its child effects.
        model: the model, as the caller names it.
        system: the system prompt.
        messages: the messages so far.
        schema: the schema of the answer.
        max_tokens, temperature: see ``GenerateParams``.
        tools: the tools that the model may call.

    Attributes:
        usage: the usage of all model calls.
        calls: the number of model calls.
    """

    ctx: HandlerContext
    model: str
    system: str = ""
    messages: list[Message] = field(factory=list)
    schema: OutputSchema | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[ToolSchema, ...] = ()
    usage: Usage = field(factory=Usage, init=False)
    calls: int = field(default=0, init=False)

    async def ask(self) -> AssistantMessage:
        """Call the model, and add its answer to the messages.

        If the op runs again because its call was interrupted, answers that were recorded are not requested again.

        Raises:
            OpError: if the model call failed or was denied.
        """
        wanted = {
            "model": self.model,
            "system": self.system,
            "messages": [to_data(one) for one in self.messages],
            "tools": [one.model_dump(mode="json") for one in self.tools],
            "output_schema": None if self.schema is None else dict(self.schema.schema),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        params = {name: value for name, value in wanted.items() if value}
        if self.temperature is not None:
            params["temperature"] = self.temperature
        self.calls += 1
        answer = parse_message(await self.ctx.dispatch("llm.generate", params, key=self._key(params)))
        assert isinstance(answer, AssistantMessage)  # noqa: S101  what the op returns
        self.usage += answer.usage
        self.messages.append(answer)
        return answer

    def correct(self, problem: str) -> None:
        """Ask the model to correct its answer."""
        assert self.schema is not None  # noqa: S101  only data is corrected
        self.messages.append(
            UserMessage(
                content=f"Your answer does not fit the JSON Schema: {problem}.\n\n"
                f"Answer again with only JSON that fits this schema:\n{self.schema.text}",
                source="llm",
            )
        )

    def _key(self, params: Any) -> str | None:
        """Return the key of the next model call, which is the same if the op runs again with the same answers."""
        if self.ctx.key is None:
            return None
        digest = hashlib.sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()[:16]
        return f"{self.ctx.key}/llm.generate~{self.calls}~{digest}"


def data_of(answer: AssistantMessage, schema: OutputSchema) -> tuple[Any, str | None]:
    """Return the data of an answer, and what is wrong with it, or ``None``.

    Raises:
        OutputSchemaInvalid: if it cannot be checked.
    """
    if answer.stop in _WHY_STOPPED:
        return None, _WHY_STOPPED[answer.stop]
    text = answer.text
    if len(text) > _MAX_DATA:
        return None, f"it has {len(text):,} characters; the maximum is {_MAX_DATA:,}"
    fenced = _FENCED.match(text)
    try:
        data = json.loads(
            text if fenced is None else fenced[1],
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=_without_duplicates,
        )
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON ({error})"
    return data, schema.problem(data)


def can_correct(answer: AssistantMessage) -> bool:
    """Return whether asking the model again may help."""
    return answer.stop not in _WHY_STOPPED


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a property twice")
    return found
