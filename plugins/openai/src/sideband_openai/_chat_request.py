"""Conversion of a model request to Chat Completions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import frozen
from sideband.messages import (
    AssistantMessage,
    Attachment,
    AudioPart,
    FilePart,
    Fragment,
    ImagePart,
    ImageUrlPart,
    JsonPieces,
    Message,
    TextPart,
    ThinkingPart,
    ToolResultMessage,
    UserMessage,
    fragment,
)
from sideband.providers import ModelRequest, ToolSchema
from sideband_model_client import InputUnsupported, data_url, encoded, file_text, json_pieces, tool_fragments

from ._known_models import known
from ._messages import arguments_text, call_id, is_empty, is_strict

_PDF = "application/pdf"
_AUDIO_FORMS = {
    **dict.fromkeys(("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"), "wav"),
    **dict.fromkeys(("audio/mpeg", "audio/mp3"), "mp3"),
}


def chat_body(request: ModelRequest, provider: str, *, official: bool) -> JsonPieces:
    """Return the request body.

    Args:
        request: the model request.
        provider: the name of the provider, for errors.
        official: whether the service is OpenAI's own or Azure, which reject unknown fields.

    Raises:
        InputUnsupported: if the protocol does not support an attachment.
    """
    parts = _ContentParts(provider, request.model, is_official=official)
    body: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools and request.tool_choice != "auto":
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.output_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": _format(request.output_schema)}
    if request.max_tokens is not None:
        body["max_completion_tokens" if official else "max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.stop:
        body["stop"] = list(request.stop)
    if (effort := _effort(request, official=official)) is not None:
        body["reasoning_effort"] = effort
    if request.cache_key and official:
        body["prompt_cache_key"] = request.cache_key
    tools = {"tools": tool_fragments(request.tools, "openai.chat", _tool)} if request.tools else {}
    messages = [*_system(request), *_messages(request.messages, parts, thoughts=not official)]
    return json_pieces({**body, **request.options}, **tools, messages=messages)


def _tool(schema: ToolSchema) -> Fragment:
    function = schema.model_dump(mode="json", include={"name", "description", "parameters"})
    return Fragment(encoded({"type": "function", "function": function}))


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


def _effort(request: ModelRequest, *, official: bool) -> str | None:
    model = known(request.model) if official else None
    if request.thinking is None or (model is not None and not model.info.thinking):
        return None
    if request.thinking == "off":
        return "none" if model is None else model.least_thinking
    return request.thinking


def _system(request: ModelRequest) -> Sequence[Fragment]:
    return [Fragment(encoded({"role": "system", "content": request.system}))] if request.system else ()


class _ChatMessage(Fragment):
    """A message as it is sent; empty for one that is not.

    Attributes:
        images: the images of a result. Results cannot contain images, so they follow in a user message.
        shown: this user message, after the last result of a turn, with the results whose images it has.
    """

    __slots__ = ("images", "shown")

    def __init__(self, data: dict[str, Any] | None, images: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(b"" if data is None else encoded(data))
        self.images = images
        self.shown: tuple[Sequence[_ChatMessage], Fragment] | None = None


def _messages(messages: Sequence[Message], parts: _ContentParts, *, thoughts: bool) -> Sequence[Fragment]:
    # Reasoning is sent back within a series of tool calls only, not after the next user message.
    run = len(messages)
    while thoughts and run and not isinstance(messages[run - 1], UserMessage):
        run -= 1
    form = ("openai.chat", parts.provider, parts.model, parts.is_official)
    found: list[_ChatMessage] = []
    for some, with_thoughts in ((messages[:run], False), (messages[run:], True)):
        build: Callable[[Message], _ChatMessage] = partial(_message, parts, with_thoughts)
        own_form = (*form, with_thoughts)
        found += [fragment(one, own_form, build) for one in some]
    if [one for one in found if one.images]:
        return _with_images(messages, found)
    return [one for one in found if one.encoded]


def _message(parts: _ContentParts, thoughts: bool, message: Message) -> _ChatMessage:
    if isinstance(message, UserMessage):
        return _ChatMessage({"role": "user", "content": parts.content(message.content)})
    if isinstance(message, AssistantMessage):
        return _ChatMessage(None if is_empty(message) else _assistant(message, thoughts=thoughts))
    data = {"role": "tool", "tool_call_id": call_id(message.call), "content": message.text}
    return _ChatMessage(data, _images_of(message))


def _with_images(messages: Sequence[Message], found: Sequence[_ChatMessage]) -> Sequence[Fragment]:
    """Return the messages to send. A user message with the images of its results follows each series of results."""
    sent: list[Fragment] = []
    series: list[_ChatMessage] = []
    for message, one in zip(messages, found, strict=True):
        if not one.encoded:
            continue
        if not isinstance(message, ToolResultMessage):
            sent += _shown(series)
            series = []
        elif one.images:
            series.append(one)
        sent.append(one)
    return [*sent, *_shown(series)]


def _shown(series: Sequence[_ChatMessage]) -> Sequence[Fragment]:
    if not series:
        return ()
    last = series[-1]
    if last.shown is None or last.shown[0] != series:
        images = [image for one in series for image in one.images]
        last.shown = series, Fragment(encoded({"role": "user", "content": images}))
    return [last.shown[1]]


@frozen
class _ContentParts:
    """Converts the parts of user messages.

    Attributes:
        provider, model: the names of the provider and of the model, for errors.
        is_official: whether the service is OpenAI's own or Azure. Others may accept more types.
    """

    provider: str
    model: str
    is_official: bool

    def content(self, parts: tuple[TextPart | Attachment, ...]) -> str | list[dict[str, Any]]:
        """Return the content of a message."""
        if all(isinstance(one, TextPart) for one in parts):
            return "\n".join(one.text for one in parts if isinstance(one, TextPart))
        return [self._part(one) for one in parts]

    def _part(self, part: TextPart | Attachment) -> dict[str, Any]:
        if isinstance(part, TextPart):
            return _text(part.text)
        if isinstance(part, ImagePart):
            return _image(part)
        if isinstance(part, ImageUrlPart):
            return {"type": "image_url", "image_url": {"url": part.url}}
        return self._audio(part) if isinstance(part, AudioPart) else self._file(part)

    def _file(self, part: FilePart) -> dict[str, Any]:
        """Return a file. The protocol has no form for text files, which are sent as text."""
        if (text := file_text(part)) is not None:
            return _text(f"{part.name}:\n\n{text}")
        if self.is_official and part.media_type != _PDF:
            hint = f'convert it to a PDF, or use Responses (`api = "responses"` in the table of `{self.provider}`)'
            raise InputUnsupported(
                self.provider,
                self.model,
                f"`{part.name}`: Chat Completions takes PDFs and text, not {part.media_type}",
                hint,
            )
        return {"type": "file", "file": {"filename": part.name, "file_data": data_url(part)}}

    def _audio(self, part: AudioPart) -> dict[str, Any]:
        form = _AUDIO_FORMS.get(part.media_type)
        if form is None and self.is_official:
            problem = f"{part.media_type}: Chat Completions takes WAV and MP3"
            raise InputUnsupported(self.provider, self.model, problem, "convert the recording to WAV or MP3")
        form = form or part.media_type.removeprefix("audio/").removeprefix("x-")
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": form}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(part: ImagePart) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def _images_of(result: ToolResultMessage) -> list[dict[str, Any]]:
    """Return the images of a result. Results cannot contain images, so they follow in a user message."""
    images = [_image(one) for one in result.content if isinstance(one, ImagePart)]
    return [_text(f"The images that {result.tool} returned ({call_id(result.call)}):"), *images] if images else []


def _assistant(message: AssistantMessage, *, thoughts: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    thought = "".join(part.text for part in message.content if isinstance(part, ThinkingPart))
    if thoughts and thought:
        data["reasoning_content"] = thought
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call_id(part.id),
                "type": "function",
                "function": {"name": part.name, "arguments": arguments_text(part.arguments)},
            }
            for part in message.tool_calls
        ]
    return data
