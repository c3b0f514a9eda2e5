"""A host with this plugin and a scripted provider."""

from types import SimpleNamespace

import anyio
import pytest
import sideband_llm.plugin
from attrs import define, field
from sideband import Plugin
from sideband.broker import Call
from sideband.messages import AssistantMessage, TextPart, Usage
from sideband.ops import Origin
from sideband.providers import Finished, ModelInfo, Prices, TextDelta


@define
class Fake:
    """A provider that yields, raises or calls the items of ``script``."""

    name: str = "fake"
    listed: object = field(factory=lambda: [ModelInfo(id="m"), ModelInfo(id="n")])
    script: object = None
    requests: list = field(factory=list)
    list_calls: int = 0
    closed: int = 0

    async def models(self, ctx):
        self.list_calls += 1
        if callable(self.listed):
            return await self.listed()
        if isinstance(self.listed, BaseException):
            raise self.listed
        return self.listed

    async def stream(self, request, ctx):
        self.requests.append(request)
        try:
            for one in (
                self.script if self.script is not None else [TextDelta(text="hel"), TextDelta(text="lo"), answer()]
            ):
                if isinstance(one, BaseException):
                    raise one
                if callable(one):
                    await one()
                    continue
                yield one
        finally:
            self.closed += 1


def answer(text="hello", **fields):
    usage = Usage(input=1_000, output=100, cache_read=500)
    return Finished(message=AssistantMessage(**{"content": (TextPart(text=text),), "usage": usage, **fields}))


@pytest.fixture
def anyio_backend():
    """Run on asyncio. Tests of cancellation, closing and concurrency override it with both backends."""
    return "asyncio"


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def make():
    return SimpleNamespace(provider=Fake, answer=answer, info=ModelInfo, prices=Prices)


@pytest.fixture
def open_host(sideband_host):
    def open_one(*providers, settings=None, **options):
        plugins = [
            Plugin(kind="op", name="llm", value=sideband_llm.plugin),
            *(
                Plugin(kind="provider", name=one.name, value=SimpleNamespace(sideband_providers=lambda one=one: [one]))
                for one in providers
            ),
            *options.pop("plugins", ()),
        ]
        return sideband_host(*plugins, settings=settings, **options)

    return open_one


@pytest.fixture
async def host(open_host, fake):
    async with open_host(fake) as one:
        yield one


@pytest.fixture
def ask():
    """Return a function that calls a model as a skill would; ``parts`` collects the deltas."""

    async def ask_one(
        host, model="fake:m", *, grants=("llm",), key=None, parts=None, deadline=30, skill=None, **params
    ):
        async def take(part):
            if parts is not None:
                parts.append(part)

        call = Call(
            id="call",
            grant=await host.broker.ops.grant(grants),
            domain="test",
            origin=Origin(skill=skill),
            deadline=anyio.current_time() + deadline,
            on_part=take,
        )
        messages = params.pop("messages", [{"role": "user", "content": "hi"}])
        try:
            return await host.broker.dispatch(
                call, "llm.generate", {"model": model, "messages": messages, **params}, key=key
            )
        finally:
            await call.end(lambda error: None)

    return ask_one
