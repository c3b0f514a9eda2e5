"""Conversion of a model request to Responses. The service stores nothing: each request has the whole conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from sideband.messages import (
    AssistantMessage,
    Attachment,
    AudioPart,
    FilePart,
    Fragment,
    ImageUrlPart,
    JsonPieces,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserMessage,
    fragment,
)
from sideband.providers import ModelRequest, ToolSchema
from sideband_model_client import InputUnsupported, data_url, encoded, json_pieces, parse_json, tool_fragments

from ._known_models import known
from ._messages import arguments_text, call_id, is_empty, is_strict

_ENCRYPTED = "reasoning.encrypted_content"


def responses_body(request: ModelRequest, provider: str, *, official: bool, summaries: str | None) -> JsonPieces:
    """Return the request body.

    Args:
        request: the model request. Its ``stop`` and recordings are not supported.
        provider: the name of the provider. Reasoning is sent back only to the model it came from.
        official: whether the service is OpenAI's own or Azure.
        summaries: the kind of reasoning summaries to request, or ``None``.

    Raises:
        InputUnsupported: if the protocol does not support a part of the request.
    """
    if request.stop:
        raise _unsupported("`stop`", provider, request.model)
    model = f"{provider}:{request.model}"
    body: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "store": False,
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools and request.tool_choice != "auto":
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.output_schema is not None:
        schema = request.output_schema
        form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}
        body["text"] = {"format": form}
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.cache_key and official:
        body["prompt_cache_key"] = request.cache_key
    body.update(_reasoning(request, summaries, official=official))
    tools = {"tools": tool_fragments(request.tools, "openai.responses", _tool)} if request.tools else {}
    own_form, build = ("openai.responses", model), partial(_joined_items, model)
    items = [one for message in request.messages if (one := fragment(message, own_form, build)).encoded]
    return json_pieces({**body, **request.options}, **tools, input=items)


def _unsupported(problem: str, provider: str, model: str) -> InputUnsupported:
    hint = f'use Chat Completions: `api = "chat"` in the table of `{provider}`'
    return InputUnsupported(provider, model, f"{problem} through Responses", hint)


def _tool(schema: ToolSchema) -> Fragment:
    described = {"type": "function", "name": schema.name, "description": schema.description}
    return Fragment(encoded({**described, "parameters": schema.parameters, "strict": False}))


def _joined_items(model: str, message: Message) -> Fragment:
    """Return the items of a message, separated by commas."""
    if isinstance(message, UserMessage) and any(isinstance(part, AudioPart) for part in message.content):
        provider, _, name = model.partition(":")
        raise _unsupported("audio", provider, name)
    return Fragment(b",".join([encoded(item) for item in _items(message, model)]))


def _tool_choice(choice: str) -> str | dict[str, Any]:
    return choice if choice in {"auto", "none", "required"} else {"type": "function", "name": choice}


def _reasoning(request: ModelRequest, summaries: str | None, *, official: bool) -> dict[str, Any]:
    """Return the reasoning fields. Models without reasoning reject them; unknown models get them only on request."""
    model = known(request.model) if official else None
    thinks = request.thinking is not None if model is None else model.info.thinking
    if not thinks:
        return {}
    effort: str | None = request.thinking
    if effort == "off":
        effort = "none" if model is None else model.least_thinking
    reasoning = {"effort": effort, "summary": summaries}
    fields = {name: value for name, value in reasoning.items() if value is not None}
    return {"include": [_ENCRYPTED], **({"reasoning": fields} if fields else {})}


def _items(message: Message, model: str) -> Iterator[dict[str, Any]]:
    if isinstance(message, AssistantMessage) and is_empty(message):
        return
    if isinstance(message, UserMessage):
        yield {"type": "message", "role": "user", "content": _content(message.content)}
    elif isinstance(message, AssistantMessage):
        yield from _assistant_items(message, with_thoughts=message.model in {"", model})
    else:
        plain = all(isinstance(one, TextPart) for one in message.content)
        output = message.text if plain else _content(message.content)
        yield {"type": "function_call_output", "call_id": call_id(message.call), "output": output}


def _assistant_items(message: AssistantMessage, *, with_thoughts: bool) -> Iterator[dict[str, Any]]:
    thoughts: list[dict[str, Any]] = []
    for part in message.content:
        if isinstance(part, ThinkingPart):
            thought = _thought(part) if with_thoughts else None
            thoughts += [thought] if thought is not None else []
            continue
        # The service rejects a reasoning item that is not followed by another item.
        yield from thoughts
        thoughts = []
        if isinstance(part, ToolCallPart):
            arguments = arguments_text(part.arguments)
            yield {"type": "function_call", "call_id": call_id(part.id), "name": part.name, "arguments": arguments}
        elif part.text:
            content = [{"type": "output_text", "text": part.text, "annotations": []}]
            yield {"type": "message", "role": "assistant", "content": content}


def _thought(part: ThinkingPart) -> dict[str, Any] | None:
    """Return a reasoning item unchanged, or ``None`` if it is not encrypted: the service cannot use it then."""
    try:
        item = parse_json(part.signature or "")
    except ValueError:
        return None
    known_form = isinstance(item, dict) and item.get("type") == "reasoning" and item.get("encrypted_content")
    return item if known_form else None


def _content(parts: Iterable[TextPart | Attachment]) -> list[dict[str, Any]]:
    return [_part(one) for one in parts]


def _part(part: TextPart | Attachment) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, FilePart):
        return {"type": "input_file", "filename": part.name, "file_data": data_url(part)}
    url = part.url if isinstance(part, ImageUrlPart) else data_url(part)
    return {"type": "input_image", "image_url": url, "detail": "auto"}
