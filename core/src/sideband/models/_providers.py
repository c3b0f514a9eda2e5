"""What a provider of models promises, what it is asked, and how it fails.

A provider is a plugin of the group ``sideband.v1.provider``. It turns a request into what its server speaks, and the
server's stream into events. Nobody but the op family `llm` calls it, so that each model call is gated and recorded.

OpFailed
└── ProviderError                            provider.failed
    ├── ProviderRefused(RuntimeError)        provider.refused       the server answered with an error
    ├── ProviderUnreachable(ConnectionError) provider.unreachable   no connection, or it broke off before an answer
    ├── ProviderTimeout(TimeoutError)        provider.timeout       nothing came for too long
    ├── StreamBroken(ConnectionError)        provider.stream        the stream ended without its end, or is malformed
    └── ProviderUnconfigured(LookupError)    provider.unconfigured  a key or an address is missing
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ..exit_codes import ExitCode
from ..ops._errors import OpFailed
from ._messages import AssistantMessage, Message, Usage

if TYPE_CHECKING:  # a context offers providers, and importing it here would need this module
    from ..contexts._plugin import PluginContext

__all__ = [
    "ANSWER_LIMITS",
    "AnswerLimits",
    "Finished",
    "ModelInfo",
    "ModelRequest",
    "Prices",
    "Provider",
    "ProviderError",
    "ProviderRefused",
    "ProviderTimeout",
    "ProviderUnconfigured",
    "ProviderUnreachable",
    "StreamBroken",
    "StreamEvent",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolSchema",
]

_LONGEST_BODY = 4_000
_MILLION = 1_000_000
_LONGEST_HEADER = 200
_KEPT_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")
_KEPT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")


class _ProviderModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prices(_ProviderModel):
    """US dollars for a million tokens.

    Attributes:
        input, output: read, and written.
        cache_read, cache_write: read from a cache, and put into one; ``None``: as ``input``.
    """

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(None, ge=0)
    cache_write: float | None = Field(None, ge=0)

    def cost(self, usage: Usage) -> float:
        """What ``usage`` costs, in US dollars.

        Example:
            >>> Prices(input=3, output=15).cost(Usage(input=1_000_000, output=100_000, cache_read=1_000_000))
            7.5
        """
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * read
            + usage.cache_write * written
        ) / _MILLION


class ModelInfo(_ProviderModel):
    """What is known about a model.

    Attributes:
        id: its name at the provider, without the provider's.
        context_window: tokens; ``None`` if not known.
        max_output: tokens; ``None`` if not known.
        images, thinking, tools: what it can deal with.
        prices: ``None`` if not known. All 0 for a model that runs here.
    """

    id: str
    context_window: int | None = Field(None, gt=0)
    max_output: int | None = Field(None, gt=0)
    images: bool = False
    thinking: bool = False
    tools: bool = True
    prices: Prices | None = None


class AnswerLimits(_ProviderModel):
    """How much a model may say in one answer. A server, or a model that has lost its way, may go on for ever.

    Attributes:
        characters: of the answer in all. A longer one is no answer.
        parts: of which it is made. One of more parts is no answer.
        calls: tool calls in it. Those beyond are left out, and the model is told.
        arguments: characters of the arguments of all its calls, as JSON. A call beyond is not run.
        values: in those arguments, at any depth. A call beyond is not run.
        depth: how deep arguments may be nested. A call with deeper ones is not run.
        name: characters of a tool's name. A call with a longer one is not run.
        id: characters of a call's id. A longer one is replaced.
    """

    characters: int = 16 << 20
    parts: int = 10_000
    calls: int = 128
    arguments: int = 1 << 19
    values: int = 20_000
    depth: int = 32
    name: int = 64
    id: int = 200


ANSWER_LIMITS = AnswerLimits()
"""The limits of every answer. No provider takes longer names of tools in what it is sent."""


class ToolSchema(_ProviderModel):
    """A tool as a model is told about it.

    Attributes:
        name: ``github__stars``.
        description: for the model.
        parameters: a JSON Schema object.
    """

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default={"type": "object", "properties": {}})


class ModelRequest(_ProviderModel):
    """What a model is asked.

    Attributes:
        model: its name at the provider, without the provider's.
        system: the system prompt; empty for none.
        messages: oldest first; each tool call is followed by its result.
        tools: in the order in which they are sent.
        tool_choice: ``auto``, ``none``, ``required``, or the name of the one tool that must be called.
        output_schema: a JSON Schema that the answer, as JSON text, must fit; ``None``: free text.
        max_tokens: how long the answer may be; ``None``: the provider's limit.
        temperature: ``None`` leaves it to the provider.
        thinking: how much the model may think before it speaks; ``None`` leaves it to the provider.
        stop: texts that end the answer.
        cache_key: the same for all requests that share a prefix, a hint for the provider's cache.
        options: what only this provider understands, added to its request as it is.
    """

    model: str
    system: str = ""
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: str = "auto"
    output_schema: dict[str, JsonValue] | None = None
    max_tokens: int | None = Field(None, gt=0)
    temperature: float | None = Field(None, ge=0, allow_inf_nan=False)
    thinking: Literal["off", "low", "medium", "high"] | None = None
    stop: tuple[str, ...] = ()
    cache_key: str = ""
    options: dict[str, JsonValue] = Field(default_factory=dict)


class TextDelta(_ProviderModel):
    """More text of the answer."""

    type: Literal["text"] = "text"
    text: str


class ThinkingDelta(_ProviderModel):
    """More of what the model thinks."""

    type: Literal["thinking"] = "thinking"
    text: str


class ToolCallDelta(_ProviderModel):
    """More of a tool call. What can be used stands in the finished message only.

    Attributes:
        index: which of the answer's tool calls, from 0.
        name: the tool; empty where it was told before.
        arguments: the next piece of the arguments' JSON text.
    """

    type: Literal["tool_call"] = "tool_call"
    index: int
    name: str = ""
    arguments: str = ""


class Finished(_ProviderModel):
    """The stream has come to its end, as its protocol says it.

    Attributes:
        message: the whole answer, with its usage. ``model`` and ``usage.cost`` are filled in by `llm`.
    """

    type: Literal["finished"] = "finished"
    message: AssistantMessage


StreamEvent = TextDelta | ThinkingDelta | ToolCallDelta | Finished


class Provider(Protocol):
    """One service that runs models. ``sideband_providers()`` of the plugin returns a list of them.

    Where it depends on the configuration which there are, that function has one parameter, ``config``.

    Attributes:
        name: the entry-point name, or one that begins with it and ``-``: what stands before the colon in ``openai:m``.
    """

    name: str

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """The models that can be used now, with what is known about them: asked of the server where that is usual.

        Raises:
            ProviderError: it can't be asked; ``ProviderUnconfigured`` if a key is missing.
        """

    def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Ask a model: an async generator of what it says, the last of it ``Finished``.

        A stream that breaks off, is malformed, or ends without the end that its protocol has, is an error and never an
        answer. The generator may be closed at any time, which closes the connection.

        Raises:
            ProviderError: there is no answer; its class and its data say why.
        """


class ProviderError(OpFailed):
    """A model call has no answer. The world is as it was, so it may be repeated.

    Args:
        provider: its name.
        message: one sentence.
        status: the HTTP status, if there was an answer.
        body: what the server said; cut once what is secret was taken out.
        headers: those of the answer; only what tells when to come again is kept.
        cause: the name of the class of the exception behind it.
        hint: what to do.
    """

    code = "provider.failed"
    exit_code = ExitCode.UNAVAILABLE
    nothing_happened = True

    def __init__(
        self,
        provider: str,
        message: str,
        *,
        status: int | None = None,
        body: str = "",
        headers: Mapping[str, str] | None = None,
        cause: str = "",
        hint: str = "",
        retryable: bool | None = None,
    ) -> None:
        super().__init__(f"{provider}: {message}", hint=hint, retryable=retryable)
        self.provider = provider
        self.status = status
        self.body = body
        self.cause = cause
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        self.headers = {
            name: value for name, value in lowered.items() if name in _KEPT_HEADERS or name.startswith(_KEPT_PREFIXES)
        }

    def clean(self, text: Callable[[str], str]) -> None:
        """See ``SidebandError.clean``: a server may say again what it was sent."""
        super().clean(text)
        self.body = text(self.body)[:_LONGEST_BODY]
        self.headers = {name: text(value)[:_LONGEST_HEADER] for name, value in self.headers.items()}

    def as_dict(self) -> dict[str, Any]:
        """The error as data, with what the server said."""
        said = {"status": self.status, "body": self.body, "headers": self.headers, "cause": self.cause}
        return {
            **super().as_dict(),
            "provider": self.provider,
            **{name: value for name, value in said.items() if value},
        }


class ProviderRefused(ProviderError, RuntimeError):
    """The server answered with an error: an HTTP status of one, or an error inside an answer that began well."""

    code = "provider.refused"


class ProviderUnreachable(ProviderError, ConnectionError):
    """No connection, or it broke off before an answer began."""

    code = "provider.unreachable"
    retryable = True


class ProviderTimeout(ProviderError, TimeoutError):
    """The server was silent for too long."""

    code = "provider.timeout"
    retryable = True


class StreamBroken(ProviderError, ConnectionError):
    """The stream ended before its end, or says something that its protocol does not know."""

    code = "provider.stream"
    retryable = True


class ProviderUnconfigured(ProviderError, LookupError):
    """A key or an address is missing; the hint says where it can be set."""

    code = "provider.unconfigured"
    exit_code = ExitCode.CONFIGURATION
