"""What the ops take and answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from sideband.messages import Message
from sideband.providers import ModelRequest, Prices, ToolSchema


class GenerateParams(ModelRequest):
    """What a model is asked: a ``ModelRequest`` whose model names its provider too."""

    model: str = Field(
        min_length=1,
        max_length=300,
        description="provider:model, an alias of the configuration, or a model's own name if only one provider has it.",
    )
    messages: tuple[Message, ...] = Field(
        min_length=1, description="Oldest first: objects with role (user, assistant or tool) and content."
    )
    system: str = Field(default="", description="The system prompt.")
    tools: tuple[ToolSchema, ...] = Field(default=(), description="Tools that the model may ask for.")
    tool_choice: str = Field(default="auto", description="auto, none, required, or the tool that must be called.")
    output_schema: dict[str, JsonValue] | None = Field(
        default=None, description="A JSON Schema that the answer, as JSON text, must fit."
    )
    max_tokens: int | None = Field(default=None, gt=0, description="How long the answer may be, in tokens.")
    temperature: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="How freely it answers; the provider's if not given."
    )
    thinking: Literal["off", "low", "medium", "high"] | None = Field(
        default=None, description="How much the model may think before it speaks; as the provider does if not given."
    )
    stop: tuple[str, ...] = Field(default=(), description="Texts that end the answer.")
    cache_key: str = Field(default="", description="The same for all requests that share a prefix.")
    options: dict[str, JsonValue] = Field(
        default_factory=dict, description="What only this provider understands, added to its request as it is."
    )

    def request(self, model: str) -> ModelRequest:
        """The request to a provider, whose own name of the model is ``model``."""
        fields = {name: getattr(self, name) for name in ModelRequest.model_fields}
        return ModelRequest(**{**fields, "model": model})


class _LlmData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelsParams(_LlmData):
    """Which models to list."""

    provider: str | None = Field(default=None, description="Only those of this provider.")


class ListedModel(_LlmData):
    """One model that can be used.

    Attributes:
        name: ``provider:model``.
        provider: its provider's name.
        context_window, max_output: tokens, where known.
        images, thinking, tools: what it can deal with; ``None`` where its provider doesn't say.
        prices: US dollars for a million tokens, where known.
    """

    name: str
    provider: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    thinking: bool | None = None
    tools: bool | None = None
    prices: Prices | None = None


class ProviderProblem(_LlmData):
    """Why the models of a provider can't be used now."""

    provider: str
    code: str
    message: str
    hint: str = ""


class ModelList(_LlmData):
    """The models that can be used now.

    Attributes:
        models: sorted by name.
        problems: what is wrong with the other providers.
        aliases: short names from the configuration.
        setup: the quickest ways to a model, if there is none.
    """

    models: tuple[ListedModel, ...] = ()
    problems: tuple[ProviderProblem, ...] = ()
    aliases: dict[str, str] = Field(default_factory=dict)
    setup: tuple[str, ...] = ()
