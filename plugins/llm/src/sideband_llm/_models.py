"""Parameters and results of the ops."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidatorFunctionWrapHandler, WrapValidator
from sideband.messages import AssistantMessage, CarryingTuple, Message, ToolResultMessage, UserMessage
from sideband.providers import ModelRequest, Prices, ToolSchema

_MESSAGES = frozenset({UserMessage, AssistantMessage, ToolResultMessage})


def _unless_messages(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Validate data. Messages were validated when they were made, and an agent sends the same ones in each turn."""
    if type(value) is tuple and value and _MESSAGES.issuperset(map(type, value)):
        return value
    return validate(value)


def _unless_schemas(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Validate data. The schemas of an agent were validated when they were made, and are sent as one object."""
    return value if isinstance(value, CarryingTuple) and value.kinds == {ToolSchema} else validate(value)


class GenerateParams(ModelRequest):
    """A ``ModelRequest`` whose ``model`` includes the provider."""

    model: str = Field(
        min_length=1,
        max_length=300,
        description="provider:model, an alias from the configuration, or a bare model name that only one provider has.",
    )
    messages: Annotated[tuple[Message, ...], WrapValidator(_unless_messages)] = Field(
        min_length=1,
        description="The conversation, oldest first: objects with role (user, assistant or tool) and content.",
    )
    system: str = Field(default="", description="The system prompt.")
    tools: Annotated[tuple[ToolSchema, ...], WrapValidator(_unless_schemas)] = Field(
        default=(), description="The tools that the model may call."
    )
    tool_choice: str = Field(
        default="auto", description="auto, none, required, or the name of the tool that must be called."
    )
    output_schema: dict[str, JsonValue] | None = Field(
        default=None, description="A JSON Schema for the response, which is then JSON text."
    )
    max_tokens: int | None = Field(default=None, gt=0, description="The maximum length of the response in tokens.")
    temperature: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="The sampling temperature. Default: the provider's."
    )
    thinking: Literal["off", "low", "medium", "high"] | None = Field(
        default=None, description="How much the model may think before it responds. Default: the provider's."
    )
    stop: tuple[str, ...] = Field(default=(), description="Strings that end the response.")
    cache_key: str = Field(default="", description="A cache key for requests that share a prefix.")
    options: dict[str, JsonValue] = Field(
        default_factory=dict, description="Provider-specific fields, added to the request unchanged."
    )

    def request(self, model: str) -> ModelRequest:
        """Return the request to a provider, where the model is named ``model``."""
        # The fields are valid: validating them again takes a time that grows with the conversation.
        fields = {name: getattr(self, name) for name in ModelRequest.model_fields}
        return ModelRequest.model_construct(**{**fields, "model": model})


class _LlmData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelsParams(_LlmData):
    """The models to list."""

    provider: str | None = Field(default=None, description="List only the models of this provider.")


class ListedModel(_LlmData):
    """An available model.

    Attributes:
        name: ``provider:model``.
        provider: the name of the provider.
        context_window, max_output: the limits in tokens, if known.
        images, files, audio, thinking, tools: whether the model supports these; ``None`` if unknown.
        prices: the prices in US dollars per million tokens, if known.
    """

    name: str
    provider: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    files: bool | None = None
    audio: bool | None = None
    thinking: bool | None = None
    tools: bool | None = None
    prices: Prices | None = None


class ProviderProblem(_LlmData):
    """The reason why the models of a provider are unavailable."""

    provider: str
    code: str
    message: str
    hint: str = ""


class ModelList(_LlmData):
    """The available models.

    Attributes:
        models: the models, sorted by name.
        problems: the problems of the other providers.
        aliases: the short names from the configuration.
        setup: the quickest ways to set up a model, if none is available.
    """

    models: tuple[ListedModel, ...] = ()
    problems: tuple[ProviderProblem, ...] = ()
    aliases: dict[str, str] = Field(default_factory=dict)
    setup: tuple[str, ...] = ()
