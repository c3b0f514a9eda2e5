"""Messages between users, models and tools, in one format for all providers.

A message is frozen and consists of parts. ``to_data`` converts it to plain data, which is stored and passed to hooks;
``parse_message`` validates such data and converts it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter, model_validator

from ._pieces import CarryingModel, CarryingTuple, Fragment, JsonPieces, canonical_json, fragment

__all__ = [
    "AssistantMessage",
    "Attachment",
    "AudioPart",
    "CarryingTuple",
    "FilePart",
    "Fragment",
    "ImagePart",
    "ImageUrlPart",
    "JsonPieces",
    "Message",
    "StopReason",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultMessage",
    "Usage",
    "UserMessage",
    "fragment",
    "parse_message",
    "parse_messages",
    "to_data",
]

MAX_COUNT = 10**15
"""The maximum of tokens and dollars, so that bogus numbers from a server or file can still be added."""

_MAX_DATA = 48 << 20
"""The maximum length of a file as base64. No provider accepts larger requests."""

StopReason = Literal["end", "tool_calls", "length", "refusal", "aborted", "error"]
"""Why a model stopped: finished, requests tools, reached its token limit, refused, was aborted, or failed."""


class _MessageModel(CarryingModel):
    # Validation errors are logged, and must not contain the content of messages.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


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


class ImageUrlPart(_MessageModel):
    """An image that the provider gets from its address. The server there sees a request of the provider.

    Attributes:
        url: an ``http`` or ``https`` address without a user name.
    """

    type: Literal["image_url"] = "image_url"
    url: str = Field(pattern=r"^https?://[A-Za-z0-9._:\[\]-]+([/?#][!-~]*)?$", max_length=8_000)


class FilePart(_MessageModel):
    """A file, such as a PDF. Providers differ in the types that they accept.

    Attributes:
        media_type: such as ``application/pdf``.
        data: the file, as base64.
        name: its name, which the model may see.
    """

    type: Literal["file"] = "file"
    media_type: str = Field(pattern=r"^[a-z]+/[a-z0-9.+-]+$")
    data: str = Field(max_length=_MAX_DATA)
    name: str = Field(min_length=1, max_length=255)


class AudioPart(_MessageModel):
    """A recording.

    Attributes:
        media_type: such as ``audio/wav``.
        data: the file, as base64.
    """

    type: Literal["audio"] = "audio"
    media_type: str = Field(pattern=r"^audio/[a-z0-9.+-]+$")
    data: str = Field(max_length=_MAX_DATA)


Attachment = ImagePart | ImageUrlPart | FilePart | AudioPart
"""What a user can add to a text."""


class ThinkingPart(_MessageModel):
    """The reasoning of a model before its answer.

    Attributes:
        text: the part of the reasoning that the provider reveals.
        signature: an opaque value that must be sent back to the provider unchanged.
        redacted: whether the provider hides the text; ``signature`` then contains it in encrypted form.
    """

    type: Literal["thinking"] = "thinking"
    text: str = ""
    signature: str | None = None
    redacted: bool = False


class ToolCallPart(_MessageModel):
    """A tool call requested by a model.

    Attributes:
        id: an id that is unique in the conversation.
        name: the name of the tool as models see it, such as ``github__stars``.
        arguments: the arguments, by name.
        problem: the reason why the arguments could not be parsed, if they were not a JSON object. The call is then not
            run; its result is this message. Set if a number of the arguments is not finite, such as ``1e999``, which
            Python parses but JSON cannot represent.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str = Field(min_length=1)
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    problem: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_numbers_that_are_not_finite(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("problem"):
            return data
        try:
            canonical_json(data.get("arguments"))
        except ValueError:
            return {**data, "arguments": {}, "problem": "invalid arguments: a number is too large or not a number"}
        except (TypeError, RecursionError):
            # The validation of the fields reports it.
            pass
        return data


class Usage(_MessageModel):
    """The token usage of model calls.

    Attributes:
        input: input tokens that were neither read from nor written to a cache.
        output: output tokens, including reasoning.
        cache_read, cache_write: input tokens that were read from, or written to, a cache.
        reasoning: the part of ``output`` that was reasoning.
        cost: the cost in US dollars, or ``None`` if prices are unknown.
    """

    input: int = Field(default=0, ge=0, le=MAX_COUNT)
    output: int = Field(default=0, ge=0, le=MAX_COUNT)
    cache_read: int = Field(default=0, ge=0, le=MAX_COUNT)
    cache_write: int = Field(default=0, ge=0, le=MAX_COUNT)
    reasoning: int = Field(default=0, ge=0, le=MAX_COUNT)
    cost: float | None = Field(default=None, ge=0, le=MAX_COUNT, allow_inf_nan=False)

    @property
    def context(self) -> int:
        """The size of the conversation after this call, in tokens."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        sums = {name: min(getattr(self, name) + getattr(other, name), MAX_COUNT) for name in _COUNTS}
        return Usage(**sums, cost=min(sum(costs), MAX_COUNT) if costs else None)


_COUNTS = Usage.model_fields.keys() - {"cost"}


def _as_parts(content: Any) -> Any:
    """Convert a string to a single text part."""
    return ({"type": "text", "text": content},) if isinstance(content, str) else content


_Given = Annotated[TextPart | Attachment, Field(discriminator="type")]
_Shown = Annotated[TextPart | ImagePart, Field(discriminator="type")]
_Said = Annotated[TextPart | ThinkingPart | ToolCallPart, Field(discriminator="type")]
_GivenParts = Annotated[tuple[_Given, ...], BeforeValidator(_as_parts, json_schema_input_type=str | tuple[_Given, ...])]
_ShownParts = Annotated[tuple[_Shown, ...], BeforeValidator(_as_parts, json_schema_input_type=str | tuple[_Shown, ...])]
_SaidParts = Annotated[tuple[_Said, ...], BeforeValidator(_as_parts, json_schema_input_type=str | tuple[_Said, ...])]


class UserMessage(_MessageModel):
    """A message to the model, from a user or another ``source``.

    Attributes:
        content: the parts; a string is converted to one text part.
        source: ``user``, ``summary`` for a summary of older messages, ``branch`` for a summary of another branch,
            ``agent`` for a parent agent, ``program`` for a program that the user ran, ``goal`` for the goal of the
            session, or the name of the plugin that added it.

    Example:
        >>> UserMessage(content="hello").text
        'hello'
    """

    role: Literal["user"] = "user"
    content: _GivenParts
    source: str = "user"

    if TYPE_CHECKING:  # type checkers do not know that pydantic converts the content

        def __init__(self, *, content: str | Sequence[_Given], source: str = "user") -> None: ...

    @property
    def text(self) -> str:
        """The text, without attachments."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class AssistantMessage(_MessageModel):
    """A message from a model.

    Attributes:
        content: the parts, in order.
        model: ``provider:model``.
        stop: why the model stopped.
        usage: the token usage of the call.
        error: the failure, as data, if ``stop`` is ``error``. Such a message is never sent to a provider.
        metadata: data that is not sent to the model: ``route`` and ``plugin`` if a route wrote the message,
            ``changed_by`` (the plugins that changed its text), ``draft`` if a plugin requested another round.
    """

    role: Literal["assistant"] = "assistant"
    content: _SaidParts
    model: str = ""
    stop: StopReason = "end"
    usage: Usage = Field(default_factory=Usage)
    error: dict[str, JsonValue] | None = None
    metadata: dict[str, JsonValue] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | Sequence[_Said],
            model: str = "",
            stop: StopReason = "end",
            usage: Usage = ...,
            error: dict[str, JsonValue] | None = None,
            metadata: dict[str, JsonValue] | None = None,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text, without reasoning and tool calls."""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The requested tool calls, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolCallPart))


class ToolResultMessage(_MessageModel):
    """The result of a tool call.

    Attributes:
        call: the id of the call.
        tool: the name of the tool as models see it.
        content: the content for the model.
        is_error: whether the call failed.
        metadata: data that is not sent to the model: ``effect``, ``ms``, ``output`` (the handle of the complete result
            if it was truncated), and more.
    """

    role: Literal["tool"] = "tool"
    call: str
    tool: str
    content: _ShownParts
    is_error: bool = False
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            call: str,
            tool: str,
            content: str | Sequence[_Shown],
            is_error: bool = False,
            metadata: dict[str, JsonValue] = ...,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text, without images."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


Message = Annotated[UserMessage | AssistantMessage | ToolResultMessage, Field(discriminator="role")]
"""Any message, discriminated by ``role``."""

_ONE: TypeAdapter[Message] = TypeAdapter(Message, config=ConfigDict(hide_input_in_errors=True, defer_build=True))


def parse_message(data: Mapping[str, Any]) -> Message:
    """Convert plain data to a message.

    Raises:
        ValueError: if the data is not a valid message.

    Example:
        >>> parse_message({"role": "user", "content": "hello"}).text
        'hello'
    """
    return _ONE.validate_python(data)


def parse_messages(data: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Convert plain data to messages. Raises the same errors as ``parse_message``."""
    return tuple(parse_message(one) for one in data)


def to_data(message: Message) -> dict[str, Any]:
    """Convert a message to plain data, the inverse of ``parse_message``.

    Example:
        >>> to_data(UserMessage(content="hello"))
        {'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}], 'source': 'user'}
    """
    return message.model_dump(mode="json", exclude_none=True)
