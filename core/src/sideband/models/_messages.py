"""What users, models and tools say to each other, in one form for all providers.

A message is frozen, and made of parts. ``to_data`` gives the plain data that is stored and that hooks see;
``parse_message`` reads it back, and refuses what is no message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter

__all__ = [
    "AssistantMessage",
    "ImagePart",
    "Message",
    "StopReason",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultMessage",
    "Usage",
    "UserMessage",
    "parse_message",
    "parse_messages",
    "to_data",
]

_MOST = 10**15
"""Of tokens, and of dollars: nobody uses as much, and what a server or a file makes up can still be added."""

StopReason = Literal["end", "tool_calls", "length", "refusal", "aborted", "error"]
"""Why a model stopped: it was done, wants tools, ran into its limit, refuses; or it was stopped, or failed."""


class _MessageModel(BaseModel):
    # What is wrong with a message is logged, and what it says is not.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class TextPart(_MessageModel):
    """Text."""

    type: Literal["text"] = "text"
    text: str


class ImagePart(_MessageModel):
    """An image.

    Attributes:
        media_type: such as ``image/png``.
        data: the file, as base64.
    """

    type: Literal["image"] = "image"
    media_type: str = Field(pattern=r"^image/[a-z0-9.+-]+$")
    data: str


class ThinkingPart(_MessageModel):
    """What a model thought before it spoke.

    Attributes:
        text: as far as the provider shows it.
        signature: what the provider wants back unchanged, so that the model knows its thoughts again.
        redacted: whether the provider keeps the text to itself; ``signature`` then holds it in its own form.
    """

    type: Literal["thinking"] = "thinking"
    text: str = ""
    signature: str | None = None
    redacted: bool = False


class ToolCallPart(_MessageModel):
    """A model asks for a tool.

    Attributes:
        id: unique in the conversation.
        name: the tool as models see it, ``github__stars``.
        arguments: by name.
        problem: why the arguments could not be read, if the model wrote something else than a JSON object; the call
            is then answered with this, and never run.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str = Field(min_length=1)
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    problem: str | None = None


class Usage(_MessageModel):
    """What model calls used, in tokens.

    Attributes:
        input: what was read and neither taken from a cache nor put into one.
        output: what was written, thoughts included.
        cache_read, cache_write: what was read from a cache, and put into one.
        reasoning: how much of ``output`` was thought.
        cost: US dollars; ``None`` if the prices are not known.
    """

    input: int = Field(0, ge=0, le=_MOST)
    output: int = Field(0, ge=0, le=_MOST)
    cache_read: int = Field(0, ge=0, le=_MOST)
    cache_write: int = Field(0, ge=0, le=_MOST)
    reasoning: int = Field(0, ge=0, le=_MOST)
    cost: float | None = Field(None, ge=0, le=_MOST, allow_inf_nan=False)

    @property
    def context(self) -> int:
        """The tokens that the conversation has after this call."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        sums = {name: min(getattr(self, name) + getattr(other, name), _MOST) for name in _COUNTS}
        return Usage(**sums, cost=min(sum(costs), _MOST) if costs else None)


_COUNTS = Usage.model_fields.keys() - {"cost"}


def _as_parts(content: Any) -> Any:
    """A plain text stands for one part of text."""
    return ({"type": "text", "text": content},) if isinstance(content, str) else content


_Shown = Annotated[TextPart | ImagePart, Field(discriminator="type")]
_Said = Annotated[TextPart | ThinkingPart | ToolCallPart, Field(discriminator="type")]
_ShownParts = Annotated[tuple[_Shown, ...], BeforeValidator(_as_parts)]
_SaidParts = Annotated[tuple[_Said, ...], BeforeValidator(_as_parts)]


class UserMessage(_MessageModel):
    """What the model is told: by a user, or by whoever ``source`` names.

    Attributes:
        content: its parts; a plain text is one part.
        source: ``user``, ``summary`` for what stands for older messages, ``branch`` for what was done on another
            branch, ``agent`` for a parent, else the plugin that added it.

    Example:
        >>> UserMessage(content="hello").text
        'hello'
    """

    role: Literal["user"] = "user"
    content: _ShownParts
    source: str = "user"

    @property
    def text(self) -> str:
        """Its text, without images."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class AssistantMessage(_MessageModel):
    """What a model said.

    Attributes:
        content: its parts, in the order in which they were said.
        model: ``provider:model``.
        stop: why it ended.
        usage: what the call used.
        error: the failure, as data, if ``stop`` is ``error``. Such a message is never sent to a provider.
    """

    role: Literal["assistant"] = "assistant"
    content: _SaidParts
    model: str = ""
    stop: StopReason = "end"
    usage: Usage = Usage()
    error: dict[str, JsonValue] | None = None

    @property
    def text(self) -> str:
        """What it said to the user."""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The tools that it asks for, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolCallPart))


class ToolResultMessage(_MessageModel):
    """What a tool answered.

    Attributes:
        call: the id of the call.
        tool: the tool as models see it.
        content: what the model sees.
        is_error: whether it failed.
        metadata: what is known about it and not sent to the model: ``effect``, ``ms``, ``output`` (the handle of the
            whole result if only a part of it is shown), ….
    """

    role: Literal["tool"] = "tool"
    call: str
    tool: str
    content: _ShownParts
    is_error: bool = False
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its text, without images."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


Message = Annotated[UserMessage | AssistantMessage | ToolResultMessage, Field(discriminator="role")]
"""Any message, told apart by its ``role``."""

_ONE: TypeAdapter[Message] = TypeAdapter(Message, config=ConfigDict(hide_input_in_errors=True))


def parse_message(data: Mapping[str, Any]) -> Message:
    """The message that plain data describes.

    Raises:
        ValueError: it describes none; says what is wrong.

    Example:
        >>> parse_message({"role": "user", "content": "hello"}).text
        'hello'
    """
    return _ONE.validate_python(data)


def parse_messages(data: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages that plain data describes. Raises what ``parse_message`` raises."""
    return tuple(parse_message(one) for one in data)


def to_data(message: Message) -> dict[str, Any]:
    """A message as plain data, which ``parse_message`` reads back.

    Example:
        >>> to_data(UserMessage(content="hello"))
        {'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}], 'source': 'user'}
    """
    return message.model_dump(mode="json", exclude_none=True)
