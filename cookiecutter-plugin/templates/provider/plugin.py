"""The provider: each model is a program that reads a conversation and writes an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from subprocess import DEVNULL
from tempfile import TemporaryFile

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from pydantic import BaseModel, ConfigDict
from sideband.messages import AssistantMessage
from sideband.plugins import PluginContext
from sideband.providers import (
    Finished,
    ModelInfo,
    ModelRequest,
    Prices,
    ProviderRefused,
    ProviderUnconfigured,
    ProviderUnreachable,
    StreamBroken,
    StreamEvent,
    TextDelta,
)

__all__ = ["Config", "sideband_providers"]

NAME = "{{ cookiecutter.__entry }}"


class Config(BaseModel):
    """The table `[plugins.{{ cookiecutter.__entry }}]`."""

    model_config = ConfigDict(extra="forbid")

    models: dict[str, list[str]] = {}


class Programs:
    """Runs the programs of the configuration. They have the rights of the user, like this plugin."""

    name = NAME

    async def models(self, ctx: PluginContext) -> list[ModelInfo]:
        """Return the models of the configuration."""
        return [ModelInfo(id=name, tools=False, prices=Prices(input=0, output=0)) for name in ctx.config.models]

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Start the program of the model, and yield what it writes."""
        command = ctx.config.models.get(request.model)
        if not command:
            raise ProviderUnconfigured(
                NAME,
                f"no program is configured for the model `{request.model}`",
                hint=f'add {request.model} = ["PROGRAM", "ARGUMENT"] to [plugins.{NAME}.models]',
            )
        if request.tools and request.tool_choice not in ("auto", "none"):
            raise ProviderRefused(NAME, "a program cannot call tools", hint="use another model for tools")
        parts = []
        async with running(command, "\n\n".join(conversation(request))) as process:
            async for part in TextReceiveStream(process.stdout, errors="replace"):  # type: ignore[arg-type]  # a pipe
                parts.append(part)
                yield TextDelta(text=part)
            if code := await process.wait():
                raise StreamBroken(NAME, f"{command[0]} exited with code {code}", hint="run the program by hand")
        yield Finished(message=AssistantMessage(content="".join(parts)))


def conversation(request: ModelRequest) -> Iterator[str]:
    """Yield the paragraphs that the program reads."""
    if request.system:
        yield request.system
    for message in request.messages:
        yield f"{message.role}: {message.text}"


@asynccontextmanager
async def running(command: list[str], text: str) -> AsyncIterator[Process]:
    """Start a program that reads a text, and kill it if it still runs at the end."""
    with TemporaryFile() as file:  # a pipe would need a writer beside the reader
        file.write(text.encode())
        file.seek(0)
        try:
            process = await anyio.open_process(command, stdin=file, stderr=DEVNULL)
        except OSError as error:
            raise ProviderUnreachable(NAME, f"{command[0]}: {error.strerror}", hint="install the program") from error
    async with process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


def sideband_providers() -> list[Programs]:
    """Register the provider."""
    return [Programs()]
