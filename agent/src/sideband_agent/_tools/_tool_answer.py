"""The answer to a tool call, in one form from the tool to the message.

It is built from the tool's return value, a record or an error, and becomes the message that the model reads.
"""

from __future__ import annotations

from typing import Annotated, Any

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field
from sideband.messages import ImagePart, TextPart, ToolCallPart, ToolResultMessage

from .._errors import RunHalted
from ._error_classes import error_class


class ToolAnswer(BaseModel):
    """The answer to a tool call; also the recorded result of its effect.

    Attributes:
        content: message parts.
        is_error: whether the tool failed or was not run.
        terminate: whether the run may end after it.
        metadata: details that are not sent to the model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: tuple[Annotated[TextPart | ImagePart, Field(discriminator="type")], ...]
    is_error: bool = False
    terminate: bool = False
    metadata: dict[str, Any] = {}

    @classmethod
    def error(cls, text: str, **metadata: Any) -> ToolAnswer:
        """Build an answer that explains why there is no result."""
        return cls(content=(TextPart(text=text),), is_error=True, metadata=metadata)

    def noting(self, **metadata: Any) -> ToolAnswer:
        """Return a copy with additional metadata, such as ``replayed`` if the answer comes from a record."""
        return ToolAnswer(
            content=self.content,
            is_error=self.is_error,
            terminate=self.terminate,
            metadata={**self.metadata, **metadata},
        )

    @property
    def shown(self) -> str | list[dict[str, Any]]:
        """The content as plugins see it: a text, or parts as data."""
        if len(self.content) == 1 and isinstance(self.content[0], TextPart):
            return self.content[0].text
        return [part.model_dump() for part in self.content]

    def message(self, call: ToolCallPart) -> ToolResultMessage:
        """Build the message that answers a call."""
        metadata = {name: value for name, value in self.metadata.items() if value is not None}
        if self.is_error and isinstance(code := metadata.get("code"), str):
            metadata["error_class"] = error_class(code)
        return ToolResultMessage(
            call=call.id, tool=call.name, content=self.content, is_error=self.is_error, metadata=metadata
        )


@frozen
class TurnAnswers:
    """The answers to the calls of one turn.

    Attributes:
        messages: the results, in the order of the calls.
        terminate: whether all of them allow the run to end.
        changed: whether a tool was run, now or before, that changes something and cannot be repeated.
        halt: why the run must end, if a guard halted it.
    """

    messages: tuple[ToolResultMessage, ...]
    terminate: bool = False
    changed: bool = False
    halt: RunHalted | None = None
