"""Reads a provider's stream. A response counts only if the stream ends as required."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sideband.messages import AssistantMessage, Usage
from sideband.plugins import PluginContext
from sideband.providers import (
    ANSWER_LIMITS,
    Finished,
    ModelRequest,
    Provider,
    ProviderError,
    StreamBroken,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

from ._foreign import ProviderErrors

_DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)
_ANSWERED = ("end", "tool_calls", "length", "refusal")
# Streamed arguments may have more characters than the parsed data, and an empty delta is not free.
_MAX_STREAMED = 4 * ANSWER_LIMITS.characters
_DELTA_COST = 256


async def read_response(
    provider: Provider,
    request: ModelRequest,
    ctx: PluginContext,
    emit: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> AssistantMessage:
    """Call a model, emit the deltas as they arrive, and return the complete message.

    Raises:
        StreamBroken: if the stream does not end with exactly one ``Finished``, contains anything but events, or
            exceeds the limits of a response.
        SidebandError: if the provider fails.
    """
    name = provider.name
    finished: Finished | None = None
    streamed = 0
    with _reported_usage(lambda: finished):
        with ProviderErrors(name):
            stream = aiter(provider.stream(request, ctx))
        try:
            while (event := await _next(name, stream)) is not None:
                if finished is not None:
                    raise StreamBroken(name, "the stream continued after `Finished`", retryable=True)
                if type(event) is Finished:
                    finished = event
                elif type(event) in _DELTAS:
                    delta = event.model_dump()
                    streamed += _DELTA_COST + sum(len(value) for value in delta.values() if isinstance(value, str))
                    if streamed > _MAX_STREAMED:
                        raise _too_long(name)
                    await emit(delta)
                else:
                    raise StreamBroken(name, f"expected an event, got {type(event).__name__}")
            if finished is None:
                raise StreamBroken(name, "the stream ended without `Finished`", retryable=True)
            return _checked(name, finished)
        finally:
            if hasattr(stream, "aclose"):
                await stream.aclose()


@contextmanager
def _reported_usage(finished: Callable[[], Finished | None]) -> Iterator[None]:
    """Set the usage of a provider's error: what the error or the rejected answer reports, or ``None`` if invalid."""
    try:
        yield
    except ProviderError as error:
        answer = finished()
        try:
            found = error.usage if answer is None or error.usage is not None else answer.message.usage
            error.usage = found and Usage.model_validate(found.model_dump(warnings=False))
        except (AttributeError, TypeError, ValueError):
            error.usage = None
        raise


async def _next(name: str, stream: AsyncIterator[Any]) -> Any:
    """Return the next event, or ``None`` at the end."""
    with ProviderErrors(name):
        try:
            event = await anext(stream)
        except StopAsyncIteration:
            return None
        if event is None:
            raise StreamBroken(name, "expected an event, got None")
        return event


def _checked(name: str, finished: Finished) -> AssistantMessage:
    """Validate the message again. The provider may have built it without validation, and may still modify it."""
    try:
        data = finished.message.model_dump(warnings=False)
        if len(data["content"]) > ANSWER_LIMITS.parts or _characters(data["content"]) > ANSWER_LIMITS.characters:
            raise _too_long(name)
        message = AssistantMessage.model_validate(data)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StreamBroken(
            name, "invalid message in `Finished`", hint="report this to the author of the plugin"
        ) from error
    if message.stop not in _ANSWERED:
        raise StreamBroken(name, f"unexpected stop reason `{message.stop}`", retryable=True)
    return message


def _characters(value: Any) -> int:
    """Return the approximate number of characters of the value as JSON."""
    count, waiting = 0, [value]
    while waiting and count <= ANSWER_LIMITS.characters:
        one = waiting.pop()
        if isinstance(one, str):  # first, because checks against an abstract class are slow
            count += len(one)
            continue
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
        count += 1
    return count


def _too_long(name: str) -> StreamBroken:
    return StreamBroken(
        name,
        f"the response exceeds {ANSWER_LIMITS.characters:,} characters or {ANSWER_LIMITS.parts:,} parts",
        hint="set `max_tokens` in `[agent]`, or use another model",
        retryable=False,
    )
