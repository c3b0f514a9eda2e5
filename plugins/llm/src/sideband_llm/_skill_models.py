"""Parameters and results of the ops that answer with text or data instead of a message."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints
from sideband.messages import Message, StopReason, Usage
from sideband.providers import ToolSchema

ToolName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$", max_length=64)]
_MAX_TOOLS = 64


class _SkillModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Asked(_SkillModel):
    model: str = Field(
        min_length=1,
        max_length=300,
        description="provider:model, an alias from the configuration, or a bare model name that only one provider has.",
    )
    system: str = Field(default="", description="The system prompt.")
    max_tokens: int | None = Field(default=None, gt=0, description="The maximum length of each answer in tokens.")
    temperature: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="The sampling temperature. Default: the provider's."
    )


class _Typed(_Asked):
    prompt: str = Field(min_length=1, description="The task.")
    output_schema: dict[str, JsonValue] | None = Field(
        default=None, description="A JSON Schema for the data of the answer. Default: the answer is text."
    )
    repairs: int = Field(
        default=2, ge=0, le=5, description="How often the model may correct an answer that does not fit the schema."
    )


class ChatParams(_Asked):
    """A conversation."""

    messages: tuple[Message, ...] = Field(
        min_length=1,
        description="The conversation, oldest first: objects with role (user, assistant or tool) and content.",
    )


class OneshotParams(_Typed):
    """One question."""


class ResolveToolsParams(_SkillModel):
    """The tools to look up."""

    tools: tuple[ToolName, ...] = Field(max_length=_MAX_TOOLS, description="The names of tools, as skill.tool.")


class ModelBudget(_SkillModel):
    """What a loop may use, in addition to what the capability allows.

    Attributes:
        money: US dollars.
        tokens: input and output tokens.
    """

    money: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)


class LlmAgentParams(_Typed):
    """A task that a model solves with tools."""

    tools: tuple[ToolName, ...] = Field(
        default=(), max_length=_MAX_TOOLS, description="The tools that the model may call, as skill.tool."
    )
    max_iterations: int = Field(default=20, ge=1, le=100, description="The maximum number of model calls.")
    timeout: float = Field(default=600.0, gt=0, le=3_600, description="The maximum duration in seconds.")
    budget: ModelBudget = Field(
        default=ModelBudget(), description="What the model calls may use: money in US dollars, and tokens."
    )
    partial: bool = Field(
        default=False,
        description="Whether to return the last text, with `error`, if the loop ends without an answer.",
    )


class ModelAnswer(_SkillModel):
    """An answer of a model.

    Attributes:
        content: the text.
        data: the data, if a schema was given.
        model: ``provider:model``.
        stop: why the model stopped.
        usage: the usage of all model calls.
        attempts: the number of model calls.
    """

    content: str
    data: Any = None
    model: str = ""
    stop: StopReason = "end"
    usage: Usage = Usage()
    attempts: int = 1


class MadeToolCall(_SkillModel):
    """A tool call that a model has made.

    Attributes:
        name: ``skill.tool``, or what the model wrote if there is no such tool.
        arguments: the arguments.
        error: the code of the error; ``None`` if it succeeded.
    """

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    error: str | None = None


class LlmAgentAnswer(_SkillModel):
    """The result of a loop.

    Attributes:
        content: the text of the last answer.
        data: the data, if a schema was given.
        usage: the usage of all model calls.
        iterations: the number of model calls.
        tool_calls: the tool calls, in order.
        error: why it ended without an answer, for ``partial``: ``code``, ``message``, ``phase`` and more.
    """

    content: str = ""
    data: Any = None
    usage: Usage = Usage()
    iterations: int = 0
    tool_calls: tuple[MadeToolCall, ...] = ()
    error: dict[str, Any] | None = None


ToolDefinitions = tuple[ToolSchema, ...]
"""The definitions of tools, as models get them."""
