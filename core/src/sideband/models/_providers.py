"""The protocol of model providers: requests, stream events and errors.

A provider is a plugin of the group ``sideband.v1.provider``. It translates requests to the protocol of its server, and
the server's stream to events. Only the op family `llm` calls it, so that each model call is checked and recorded.

OpFailed
└── ProviderError                            provider.failed
    ├── ProviderRefused(RuntimeError)        provider.refused       the server answered with an error
    ├── ProviderUnreachable(ConnectionError) provider.unreachable   connection failed, or was lost before a response
    ├── ProviderTimeout(TimeoutError)        provider.timeout       the server sent no data for too long
    ├── StreamBroken(ConnectionError)        provider.stream        the stream is truncated or malformed
    └── ProviderUnconfigured(LookupError)    provider.unconfigured  a key or an address is missing
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ..exit_codes import ExitCode
from ..ops._errors import OpFailed
from ._messages import MAX_COUNT, AssistantMessage, Message, Usage
from ._pieces import CarryingModel

if TYPE_CHECKING:  # `contexts` imports this module
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

_MAX_BODY = 4_000
_MILLION = 1_000_000
_MAX_HEADER = 200
_KEPT_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")
_KEPT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")


class _ProviderModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Prices(_ProviderModel):
    """Prices in US dollars per million tokens.

    Attributes:
        input, output: the prices of input and output tokens.
        cache_read, cache_write: the prices of tokens read from and written to a cache; ``None`` for the price of
            ``input``.
    """

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cache_read: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def cost(self, usage: Usage) -> float:
        """Return the cost of ``usage`` in US dollars, at most what ``Usage`` can hold: a server may list any prices.

        Example:
            >>> Prices(input=3, output=15).cost(Usage(input=1_000_000, output=100_000, cache_read=1_000_000))
            7.5
        """
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        cost = usage.input * self.input + usage.output * self.output
        cost += usage.cache_read * read + usage.cache_write * written
        return min(cost / _MILLION, float(MAX_COUNT))


class ModelInfo(_ProviderModel):
    """Metadata of a model.

    Attributes:
        id: the provider's name of the model, without the prefix ``provider:``.
        context_window: the context window in tokens, or ``None`` if unknown.
        max_output: the maximum number of output tokens, or ``None`` if unknown.
        images, files, audio: whether the model accepts images, PDFs and recordings.
        thinking, tools: whether it supports reasoning and tools.
        prices: the prices, or ``None`` if unknown. All 0 for a local model.
    """

    id: str
    context_window: int | None = Field(default=None, gt=0)
    max_output: int | None = Field(default=None, gt=0)
    images: bool = False
    files: bool = False
    audio: bool = False
    thinking: bool = False
    tools: bool = True
    prices: Prices | None = None


class AnswerLimits(_ProviderModel):
    """Limits of one answer of a model, since a faulty model or server may never stop sending.

    Attributes:
        characters: the maximum number of characters in total. A longer answer is an error.
        parts: the maximum number of parts. An answer with more parts is an error.
        calls: the maximum number of tool calls. Further calls are dropped, which is reported to the model.
        arguments: the maximum number of characters of all arguments, as JSON. Calls beyond it are not run.
        values: the maximum number of values in all arguments, at any depth. Calls beyond it are not run.
        depth: the maximum nesting depth of arguments. Calls with deeper arguments are not run.
        name: the maximum number of characters of a tool name. Calls with a longer name are not run.
        id: the maximum number of characters of a call id. A longer id is replaced.
    """

    characters: int = 16 << 20
    parts: int = 10_000
    calls: int = 128
    arguments: int = 1 << 19
    values: int = 20_000
    depth: int = 32
    name: int = 64
    id: int = 200


ANSWER_LIMITS = AnswerLimits.model_construct()
"""The limits of every answer. No provider accepts tool names longer than ``name`` in requests."""


class ToolSchema(CarryingModel):
    """The definition of a tool that is sent to a model.

    Attributes:
        name: the name of the tool as models see it, such as ``github__stars``.
        description: the description for the model.
        parameters: a JSON Schema of type ``object``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default={"type": "object", "properties": {}})


class ModelRequest(_ProviderModel):
    """A request to a model.

    Attributes:
        model: the provider's name of the model, without the prefix ``provider:``.
        system: the system prompt; may be empty.
        messages: the messages, oldest first; each tool call is followed by its result.
        tools: the tools, in the order in which they are sent.
        tool_choice: ``auto``, ``none``, ``required``, or the name of the tool that must be called.
        output_schema: a JSON Schema for the answer, which is then JSON text; ``None`` for free text.
        max_tokens: the maximum number of output tokens; ``None`` for the provider's limit.
        temperature: the sampling temperature; ``None`` for the provider's default.
        thinking: the reasoning effort; ``None`` for the provider's default.
        stop: stop sequences.
        cache_key: a hint for the provider's prompt cache: requests with a common prefix have the same key.
        options: provider-specific fields, added to the request unchanged.
    """

    model: str
    system: str = ""
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: str = "auto"
    output_schema: dict[str, JsonValue] | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    thinking: Literal["off", "low", "medium", "high"] | None = None
    stop: tuple[str, ...] = ()
    cache_key: str = ""
    options: dict[str, JsonValue] = Field(default_factory=dict)


class TextDelta(_ProviderModel):
    """The next piece of the answer's text."""

    type: Literal["text"] = "text"
    text: str


class ThinkingDelta(_ProviderModel):
    """The next piece of the model's reasoning."""

    type: Literal["thinking"] = "thinking"
    text: str


class ToolCallDelta(_ProviderModel):
    """The next piece of a tool call. Only the finished message contains the complete call.

    Attributes:
        index: the index of the tool call in the answer, from 0.
        name: the name of the tool; empty if an earlier delta contained it.
        arguments: the next piece of the arguments' JSON text.
    """

    type: Literal["tool_call"] = "tool_call"
    index: int
    name: str = ""
    arguments: str = ""


class Finished(_ProviderModel):
    """The regular end of the stream.

    Attributes:
        message: the complete answer with its usage. `llm` sets ``model`` and ``usage.cost``.
    """

    type: Literal["finished"] = "finished"
    message: AssistantMessage


StreamEvent = TextDelta | ThinkingDelta | ToolCallDelta | Finished
"""What a provider yields while it streams. The last event is ``Finished``."""


class Provider(Protocol):
    """A service that runs models. ``sideband_providers()`` of the plugin returns a list of providers.

    If the list depends on the configuration, that function takes one parameter, ``config``.

    Attributes:
        name: the entry-point name, optionally with a suffix that begins with ``-``: the prefix in ``openai:m``.
    """

    name: str

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """Return the available models, queried from the server if it supports that.

        Raises:
            ProviderError: if the server cannot be queried; ``ProviderUnconfigured`` if a key is missing.
        """

    def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Call a model and yield its answer as events, the last of which is ``Finished``.

        A truncated or malformed stream, or one without the regular end of its protocol, is an error, never an answer.
        The generator may be closed at any time, which closes the connection.

        Raises:
            ProviderError: if there is no complete answer.
        """


class ProviderError(OpFailed):
    """A model call failed. It had no effect, so it may be retried.

    Args:
        provider: the name of the provider.
        message: one sentence.
        status: the HTTP status, if the server responded.
        body: the body of the response; truncated after redaction.
        headers: the headers of the response; only rate-limit, retry and request-id headers are kept.
        cause: the class name of the underlying exception.
        hint: what to do.
        usage: what the failed call used, as far as the server reported it. It is charged like that of an answer.
    """

    code = "provider.failed"
    shared = True
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
        usage: Usage | None = None,
    ) -> None:
        super().__init__(f"{provider}: {message}", hint=hint, retryable=retryable)
        self.provider = provider
        self.usage = usage
        self.status = status
        self.body = body
        self.cause = cause
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        self.headers = {
            name: value for name, value in lowered.items() if name in _KEPT_HEADERS or name.startswith(_KEPT_PREFIXES)
        }

    def clean(self, text: Callable[[str], str]) -> None:
        """See ``SidebandError.clean``. A response may echo the request, and with it secrets."""
        super().clean(text)
        self.body = text(self.body)[:_MAX_BODY]
        self.headers = {name: text(value)[:_MAX_HEADER] for name, value in self.headers.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the error that ``as_dict`` described."""
        error = super().from_dict(data)
        error.provider, error.cause = str(data.get("provider", "")), str(data.get("cause", ""))
        error.status, error.body = data.get("status"), str(data.get("body", ""))
        error.headers = dict(data.get("headers") or {})
        error.usage = Usage.model_validate(data["usage"]) if data.get("usage") else None
        return error

    def as_dict(self) -> dict[str, Any]:
        """Return the error as data, including the response of the server."""
        usage = self.usage and self.usage.model_dump(exclude_none=True)
        response = {"status": self.status, "body": self.body, "headers": self.headers, "cause": self.cause}
        return {
            **super().as_dict(),
            "provider": self.provider,
            **{name: value for name, value in {**response, "usage": usage}.items() if value},
        }


class ProviderRefused(ProviderError, RuntimeError):
    """The server responded with an error: an HTTP error status, or an error event within a stream."""

    code = "provider.refused"


class ProviderUnreachable(ProviderError, ConnectionError):
    """The connection failed, or was lost before the response began."""

    code = "provider.unreachable"
    retryable = True


class ProviderTimeout(ProviderError, TimeoutError):
    """The server sent no data for too long."""

    code = "provider.timeout"
    retryable = True


class StreamBroken(ProviderError, ConnectionError):
    """The stream is truncated or violates its protocol."""

    code = "provider.stream"
    retryable = True


class ProviderUnconfigured(ProviderError, LookupError):
    """A key or an address is missing; the hint explains where to set it."""

    code = "provider.unconfigured"
    exit_code = ExitCode.CONFIGURATION
