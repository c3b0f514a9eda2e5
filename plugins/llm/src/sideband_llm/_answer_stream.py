"""Reads the stream of a provider to its end: an answer is what ended as it must, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from sideband.messages import AssistantMessage
from sideband.plugins import PluginContext
from sideband.providers import (
    ANSWER_LIMITS,
    Finished,
    ModelRequest,
    Provider,
    StreamBroken,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

from ._foreign import provider_errors

_DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)
_ANSWERED = ("end", "tool_calls", "length", "refusal")
# Arguments may be streamed with more characters than they have as data, and an empty delta costs something too.
_MOST_STREAMED = 4 * ANSWER_LIMITS.characters
_DELTA_COST = 256


async def read_answer(
    provider: Provider,
    request: ModelRequest,
    ctx: PluginContext,
    emit: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> AssistantMessage:
    """Ask a model, hand on what it says as it says it, and return the whole answer.

    Raises:
        StreamBroken: the stream did not end with its one last event, holds something else than events, or holds more
            than an answer may have.
        SidebandError: what the provider failed with.
    """
    name = provider.name
    finished: Finished | None = None
    streamed = 0
    async with AsyncExitStack() as stack:
        with provider_errors(name):
            stream = aiter(provider.stream(request, ctx))
        if hasattr(stream, "aclose"):
            stack.push_async_callback(stream.aclose)
        while (event := await _next(name, stream)) is not None:
            if finished is not None:
                raise StreamBroken(name, "the stream went on after its end", retryable=True)
            if type(event) is Finished:
                finished = event
            elif type(event) in _DELTAS:
                delta = event.model_dump()
                streamed += _DELTA_COST + sum(len(value) for value in delta.values() if isinstance(value, str))
                if streamed > _MOST_STREAMED:
                    raise _too_long(name)
                await emit(delta)
            else:
                raise StreamBroken(name, f"the stream holds a {type(event).__name__}, which is no event")
    if finished is None:
        raise StreamBroken(name, "the stream ended before its end", retryable=True)
    return _checked(name, finished)


async def _next(name: str, stream: AsyncIterator[Any]) -> Any:
    """The next event, or ``None`` at the end."""
    with provider_errors(name):
        try:
            event = await anext(stream)
        except StopAsyncIteration:
            return None
        if event is None:
            raise StreamBroken(name, "the stream holds a None, which is no event")
        return event


def _checked(name: str, finished: Finished) -> AssistantMessage:
    """The answer, validated anew: a provider may have made it without validation, and may still hold it."""
    try:
        data = finished.message.model_dump(warnings=False)
        if len(data["content"]) > ANSWER_LIMITS.parts or _characters(data["content"]) > ANSWER_LIMITS.characters:
            raise _too_long(name)
        message = AssistantMessage.model_validate(data)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StreamBroken(name, "its answer is no message", hint="report it to the plugin's author") from error
    if message.stop not in _ANSWERED:
        raise StreamBroken(name, f"its answer ended with `{message.stop}`, and without an error", retryable=True)
    return message


def _characters(value: Any) -> int:
    """About how many characters the value has as JSON."""
    count, waiting = 0, [value]
    while waiting and count <= ANSWER_LIMITS.characters:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
        count += len(one) if isinstance(one, str) else 1
    return count


def _too_long(name: str) -> StreamBroken:
    return StreamBroken(
        name,
        f"the answer has more than {ANSWER_LIMITS.characters:,} characters or {ANSWER_LIMITS.parts:,} parts",
        hint="limit it with `max_tokens` under `[agent]`, or use another model",
        retryable=False,
    )
