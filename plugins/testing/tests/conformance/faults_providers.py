"""Providers with one fault each."""

import logging
import os
from types import SimpleNamespace

import anyio
from sideband import Plugin
from sideband.messages import AssistantMessage, TextPart, Usage, UserMessage
from sideband.providers import Finished, ModelInfo, ModelRequest, ProviderRefused, TextDelta
from sideband_testing import ProviderConformance

LOG = logging.getLogger("faulty")


class Good:
    name = "faulty"
    usage = Usage(input=1, output=2)

    async def models(self, ctx):
        return [ModelInfo(id="m")]

    async def stream(self, request, ctx):
        await anyio.lowlevel.checkpoint()
        if request.model == "refused":
            raise ProviderRefused(self.name, "no", status=400, hint="ask something else")
        yield TextDelta(text="hel")
        await anyio.lowlevel.checkpoint()
        yield TextDelta(text="lo")
        yield self.finished("hello")

    def finished(self, text):
        return Finished(message=AssistantMessage(content=(TextPart(text=text),), usage=self.usage))


def asking(model):
    return ModelRequest(model=model, messages=(UserMessage(content=(TextPart(text="hello"),)),))


def provider(cls):
    value = SimpleNamespace(sideband_providers=lambda: [cls()], backends=("asyncio",))
    return Plugin("provider", "faulty", value)


class Base(ProviderConformance):
    fault = ""
    max_steps = 6
    requests = (asking("m"),)
    failing = {"provider.refused": asking("refused")}


class TestGood(Base):
    plugin = provider(Good)


class Twice(Good):
    async def stream(self, request, ctx):
        async for event in super().stream(request, ctx):
            yield event
        yield self.finished("hello")


class TestFinishesTwice(Base):
    fault = "test_stream_ends_with_one_finished_message"
    plugin = provider(Twice)


class WithoutUsage(Good):
    usage = Usage()


class TestWithoutUsage(Base):
    fault = "test_usage_is_reported"
    plugin = provider(WithoutUsage)


class Bare(Good):
    async def stream(self, request, ctx):
        if request.model == "refused":
            raise KeyError("choices")
        async for event in super().stream(request, ctx):
            yield event


class TestRaisesAnything(Base):
    fault = "test_failures_are_typed"
    plugin = provider(Bare)


class Doubled(Good):
    async def models(self, ctx):
        return [ModelInfo(id="m"), ModelInfo(id="m")]


class TestListsAModelTwice(Base):
    fault = "test_models_are_listed"
    plugin = provider(Doubled)


class LeaksWhenCancelled(Good):
    async def stream(self, request, ctx):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        await anyio.lowlevel.checkpoint()
        os.close(descriptor)
        async for event in super().stream(request, ctx):
            yield event


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_closes_the_connection"
    plugin = provider(LeaksWhenCancelled)


class LeaksWhenClosed(Good):
    async def stream(self, request, ctx):
        descriptors = []
        async for event in super().stream(request, ctx):
            descriptors.append(os.open(os.devnull, os.O_RDONLY))
            yield event
            os.close(descriptors.pop())


class TestClosedLeavesADescriptor(Base):
    fault = "test_closed_stream_closes_the_connection"
    plugin = provider(LeaksWhenClosed)


class Logs(Good):
    async def stream(self, request, ctx):
        LOG.warning("request %s", request)
        async for event in super().stream(request, ctx):
            yield event


class TestLogsRequests(Base):
    fault = "test_secrets_stay_hidden"
    plugin = provider(Logs)
