"""Conversion of a model request to the body of an API request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sideband.messages import Fragment, JsonPieces
from sideband.providers import ModelRequest, ToolSchema
from sideband_model_client import encoded, json_pieces, tool_fragments

from ._known_models import Model
from ._messages import CACHED, SentTurn, conversation, has_thoughts

_DEFAULT_MAX_TOKENS = 32_000
_DEFAULT_MAX_TOKENS_OF_UNKNOWN = 8_192
_BUDGETS = {"low": 4_096, "medium": 8_192, "high": 16_384}
_MIN_BUDGET = 1_024

Body = dict[str, Any]


def request_body(
    request: ModelRequest, model: Model, *, provider: str, cache: bool, thoughts: bool = True
) -> JsonPieces:
    """Return the body of a streaming request.

    Args:
        request: the model request.
        model: the known properties of the model. Fields that it rejects are omitted or replaced.
        provider: the name of the provider, as used in the ``model`` of messages.
        cache: whether to set cache breakpoints.
        thoughts: whether to send earlier thinking blocks back to the model.
    """
    recipient = f"{provider}:{request.model}"
    turns = conversation(request.messages, model=recipient, thoughts=thoughts)
    length = _max_tokens(request, model)
    forced = bool(request.tools) and request.tool_choice not in {"auto", "none"}
    thinking = _thinking(request, model, turns, length, forced=forced and model.forced)
    body: Body = {"model": request.model, "max_tokens": length, "stream": True}
    # Cache breakpoints, at most four, on what later requests share: tools, system prompt, the last two turns of users.
    mark = {"cache_control": CACHED} if cache else {}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, **mark}]
    if request.tools:
        body["tool_choice"] = _tool_choice(request, model)
        if forced and not model.forced:
            _ask_for_tool(turns, request.tool_choice)
    if thinking:
        body["thinking"] = thinking
    if request.temperature is not None and model.sampling and not _thinks(thinking, model):
        body["temperature"] = min(request.temperature, 1.0)
    if stop := [text for text in request.stop if text.strip()]:
        body["stop_sequences"] = stop
    if output := _output(request, thinking):
        body["output_config"] = output
    for turn in [one for one in turns if one.role == "user"][-2:]:
        turn.marked = cache
    tools = {"tools": _tools(request.tools, mark)} if request.tools else {}
    messages = [one.fragment(recipient, thoughts=thoughts) for one in turns]
    return json_pieces({**_merged(body, request.options), "stream": True}, **tools, messages=messages)


def _max_tokens(request: ModelRequest, model: Model) -> int:
    default = _DEFAULT_MAX_TOKENS if model.max_output else _DEFAULT_MAX_TOKENS_OF_UNKNOWN
    requested = request.max_tokens or default
    return min(requested, model.max_output or requested)


def _thinking(
    request: ModelRequest, model: Model, turns: Sequence[SentTurn], length: int, *, forced: bool
) -> Body | None:
    """Return the field ``thinking``, or ``None`` to omit it. A model forced to call a tool cannot think first."""
    wanted = request.thinking not in {None, "off"}
    if model.thinking == "always" or (model.thinking == "default" and not forced and request.thinking != "off"):
        # Some of these models put into their thinking what others write as text between tool calls.
        return {"type": "adaptive", "display": "summarized"}
    if model.thinking == "default":
        return {"type": "disabled"}
    if not wanted or forced or model.thinking == "none":
        return None
    if model.thinking == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    budget = min(_BUDGETS[str(request.thinking)], length // 2)
    if budget < _MIN_BUDGET or _continues_without_thoughts(turns):
        return None
    return {"type": "enabled", "budget_tokens": budget}


def _continues_without_thoughts(turns: Sequence[SentTurn]) -> bool:
    """Return whether the model is within a series of tool calls begun without thinking, where it cannot be enabled."""
    return bool(turns) and turns[-1].has_results and not has_thoughts(turns[-2:-1])


def _thinks(thinking: Body | None, model: Model) -> bool:
    return model.thinking == "always" or (thinking is not None and thinking["type"] != "disabled")


def _tools(tools: Sequence[ToolSchema], mark: Body) -> Sequence[Fragment]:
    """Return the tools, the last one with the cache breakpoint."""

    def build_last(tool: ToolSchema) -> Fragment:
        return Fragment(encoded({**_described(tool), **mark}))

    return tool_fragments(tools, ("anthropic", bool(mark)), _tool, build_last=build_last)


def _tool(tool: ToolSchema) -> Fragment:
    return Fragment(encoded(_described(tool)))


def _described(tool: ToolSchema) -> Body:
    described = {"description": tool.description} if tool.description.strip() else {}
    return {"name": tool.name, **described, "input_schema": tool.parameters}


def _tool_choice(request: ModelRequest, model: Model) -> Body:
    if request.tool_choice in {"auto", "none"}:
        return {"type": request.tool_choice}
    if not model.forced:
        return {"type": "auto"}
    return {"type": "any"} if request.tool_choice == "required" else {"type": "tool", "name": request.tool_choice}


def _ask_for_tool(turns: list[SentTurn], choice: str) -> None:
    """Ask in the prompt for a tool call that cannot be forced."""
    text = "Respond with a tool call." if choice == "required" else f"Respond with a call to the tool `{choice}`."
    if not turns or turns[-1].role != "user":
        turns.append(SentTurn("user"))
    turns[-1].added.append({"type": "text", "text": text})


def _output(request: ModelRequest, thinking: Body | None) -> Body:
    output: Body = {}
    if thinking is not None and thinking["type"] == "adaptive" and request.thinking is not None:
        output["effort"] = "low" if request.thinking == "off" else request.thinking
    if request.output_schema is not None:
        output["format"] = {"type": "json_schema", "schema": _closed(request.output_schema)}
    return output


def _closed(schema: Any) -> Any:
    """Return a schema whose objects forbid additional properties, as the API requires."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    return {"additionalProperties": False, **closed} if closed.get("type") == "object" else closed


def _merged(body: Body, options: dict[str, Any]) -> Body:
    """Return the body with options added. Tables are merged, other values replaced."""
    merged = dict(body)
    for name, value in options.items():
        known = merged.get(name)
        merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return merged
