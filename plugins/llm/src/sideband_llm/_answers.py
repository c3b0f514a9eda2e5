"""Reads the stream of a provider to its end: an answer is what ended as it must, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from pydantic import ValidationError
from sideband.messages import AssistantMessage
from sideband.plugins import PluginContext
from sideband.providers import (
    Finished,
    ModelRequest,
    Provider,
    StreamBroken,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

from ._foreign import provider_errors

__all__ = ["read_answer"]

_DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)
_ANSWERED = ("end", "tool_calls", "length", "refusal")


async def read_answer(
    provider: Provider,
    request: ModelRequest,
    ctx: PluginContext,
    emit: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> AssistantMessage:
    """Ask a model, hand on what it says as it says it, and return the whole answer.

    Raises:
        StreamBroken: the stream did not end with its one last event, or holds something else than events.
        SidebandError: what the provider failed with.
    """
    name = provider.name
    finished: Finished | None = None
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
                await emit(event.model_dump())
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
        message = AssistantMessage.model_validate(finished.message.model_dump(warnings=False))
    except (AttributeError, TypeError, ValidationError) as error:
        raise StreamBroken(name, "its answer is no message", hint="report it to the plugin's author") from error
    if message.stop not in _ANSWERED:
        raise StreamBroken(name, f"its answer ended with `{message.stop}`, and without an error", retryable=True)
    return message
